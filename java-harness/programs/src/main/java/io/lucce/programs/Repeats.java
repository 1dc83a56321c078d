package io.lucce.programs;

/**
 * How often programs repeat what they do: {@code -Dlucce.repeats=25} is a quarter of the usual number. A test that runs Java
 * in another way needs each thing a few times; in the usual way it is done until the VM has compiled it.
 */
final class Repeats {
    private static final int PERCENT = Integer.getInteger("lucce.repeats", 100);
    /** The last of a few repeats meets what the others left. */
    private static final int LEAST = 3;

    private Repeats() {}

    /** {@code usual}: the number in the usual way. */
    static int of(int usual) {
        return Math.max(Math.min(usual, LEAST), usual * PERCENT / 100);
    }
}
