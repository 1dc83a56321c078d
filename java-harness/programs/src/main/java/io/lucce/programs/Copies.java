package io.lucce.programs;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Allocates in methods of the JDK that a compiler may replace by code of its own. How much is
 * counted must not depend on whether it did: a test compares interpreted and compiled runs. Checks
 * nothing itself and prints nothing.
 */
public final class Copies {
    static Object kept;

    public static void main(String[] args) {
        int n = args.length > 0 ? Integer.parseInt(args[0]) : 20_000;
        objects(n, new Object[7]);
        ranges(n, new Object[7]);
        strings(n, new String[] {"a", "b"});
        primitives(n, new int[5]);
        wide(n, "\u0394\u03b5\u03bb\u03c4\u03b1".toCharArray());
        boxes(n);
        builders(n);
        grow(n / 10);
    }

    private static void objects(int n, Object[] from) {
        for (int i = 0; i < n; i++) {
            kept = Arrays.copyOf(from, 9);
        }
    }

    private static void ranges(int n, Object[] from) {
        for (int i = 0; i < n; i++) {
            kept = Arrays.copyOfRange(from, 1, 3);
        }
    }

    private static void strings(int n, String[] from) {
        for (int i = 0; i < n; i++) {
            kept = Arrays.copyOf(from, 4);
        }
    }

    private static void primitives(int n, int[] from) {
        for (int i = 0; i < n; i++) {
            kept = Arrays.copyOf(from, 6);
        }
    }

    private static void wide(int n, char[] from) {
        for (int i = 0; i < n; i++) {
            kept = new String(from);
        }
    }

    private static void boxes(int n) {
        for (int i = 0; i < n; i++) {
            kept = Integer.valueOf(i + 1000);
        }
    }

    private static void builders(int n) {
        for (int i = 0; i < n; i++) {
            kept = new StringBuilder().append("x").append(i).toString();
        }
    }

    private static void grow(int n) {
        for (int i = 0; i < n; i++) {
            Map<Integer, Object> map = new HashMap<>();
            ArrayList<Object> list = new ArrayList<>();
            for (int j = 0; j < 20; j++) {
                map.put(j, kept);
                list.add(map);
            }
            kept = list.toArray();
        }
    }
}
