package io.lucce.programs;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;

/**
 * Makes objects of two types at one line: one is never let go, the other is in a cache that is full. Goes on until it is ended, and
 * prints {@code working} now and then.
 */
public final class Mixed {
    private static final int CACHED = 400;

    static final class Node {
        long a, b, c, d, e, f, g, h;
        final Object payload;

        Node(Object payload) {
            this.payload = payload;
        }
    }

    static final List<Object> LEAK = new ArrayList<>();
    static final Queue<Object> CACHE = new ArrayDeque<>();

    private Mixed() {}

    private static void handle() {
        LEAK.add(new Node(null)); CACHE.add(new long[300]); if (CACHE.size() > CACHED) CACHE.poll();
    }

    public static void main(String[] args) throws Exception {
        for (long round = 0; ; round++) {
            for (int i = 0; i < 60; i++) {
                handle();
            }
            if (round < 100 || round % 4 == 0) {
                System.gc();
            } else {
                Thread.sleep(20);
            }
            if (round % 20 == 0) {
                System.out.println("working " + LEAK.size());
            }
        }
    }
}
