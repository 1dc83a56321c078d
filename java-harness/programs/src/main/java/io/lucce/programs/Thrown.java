package io.lucce.programs;

import java.util.Map;
import java.util.TreeMap;

/**
 * Throws exceptions of every origin, and knows how many of each class it threw at which line and
 * whether somebody catches them: prints {@code class (caught)|line|count|0} or {@code (uncaught)} at its end.
 */
public final class Thrown {
    private static final int ROUNDS = 200;
    private static final Map<String, Integer> expected = new TreeMap<>();
    private static int[] array = new int[3];
    private static Object text = "text";
    private static String nothing;
    private static int zero;

    private Thrown() {}

    /** An exception of the program's own, so that no other code throws one. */
    static final class Own extends Exception {}

    static final class Again extends RuntimeException {}

    /** The innermost frame of this class in the trace is where it was thrown. */
    private static void note(Throwable thrown, String how) {
        note(thrown.getClass().getName(), how, line(thrown), 1);
    }

    private static void note(String type, String how, int line, int count) {
        synchronized (expected) {
            expected.merge(type + " (" + how + ")|" + line, count, Integer::sum);
        }
    }

    private static int line(Throwable thrown) {
        for (StackTraceElement frame : thrown.getStackTrace()) {
            if (frame.getClassName().startsWith(Thrown.class.getName())) {
                return frame.getLineNumber();
            }
        }
        throw new AssertionError(thrown);
    }

    private static int here() {
        return new Throwable().getStackTrace()[1].getLineNumber();
    }

    private interface Thrower {
        void run() throws Throwable;
    }

    /** Runs what throws, and notes what it threw. */
    private static void caught(Thrower thrower) {
        try {
            thrower.run();
        } catch (Throwable thrown) {
            note(thrown, "caught");
            return;
        }
        throw new AssertionError("nothing thrown");
    }

    private static void nullPointer() {
        nothing.length();
    }

    private static int index(int at) {
        return array[at];
    }

    private static int divide() {
        return 1 / zero;
    }

    private static Integer cast() {
        return (Integer) text;
    }

    private static int[] negative() {
        return new int[zero - 1];
    }

    private static void store() {
        Object[] strings = new String[1];
        strings[0] = 1;
    }

    private static void monitor() {
        synchronized (nothing) {
            Check.wrong("no monitor");
        }
    }

    private static void own() throws Own {
        throw new Own();
    }

    private static void deep(int depth) throws Own {
        if (depth == 0) {
            throw new Again();
        }
        deep(depth - 1);
    }

    /** What is thrown by the VM's own code, in a native method. */
    private static Object unsupported() throws CloneNotSupportedException {
        return new Thrown().clone();
    }

    /** Thrown again: counted twice, the second time at the line of the {@code throw}. */
    private static void again() {
        try {
            throw new Again();
        } catch (Again thrown) {
            note(thrown, "caught");
            note(thrown.getClass().getName(), "caught", here() + 1, 1);
            throw thrown;
        }
    }

    private static void rethrow() {
        try {
            again();
        } catch (Again expected) {
            // Noted.
        }
    }

    /** A class whose initialiser throws, once: the VM makes another exception of it. */
    private static final class Broken {
        static final int VALUE = broken();

        private static int broken() {
            note(Again.class.getName(), "uncaught", here() + 1, 1);
            throw new Again();
        }
    }

    private static void initialise() {
        try {
            note(ExceptionInInitializerError.class.getName(), "caught", here() + 1, 1);
            array[0] = Broken.VALUE;
        } catch (ExceptionInInitializerError expected) {
            // Noted.
        }
        try {
            note(NoClassDefFoundError.class.getName(), "caught", here() + 1, 1);
            array[0] = Broken.VALUE;
        } catch (NoClassDefFoundError expected) {
            // Noted.
        }
    }

    /** In a class initialiser, thrown and caught inside. */
    private static final class Sound {
        static int value;

        static {
            try {
                own();
            } catch (Own thrown) {
                note(thrown, "caught");
                value = 1;
            }
        }
    }

    private static void uncaught() throws InterruptedException {
        Thread thread = new Thread(() -> {
            throw new Again();
        }, "uncaught");
        thread.setUncaughtExceptionHandler((of, thrown) -> note(thrown, "uncaught"));
        thread.start();
        thread.join();
    }

    private static void all(int round) {
        caught(Thrown::nullPointer);
        caught(() -> index(round + 3));
        caught(Thrown::divide);
        caught(Thrown::cast);
        caught(Thrown::negative);
        caught(Thrown::store);
        caught(Thrown::monitor);
        caught(() -> deep(round % 20));
        caught(Thrown::unsupported);
        rethrow();
        caught(Thrown::own);
    }

    public static void main(String[] args) throws InterruptedException {
        for (int round = 0; round < ROUNDS; round++) {
            all(round);
            uncaught();
        }
        initialise();
        Check.equal(1, Sound.value);
        expected.forEach((key, count) -> System.out.println(key + "|" + count + "|0"));
    }
}
