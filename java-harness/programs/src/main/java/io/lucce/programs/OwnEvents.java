package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Map;
import java.util.TreeMap;

/**
 * Counts events of its own, and knows how many of each kind it counted at which line, and their sum:
 * prints {@code kind|line|count|sum} for each at its end.
 */
public final class OwnEvents {
    private static final Map<String, long[]> expected = new TreeMap<>();

    private OwnEvents() {}

    /** Called on the line of an event, with what it is given. */
    private static void note(String kind, long value) {
        StackTraceElement at = new Throwable().getStackTrace()[1];
        synchronized (expected) {
            long[] sums = expected.computeIfAbsent(kind + "|" + at.getLineNumber(), key -> new long[2]);
            sums[0]++;
            sums[1] += Math.max(value, 0);
        }
    }

    private static void plain(int n) {
        CallContext.event("plain", n); note("plain", n);
        if (n % 2 == 0) {
            CallContext.event("even", 0); note("even", 0);
        }
    }

    /** One line, several kinds. */
    private static void several(int n) {
        String kind = new StringBuilder("kind ").append(n % 5).toString();
        CallContext.event(kind, 1L << 40); note(kind, 1L << 40);
    }

    private static void odd() {
        CallContext.event(null, 1);
        CallContext.event("negative", -5); note("negative", -5);
        CallContext.event("", 3); note("own", 3);
        CallContext.event("alloc", 9); note("own alloc", 9);
        String umlaut = "größer \u2603 \ud83d\ude00";
        CallContext.event(umlaut, 4); note(umlaut, 4);
        String most = "x".repeat(100);
        CallContext.event(most + "y", 2); note(most, 2);
    }

    /** Texts of one hash, and two of the same bytes; another String each time. */
    private static void alike() {
        for (int round = 0; round < 3; round++) {
            for (String text : new String[] {"Aa", "BB", "AA", "\u4141"}) {
                String kind = new String(text);
                CallContext.event(kind, round); note(kind, round);
            }
        }
    }

    private static void recursive(int depth) {
        if (depth > 0) {
            recursive(depth - 1);
        }
        CallContext.event("recursive", depth); note("recursive", depth);
    }

    private static void thrown(int n) {
        try {
            fail(n);
        } catch (IllegalStateException e) {
            CallContext.event("caught", n); note("caught", n);
        } finally {
            CallContext.event("finally", n); note("finally", n);
        }
    }

    private static void fail(int n) {
        if (n % 3 == 0) {
            throw new IllegalStateException();
        }
    }

    /** No hook replaces such a call: the method itself is the innermost frame. */
    private static void byHandle() throws Throwable {
        MethodType type = MethodType.methodType(void.class, String.class, long.class);
        MethodHandle handle = MethodHandles.lookup().findStatic(CallContext.class, "event", type);
        for (int i = 0; i < 7; i++) {
            handle.invokeExact("by handle", 11L); note("by handle", 11);
        }
        CallContext.class.getMethod("event", String.class, long.class).invoke(null, "by reflection", 12L); note("by reflection", 12);
    }

    public static void main(String[] args) throws Throwable {
        for (int round = 0; round < 300; round++) {
            for (int n = 0; n < 100; n++) {
                plain(n);
                several(n);
                thrown(n);
            }
            recursive(30);
        }
        odd();
        alike();
        byHandle();
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> recursive(100), "own-" + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        expected.forEach((key, sums) -> System.out.println(key + "|" + sums[0] + "|" + sums[1]));
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }
}
