package io.lucce.observed;

import io.lucce.CallContext;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;

/** Sends requests to the program itself, and prints its endpoints' answers. */
@Component
@Lazy(false)
public class OrderClient {
    /** The header of an array. */
    private static final int HEADER = 16;
    /** How long a figure of a meter is used, and a little. */
    private static final long METER_MILLIS = 10_100;

    private final ServletWebServerApplicationContext context;

    OrderClient(ServletWebServerApplicationContext context) {
        this.context = context;
    }

    @EventListener(ApplicationReadyEvent.class)
    void sendRequests() throws IOException, InterruptedException {
        // With delay=ready, the frameworks' start is not counted.
        CallContext.ready();
        String address = "http://127.0.0.1:" + context.getWebServer().getPort();
        int failed = 0;
        for (int id = 0; id < ObservedApplication.REQUESTS; id++) {
            String expected = "{\"id\":" + id + ",\"objects\":1,\"bytes\":" + (OrderController.ORDER_BYTES + HEADER)
                + ",\"waits\":1}";
            String found = read(address + "/orders/" + id);
            if (!found.equals(expected)) {
                System.out.println("WRONG " + found);
                failed++;
            }
        }
        System.out.println("STATUS " + read(address + "/actuator/lucce"));
        System.out.println("EXPLAIN " + read(address + "/actuator/lucce/explain"));
        // Meters older than the last request are read again, and then the new ones have lines.
        Thread.sleep(METER_MILLIS);
        read(address + "/actuator/prometheus");
        read(address + "/actuator/prometheus").lines().filter(line -> line.startsWith("lucce_"))
            .forEach(line -> System.out.println("METRIC " + line));
        System.out.println(failed == 0 ? "OK" : "FAILED");
        int code = failed == 0 ? 0 : 1;
        SpringApplication.exit(context, () -> code);
        System.exit(code);
    }

    private static String read(String address) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) URI.create(address).toURL().openConnection();
        try (var answer = connection.getInputStream()) {
            return new String(answer.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
