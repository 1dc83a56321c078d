package com.acme;

import org.junit.jupiter.api.Test;

/** Makes as many arrays as the property {@code arrays} says. */
class GrowthTest {
    static byte[][] made;

    @Test
    void makes() {
        made = new byte[Integer.getInteger("arrays", 10_000)][];
        for (int i = 0; i < made.length; i++) {
            made[i] = new byte[1000];
        }
    }
}
