package io.lucce.programs;

import java.util.Map;
import java.util.TreeMap;

/**
 * Allocates known numbers of objects of its own classes at known lines and prints them, one
 * {@code class line count} per line, for comparison with a report. Classes are named as
 * {@link Class#getName()} names them.
 */
public final class Counts {
    private static final Map<String, Long> EXPECTED = new TreeMap<>();
    static Object kept;

    static class Small {}

    static class Large {
        final long[] body = new long[32];
    }

    static class Child extends Small {
        Child() {
            super();
        }
    }

    static class Thrown extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    public static void main(String[] args) throws Exception {
        int n = args.length > 0 ? Integer.parseInt(args[0]) : 1000;
        straight(n);
        branches(n);
        recursive(20, n / 10);
        arrays(n);
        thrown(n);
        threads(4, n);
        EXPECTED.forEach((place, count) -> System.out.println(place + " " + count));
    }

    private static void expect(Class<?> type, int line, long count) {
        EXPECTED.merge(type.getName() + " " + line, count, Long::sum);
    }

    private static int line() {
        return StackWalker.getInstance().walk(s -> s.skip(1).findFirst().get().getLineNumber());
    }

    private static void straight(int n) {
        for (int i = 0; i < n; i++) {
            kept = new Small();
        }
        expect(Small.class, line() - 2, n);
        for (int i = 0; i < n; i++) {
            kept = new Large();
        }
        expect(Large.class, line() - 2, n);
        for (int i = 0; i < n; i++) {
            kept = new Child();
        }
        expect(Child.class, line() - 2, n);
    }

    private static void branches(int n) {
        for (int i = 0; i < n; i++) {
            if (i % 3 == 0) {
                kept = new Small();
            } else {
                kept = new Child();
            }
        }
        expect(Small.class, line() - 5, (n + 2) / 3);
        expect(Child.class, line() - 4, n - (n + 2) / 3);
    }

    private static void recursive(int depth, int n) {
        for (int i = 0; i < n; i++) {
            kept = new Small();
        }
        expect(Small.class, line() - 2, n);
        if (depth > 0) {
            recursive(depth - 1, n);
        }
    }

    private static void arrays(int n) {
        for (int i = 0; i < n; i++) {
            kept = new Small[i % 4];
        }
        expect(Small[].class, line() - 2, n);
        for (int i = 0; i < n; i++) {
            kept = new Large[2][3];
        }
        // The same instruction makes two Large[] besides; they are not counted here.
        expect(Large[][].class, line() - 3, n);
        for (int i = 0; i < n; i++) {
            kept = new Child[2][];
        }
        expect(Child[][].class, line() - 2, n);
    }

    private static void thrown(int n) {
        int line = 0;
        for (int i = 0; i < n; i++) {
            try {
                throwing(i % 5);
            } catch (Thrown e) {
                line = e.getStackTrace()[0].getLineNumber();
            }
        }
        expect(Thrown.class, line, n);
    }

    private static void throwing(int depth) {
        if (depth == 0) {
            throw new Thrown();
        }
        throwing(depth - 1);
    }

    private static void threads(int threads, int n) throws InterruptedException {
        Thread[] running = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            running[t] = new Thread(() -> {
                for (int i = 0; i < n; i++) {
                    kept = new Small();
                }
            });
            running[t].start();
        }
        for (Thread thread : running) {
            thread.join();
        }
        expect(Small.class, line() - 8, (long) threads * n);
    }
}
