package io.lucce.programs;

import io.lucce.CallContext;

/** Ten thousand frames: direct, mutual and irregular recursion. Wants -XX:MaxJavaStackTraceDepth=0. */
public final class DeepRecursion {
    private static final int DEPTH = 10_000;
    static volatile Object kept;

    public static void main(String[] args) throws Exception {
        Thread thread = new Thread(null, DeepRecursion::all, "deep", 1L << 30);
        thread.setUncaughtExceptionHandler(Check::uncaught);
        thread.start();
        thread.join();
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    static void all() {
        Check.equal(DEPTH, direct(DEPTH));
        Check.that(CallContext.current(), new Throwable());
        Check.equal(DEPTH, even(DEPTH));
        Check.that(CallContext.current(), new Throwable());
        Check.equal(DEPTH, irregular(DEPTH, 12345));
        Check.that(CallContext.current(), new Throwable());
        Check.equal(987, fibonacci(15));
        Check.equal(125, ackermann(2, 61));
        Check.that(CallContext.current(), new Throwable());
        try {
            failing(DEPTH);
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(DEPTH, virtual(new Node[] {new Left(), new Right(), new Turn()}, DEPTH));
        Check.that(CallContext.current(), new Throwable());
    }

    private static boolean checked(int depth) {
        return depth % 1000 == 0 || depth < 5;
    }

    static int direct(int depth) {
        kept = new byte[130];
        if (checked(depth)) {
            Check.that(CallContext.current(), new Throwable());
        }
        int below = depth == 0 ? 0 : direct(depth - 1) + 1;
        if (checked(depth)) {
            Check.that(CallContext.current(), new Throwable());
        }
        return below;
    }

    static int even(int depth) {
        kept = new byte[131];
        if (checked(depth)) {
            Check.that(CallContext.current(), new Throwable());
        }
        return depth == 0 ? 0 : odd(depth - 1) + 1;
    }

    static int odd(int depth) {
        if (checked(depth - 1)) {
            Check.that(CallContext.current(), new Throwable());
        }
        if (depth % 7 == 0) {
            return depth == 0 ? 0 : even(depth - 1) + 1;
        }
        return depth == 0 ? 0 : even(depth - 1) + 1;
    }

    /** Many sites and methods in an order that never repeats. */
    static int irregular(int depth, int random) {
        kept = new byte[132];
        if (checked(depth)) {
            Check.that(CallContext.current(), new Throwable());
        }
        if (depth == 0) {
            return 0;
        }
        int next = random * 1103515245 + 12345;
        switch ((next >>> 16) & 3) {
            case 1:
                return irregular2(depth - 1, next) + 1;
            case 2:
                return irregular3(depth - 1, next) + 1;
            default:
                return irregular(depth - 1, next) + 1;
        }
    }

    static int irregular2(int depth, int random) {
        return depth == 0 ? 0 : irregular3(depth - 1, random) + 1;
    }

    static int irregular3(int depth, int random) {
        kept = new byte[133];
        return irregular(depth, random);
    }

    static int fibonacci(int n) {
        if (n % 5 == 0) {
            Check.that(CallContext.current(), new Throwable());
        }
        return n < 2 ? 1 : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static int ackermann(int m, int n) {
        if (n == 0) {
            Check.that(CallContext.current(), new Throwable());
        }
        if (m == 0) {
            return n + 1;
        }
        return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
    }

    static int failing(int depth) {
        if (depth == 0) {
            Check.that(CallContext.current(), new Throwable());
            throw new IllegalStateException("from the bottom");
        }
        if (depth % 1000 != 0) {
            return failing(depth - 1);
        }
        try {
            return failing(depth - 1);
        } catch (IllegalStateException e) {
            kept = new byte[134];
            Check.that(CallContext.current(), new Throwable());
            throw e;
        }
    }

    abstract static class Node {
        abstract int step(Node[] nodes, int depth);

        int dispatch(Node[] nodes, int depth) {
            if (checked(depth)) {
                Check.that(CallContext.current(), new Throwable());
            }
            return depth == 0 ? 0 : nodes[depth % 3].step(nodes, depth - 1) + 1;
        }
    }

    static final class Left extends Node {
        @Override
        int step(Node[] nodes, int depth) {
            return dispatch(nodes, depth);
        }
    }

    static final class Right extends Node {
        @Override
        int step(Node[] nodes, int depth) {
            kept = new byte[135];
            return nodes[depth % 2].dispatch(nodes, depth);
        }
    }

    static final class Turn extends Node {
        @Override
        int step(Node[] nodes, int depth) {
            return this.dispatch(nodes, depth);
        }
    }

    static int virtual(Node[] nodes, int depth) {
        return nodes[0].dispatch(nodes, depth);
    }
}
