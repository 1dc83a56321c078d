package io.lucce.programs;

import io.lucce.CallContext;
import java.util.Random;

/**
 * Decodes numbers that were never given out: each is refused, with a message that names it, or is one of another context
 * of this run. Numbers that were given out mean what they meant.
 */
public final class BadNumbers {
    private static int refused;

    private BadNumbers() {}

    private static void decode(long number) {
        try {
            StackTraceElement[] trace = CallContext.decode(number);
            // Without the agent, or for the number of nothing, it has no frames.
            Check.equal(CallContext.isActive() && number != 0, trace.length > 0);
            for (StackTraceElement frame : trace) {
                if (frame == null || frame.getClassName().isEmpty()) {
                    Check.wrong(Long.toHexString(number) + " has a frame without a class");
                }
            }
        } catch (IllegalArgumentException e) {
            refused++;
            if (!e.getMessage().contains("0x" + Long.toHexString(number))) {
                Check.wrong(e.getMessage());
            }
        }
    }

    public static void main(String[] args) {
        long known = CallContext.current(); Throwable here = new Throwable();
        long[] made = {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE, known + 1, known - 1, ~known, -known, known << 1};
        for (long number : made) {
            decode(number);
        }
        for (int bit = 0; bit < Long.SIZE; bit++) {
            decode(known ^ 1L << bit);
            decode(1L << bit);
        }
        Random random = new Random(1);
        for (int i = 0; i < 20_000; i++) {
            decode(random.nextLong() >>> random.nextInt(Long.SIZE));
        }
        Check.equal(CallContext.isActive(), refused > 10_000);
        Check.that(known, here);
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }
}
