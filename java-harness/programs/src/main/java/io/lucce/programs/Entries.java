package io.lucce.programs;

import io.lucce.CallContext;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntUnaryOperator;

/**
 * Counts by itself how often each of its methods is entered from which line: prints
 * {@code class|method|line of the caller|count} for each at its end.
 */
public final class Entries {
    private static final Map<String, long[]> entries = new TreeMap<>();
    private static int sink;

    private Entries() {}

    /** The first thing in each method that is counted. */
    private static void here() {
        StackTraceElement[] trace = new Throwable().getStackTrace();
        String line = Integer.toString(trace[2].getLineNumber());
        String key = String.join("|", trace[1].getClassName(), trace[1].getMethodName(), line);
        synchronized (entries) {
            entries.computeIfAbsent(key, unused -> new long[1])[0]++;
        }
    }

    private abstract static class Shape {
        Shape() {
            here();
        }

        abstract int area(int n);

        int twice(int n) {
            here();
            return 2 * area(n);
        }
    }

    private static class Square extends Shape {
        @Override
        int area(int n) {
            here();
            return n * n;
        }
    }

    private static final class Circle extends Shape {
        @Override
        int area(int n) {
            here();
            return 3 * n * n;
        }
    }

    private static final class Odd extends Square {
        @Override
        int area(int n) {
            here();
            return super.area(n) + 1;
        }
    }

    private interface Named {
        default int name(int n) {
            here();
            return n;
        }
    }

    private static final class Anna implements Named {}

    private static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;

        Failure(int n) {
            super("failure " + n);
            here();
        }
    }

    private static int recursive(int n) {
        here();
        return n == 0 ? 0 : 1 + recursive(n - 1);
    }

    private static boolean even(int n) {
        here();
        return n == 0 || odd(n - 1);
    }

    private static boolean odd(int n) {
        here();
        return n != 0 && even(n - 1);
    }

    private static synchronized int locked(int n) {
        here();
        return n;
    }

    private static int fails(int n) {
        here();
        if (n % 3 == 0) {
            throw new Failure(n);
        }
        return n;
    }

    private static int catches(int n) {
        here();
        try {
            return fails(n);
        } catch (Failure e) {
            return fails(1);
        }
    }

    /** Loops back to its first instruction. */
    private static int loops(int n) {
        do {
            n -= 7;
        } while (n > 0);
        return n;
    }

    /** Calls nothing: its entries are told by its callers. */
    private static int leaf(int n) {
        return n + 1;
    }

    private static void work(Shape[] shapes, Named named, int round) {
        here();
        for (int i = 0; i < 12; i++) {
            sink += shapes[i % shapes.length].twice(i);
            sink += shapes[(i + round) % shapes.length].area(i);
        }
        sink += named.name(round);
        sink += recursive(round % 40);
        sink += even(round % 10) ? 1 : 0;
        sink += locked(round);
        sink += catches(round);
        IntUnaryOperator operator = n -> {
            here();
            return n;
        };
        sink += operator.applyAsInt(round);
        String implicit = null;
        try {
            sink += implicit.length();
        } catch (NullPointerException e) {
            sink += locked(1);
        }
    }

    public static void main(String[] args) {
        Shape[] shapes = {new Square(), new Circle(), new Odd()};
        Named named = new Anna();
        for (int round = 0; round < 60; round++) {
            work(shapes, named, round);
        }
        for (int i = 0; i < 30_000; i++) {
            sink += leaf(i);
            sink += loops(i % 50);
        }
        for (int i = 0; i < 17; i++) {
            sink += leaf(i);
        }
        entries.forEach((key, count) -> System.out.println(String.join("|", key, Long.toString(count[0]))));
        System.out.println("io.lucce.programs.Entries|leaf|164|30000");
        System.out.println("io.lucce.programs.Entries|loops|165|30000");
        System.out.println("io.lucce.programs.Entries|leaf|168|17");
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }
}
