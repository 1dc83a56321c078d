package io.lucce.shop;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.Id;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import java.util.ArrayList;
import java.util.List;

/** An order; its items are loaded when they are asked for. */
@Entity
public class PurchaseOrder {
    @Id private long id;

    @ManyToOne(fetch = FetchType.LAZY)
    private Customer customer;

    @OneToMany(mappedBy = "purchaseOrder", fetch = FetchType.LAZY)
    private List<OrderItem> items = new ArrayList<>();

    protected PurchaseOrder() {}

    PurchaseOrder(long id, Customer customer) {
        this.id = id;
        this.customer = customer;
    }

    public List<OrderItem> getItems() {
        return items;
    }
}
