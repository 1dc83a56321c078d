package io.lucce.shop;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.Id;
import jakarta.persistence.ManyToOne;

/** One line of an order. */
@Entity
public class OrderItem {
    @Id private long id;

    @ManyToOne(fetch = FetchType.LAZY)
    private PurchaseOrder purchaseOrder;

    private String article;
    private int quantity;

    /** As the supplier wrote it: a number of cents, or a text without one. */
    private String price;

    protected OrderItem() {}

    OrderItem(long id, PurchaseOrder purchaseOrder, String article, int quantity, String price) {
        this.id = id;
        this.purchaseOrder = purchaseOrder;
        this.article = article;
        this.quantity = quantity;
        this.price = price;
    }

    public int getQuantity() {
        return quantity;
    }

    public String getPrice() {
        return price;
    }
}
