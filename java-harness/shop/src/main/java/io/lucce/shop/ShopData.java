package io.lucce.shop;

import java.util.ArrayList;
import java.util.List;
import org.springframework.boot.CommandLineRunner;
import org.springframework.core.annotation.Order;
import org.springframework.stereotype.Component;

/** The data of a new shop: {@value #CUSTOMERS} customers with {@value #ORDERS} orders of {@value #ITEMS} items each. */
@Component
@Order(1)
public class ShopData implements CommandLineRunner {
    static final int CUSTOMERS = 10;
    static final int ORDERS = 20;
    static final int ITEMS = 4;
    static final long PRICE = 250;

    private final CustomerRepository customers;
    private final PurchaseOrderRepository orders;
    private final OrderItemRepository items;

    ShopData(CustomerRepository customers, PurchaseOrderRepository orders, OrderItemRepository items) {
        this.customers = customers;
        this.orders = orders;
        this.items = items;
    }

    /** What each customer has to pay: every second item has no price. */
    static long expectedTotal() {
        return ORDERS * (ITEMS / 2) * (PRICE + PriceReader.WITHOUT_PRICE);
    }

    @Override
    public void run(String... args) {
        List<OrderItem> made = new ArrayList<>();
        for (long customer = 0; customer < CUSTOMERS; customer++) {
            Customer owner = customers.save(new Customer(customer, "customer " + customer));
            for (long order = 0; order < ORDERS; order++) {
                long id = customer * ORDERS + order;
                PurchaseOrder owned = orders.save(new PurchaseOrder(id, owner));
                for (int item = 0; item < ITEMS; item++) {
                    String price = item % 2 == 0 ? Long.toString(PRICE) : "on request";
                    made.add(new OrderItem(id * ITEMS + item, owned, "article " + item, 1, price));
                }
            }
        }
        items.saveAll(made);
    }
}
