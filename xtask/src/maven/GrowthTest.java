package com.acme;

import org.junit.jupiter.api.Test;

/** Makes as many arrays as the property {@code arrays} says. JUnit 4 wants both public. */
public class GrowthTest {
    static byte[][] made;

    @Test
    public void makes() {
        made = new byte[Integer.getInteger("arrays", 10_000)][];
        for (int i = 0; i < made.length; i++) {
            made[i] = new byte[1000];
        }
    }
}
