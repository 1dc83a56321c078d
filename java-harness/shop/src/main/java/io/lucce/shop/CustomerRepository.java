package io.lucce.shop;

import org.springframework.data.jpa.repository.JpaRepository;

/** The customers. */
public interface CustomerRepository extends JpaRepository<Customer, Long> {}
