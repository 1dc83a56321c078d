package io.lucce.shop;

import java.util.List;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** What customers ordered. */
@Service
public class OrderService {
    private final PurchaseOrderRepository orders;
    private final PriceReader prices;

    OrderService(PurchaseOrderRepository orders, PriceReader prices) {
        this.orders = orders;
        this.prices = prices;
    }

    /** Fault: one query for the orders, and one more for the items of each. */
    @Transactional(readOnly = true)
    public long totalOf(long customer) {
        long total = 0;
        List<PurchaseOrder> found = orders.findByCustomerId(customer);
        for (PurchaseOrder order : found) {
            total += itemTotal(order.getItems());
        }
        return total;
    }

    private long itemTotal(List<OrderItem> items) {
        long total = 0;
        for (OrderItem item : items) {
            total += item.getQuantity() * prices.cents(item.getPrice());
        }
        return total;
    }
}
