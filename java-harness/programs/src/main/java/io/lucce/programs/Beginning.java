package io.lucce.programs;

/** The main thread allocates little, at once, and ends: 266,240 bytes in 2,560 arrays of 104 bytes. */
public final class Beginning {
    static Object sink;

    private Beginning() {}

    public static void main(String[] args) {
        for (int i = 0; i < 2560; i++) {
            sink = new byte[88];
        }
    }
}
