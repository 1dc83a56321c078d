package io.lucce.observed;

import io.lucce.ThreadCounts;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import java.util.concurrent.locks.LockSupport;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** A handler that allocates a known number of bytes. */
@RestController
public class OrderController {
    /** Bytes of the array of each request. */
    static final int ORDER_BYTES = 100_000;
    /** Bytes of the array of each observation. */
    static final int CHECK_BYTES = 1_000;

    private final ObservationRegistry observations;

    /** What was made, so that no compiler removes it. */
    private volatile byte[] made;

    OrderController(ObservationRegistry observations) {
        this.observations = observations;
    }

    /** What the handler's thread does while it makes one array and waits once. */
    public record Order(int id, long objects, long bytes, long waits) {}

    @GetMapping("/orders/{id}")
    Order order(@PathVariable int id) {
        Observation.createNotStarted("order.check", observations).observe(this::check);
        // Loads the class before it is counted.
        LockSupport.parkNanos(1);
        ThreadCounts.Measurement measurement = ThreadCounts.begin();
        made = new byte[ORDER_BYTES];
        LockSupport.parkNanos(1_000_000);
        ThreadCounts counts = measurement.end().orElseThrow();
        return new Order(id, counts.objects(), counts.bytes(), counts.waits());
    }

    private void check() {
        made = new byte[CHECK_BYTES];
    }
}
