package io.lucce.shop;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** The endpoints. */
@RestController
public class ShopController {
    private final OrderService orders;
    private final StockLedger stock;
    private final AuditTrail audit;

    ShopController(OrderService orders, StockLedger stock, AuditTrail audit) {
        this.orders = orders;
        this.stock = stock;
        this.audit = audit;
    }

    /** What one customer has to pay, in cents. */
    public record Total(long customer, long cents) {}

    /** How many of an article are left. */
    public record Stock(String article, int left) {}

    @GetMapping("/customers/{customer}/total")
    Total total(@PathVariable long customer) {
        audit.record("total", customer);
        return new Total(customer, orders.totalOf(customer));
    }

    @PostMapping("/stock/{article}/reservations")
    Stock reserve(@PathVariable String article) {
        return new Stock(article, stock.reserve(article));
    }

    @GetMapping("/stock/{article}")
    Stock left(@PathVariable String article) {
        return new Stock(article, stock.left(article));
    }
}
