package io.lucce.programs;

/** Allocates arrays of known sizes: an array's header has 16 bytes. */
public final class ArraySizes {
    private static volatile Object kept;

    private ArraySizes() {}

    private static final class Point {
        long x, y, z;
    }

    /** For each power of two k from 5 to 20: k arrays of 2^k bytes, all at one line. */
    private static void mixed() {
        for (int power = 5; power <= 20; power++) {
            for (int i = 0; i < power; i++) kept = new byte[(1 << power) - 16];
        }
    }

    private static void copies() {
        int[] array = new int[1 << 19];
        for (int i = 0; i < 3; i++) kept = array.clone();
    }

    private static void points() {
        for (int i = 0; i < 1_000; i++) kept = new Point();
    }

    public static void main(String[] args) {
        mixed();
        copies();
        kept = new Point();
        points();
    }
}
