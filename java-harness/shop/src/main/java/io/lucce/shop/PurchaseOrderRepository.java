package io.lucce.shop;

import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;

/** The orders. */
public interface PurchaseOrderRepository extends JpaRepository<PurchaseOrder, Long> {
    List<PurchaseOrder> findByCustomerId(long customerId);
}
