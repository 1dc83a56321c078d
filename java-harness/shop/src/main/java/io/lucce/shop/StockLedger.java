package io.lucce.shop;

import java.util.HashMap;
import java.util.Map;
import org.springframework.stereotype.Component;

/** How many of each article are left. */
@Component
public class StockLedger {
    private final Map<String, Integer> stock = new HashMap<>();

    /** Fault: the lock is held while the warehouse answers. */
    synchronized int reserve(String article) {
        int left = stock.merge(article, -1, Integer::sum);
        askWarehouse();
        return left;
    }

    synchronized int left(String article) {
        return stock.getOrDefault(article, 0);
    }

    /** Takes so long that other waits of a busy machine are shorter. */
    private static void askWarehouse() {
        try {
            Thread.sleep(25);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
