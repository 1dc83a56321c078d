package io.lucce.shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/**
 * A shop with four known faults: {@link AuditTrail} leaks, {@link OrderService} queries once for each order, {@link
 * StockLedger} has one lock for two endpoints, and {@link PriceReader} throws exceptions for control flow.
 *
 * <p>{@code --shop.requests=N}: {@link ShopClient} sends N requests of each kind over loopback, then the program ends. Without
 * it, the program serves until it is stopped.
 */
@SpringBootApplication
public class ShopApplication {
    public static void main(String[] args) {
        SpringApplication.run(ShopApplication.class, args);
    }
}
