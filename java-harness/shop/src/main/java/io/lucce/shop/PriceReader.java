package io.lucce.shop;

import org.springframework.stereotype.Component;

/** Prices as suppliers write them. */
@Component
public class PriceReader {
    /** What an article costs that has no price. */
    static final long WITHOUT_PRICE = 100;

    /** Fault: an exception tells that there is no number, once for each second item. */
    long cents(String price) {
        try {
            return Long.parseLong(price);
        } catch (NumberFormatException e) {
            return WITHOUT_PRICE;
        }
    }
}
