package io.lucce.shop;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.springframework.stereotype.Component;

/** Who asked for what. */
@Component
public class AuditTrail {
    private final AtomicLong number = new AtomicLong();
    private final Map<Long, AuditEntry> entries = new ConcurrentHashMap<>();

    /** Fault: no entry is ever removed. */
    void record(String endpoint, long customer) {
        entries.put(number.incrementAndGet(), new AuditEntry(endpoint, customer, new byte[2048]));
    }

    int size() {
        return entries.size();
    }

    /** One request. */
    record AuditEntry(String endpoint, long customer, byte[] detail) {}
}
