package io.lucce.shop;

import org.springframework.data.jpa.repository.JpaRepository;

/** The lines of all orders. */
public interface OrderItemRepository extends JpaRepository<OrderItem, Long> {}
