package io.lucce.programs;

import io.lucce.CallContext;

/** StackOverflowError, wherever it strikes, and whichever method recovers from it. */
public final class StackOverflow {
    static Object kept;
    static int depth;

    public static void main(String[] args) throws Exception {
        inThread("bottom", StackOverflow::bottom);
        inThread("levels", StackOverflow::levels);
        inThread("library", StackOverflow::library);
        inThread("mutual", StackOverflow::mutual);
        inThread("finally", StackOverflow::inFinally);
        inThread("constructor", StackOverflow::inConstructor);
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    private static void inThread(String name, Runnable body) throws InterruptedException {
        Thread thread = new Thread(null, body, name, 512 * 1024);
        thread.setUncaughtExceptionHandler(Check::uncaught);
        thread.start();
        thread.join();
        Check.that(CallContext.current(), new Throwable());
    }

    static int endless(int n) {
        kept = new byte[120];
        depth++;
        return endless(n + 1) + 1;
    }

    private static void after(int n) {
        kept = new byte[121];
        Check.that(CallContext.current(), new Throwable());
        if (n > 0) {
            after(n - 1);
        }
        Check.that(CallContext.current(), new Throwable());
    }

    /** Caught where nearly the whole stack is gone, 200 times. */
    static void bottom() {
        for (int i = 0; i < 200; i++) {
            depth = 0;
            try {
                endless(0);
                Check.wrong("must overflow");
            } catch (StackOverflowError e) {
                kept = new byte[122];
                Check.that(CallContext.current(), new Throwable());
            }
            Check.equal(true, depth > 100);
            after(i % 5);
        }
        Check.that(CallContext.current(), new Throwable());
    }

    static int caughtInside;

    /** Each eighth frame has a handler: many of them overflow again while they handle. */
    static int climbing(int n) {
        kept = new byte[123];
        if (n % 8 != 0) {
            return climbing(n + 1);
        }
        try {
            return climbing(n + 1);
        } catch (StackOverflowError e) {
            caughtInside++;
            kept = new byte[124];
            if (n > 200) {
                throw e;
            }
            Check.that(CallContext.current(), new Throwable());
            return n;
        }
    }

    static void levels() {
        for (int i = 0; i < 40; i++) {
            Check.equal(200, climbing(0));
            Check.that(CallContext.current(), new Throwable());
            after(3);
        }
        Check.equal(true, caughtInside > 40);
        recovering(0);
        Check.that(CallContext.current(), new Throwable());
    }

    /** Frames recover at depths of their own, go on calling, and overflow again. */
    static void recovering(int n) {
        for (int i = 0; i < 3 && n < 30; i++) {
            try {
                endless(0);
            } catch (StackOverflowError e) {
                Check.that(CallContext.current(), new Throwable());
            }
        }
        if (n < 30) {
            recovering(n + 1);
        }
        Check.that(CallContext.current(), new Throwable());
    }

    /** Overflows inside the library's own code. */
    static int throughLibrary(int n, int last) {
        if (n >= last) {
            return n;
        }
        kept = java.util.List.of(n, n + 1).stream().map(x -> throughLibrary(x + 1, last)).collect(java.util.stream.Collectors.toList());
        return n;
    }

    static void library() {
        // First whatever happens once: a class whose initialiser overflows is lost for good.
        throughLibrary(0, 3);
        for (int i = 0; i < 30; i++) {
            try {
                throughLibrary(0, Integer.MAX_VALUE);
                Check.wrong("must overflow");
            } catch (StackOverflowError e) {
                Check.that(CallContext.current(), new Throwable());
            }
            after(2);
        }
    }

    static int even(int n) {
        return n == -1 ? 0 : odd(n + 1) + 1;
    }

    static int odd(int n) {
        Object made = new byte[125];
        return n == -1 ? made.hashCode() : even(n + 1) + 1;
    }

    static void mutual() {
        for (int i = 0; i < 50; i++) {
            try {
                even(0);
                Check.wrong("must overflow");
            } catch (StackOverflowError e) {
                Check.that(CallContext.current(), new Throwable());
            }
            after(1);
        }
    }

    static long cleanups;

    static void cleaning(int n) {
        try {
            cleaning(n + 1);
        } finally {
            cleanups++;
            if (n < 50) {
                kept = new byte[126];
                Check.that(CallContext.current(), new Throwable());
            }
        }
    }

    static void inFinally() {
        for (int i = 0; i < 20; i++) {
            try {
                cleaning(0);
                Check.wrong("must overflow");
            } catch (StackOverflowError e) {
                Check.that(CallContext.current(), new Throwable());
            }
            after(2);
        }
    }

    static class Endless {
        final Object next;

        Endless(int n) {
            kept = new byte[127];
            next = new Endless(n + 1);
        }
    }

    static void inConstructor() {
        for (int i = 0; i < 40; i++) {
            try {
                kept = new Endless(0);
                Check.wrong("must overflow");
            } catch (StackOverflowError e) {
                Check.that(CallContext.current(), new Throwable());
            }
            after(2);
        }
    }
}
