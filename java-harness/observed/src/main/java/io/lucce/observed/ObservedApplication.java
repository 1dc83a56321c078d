package io.lucce.observed;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/**
 * A program with Actuator, Micrometer and, from outside, OpenTelemetry's Java agent: it sends itself {@value #REQUESTS}
 * requests with known allocations, prints what its endpoints say of them, and ends.
 */
@SpringBootApplication
public class ObservedApplication {
    /** Requests of the program to itself. */
    static final int REQUESTS = 20;

    public static void main(String[] args) {
        SpringApplication.run(ObservedApplication.class, args);
    }
}
