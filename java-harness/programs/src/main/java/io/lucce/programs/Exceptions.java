package io.lucce.programs;

import io.lucce.CallContext;

/** Exceptions through many frames, caught at all depths, thrown by programs and by the VM. */
public final class Exceptions {
    static Object kept;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Repeats.of(100); i++) {
            depths(i);
            finallys(i);
            nested(i);
            byVm(i);
            leaves(i);
            loops(i);
            resources(i);
            rethrown(i);
            Check.that(CallContext.current(), new Throwable());
        }
        hot();
        Check.done();
    }

    static final class Signal extends RuntimeException {
        private static final long serialVersionUID = 1;
        final int level;

        Signal(int level) {
            super(null, null, false, false);
            this.level = level;
        }
    }

    /** Thrown at depth 0, caught by the frame whose depth it names; frames in between have no handler. */
    static int down(int depth, int catchAt) {
        kept = new byte[100];
        if (depth == 0) {
            Check.that(CallContext.current(), new Throwable());
            throw new Signal(catchAt);
        }
        if (depth % 4 != 0) {
            return down(depth - 1, catchAt) + 1;
        }
        try {
            return down(depth - 1, catchAt) + 1;
        } catch (Signal signal) {
            kept = new byte[101];
            Check.that(CallContext.current(), new Throwable());
            if (signal.level == depth) {
                return 0;
            }
            throw signal;
        }
    }

    static void depths(int n) {
        int depth = 4 + n % 37;
        int at = 4 * (1 + n % (depth / 4));
        Check.equal(depth - at, down(depth, at));
        Check.that(CallContext.current(), new Throwable());
        try {
            down(depth, -1);
            Check.wrong("must throw");
        } catch (Signal signal) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static int finallyCount;

    static int withFinally(int depth) {
        try {
            if (depth == 0) {
                throw new Signal(0);
            }
            return withFinally(depth - 1);
        } finally {
            finallyCount++;
            kept = new byte[102];
            Check.that(CallContext.current(), new Throwable());
        }
    }

    /** The finally block leaves with a value: the exception is gone. */
    @SuppressWarnings("finally")
    static int swallowing(int depth) {
        try {
            return withFinally(depth);
        } finally {
            Check.that(CallContext.current(), new Throwable());
            return 103;
        }
    }

    static void finallys(int n) {
        finallyCount = 0;
        Check.equal(103, swallowing(n % 12));
        Check.equal(n % 12 + 1, finallyCount);
        Check.that(CallContext.current(), new Throwable());
    }

    static void nested(int n) {
        int steps = 0;
        try {
            try {
                try {
                    steps++;
                    down(3, -1);
                } catch (IllegalStateException e) {
                    Check.wrong("another exception");
                } finally {
                    steps++;
                    Check.that(CallContext.current(), new Throwable());
                }
            } catch (Signal signal) {
                Check.that(CallContext.current(), new Throwable());
                try {
                    down(n % 3, -1);
                } catch (Signal again) {
                    Check.that(CallContext.current(), new Throwable());
                    throw new IllegalStateException(again);
                }
            }
        } catch (IllegalStateException e) {
            steps++;
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(3, steps);
        Check.that(CallContext.current(), new Throwable());
    }

    private static int divide(int a, int b) {
        return a / b;
    }

    private static int element(int[] array, int index) {
        return array[index];
    }

    private static int length(Object[] array) {
        return array.length;
    }

    private static String cast(Object value) {
        return (String) value;
    }

    private static void store(Object[] array, Object value) {
        array[0] = value;
    }

    private static Object negative(int length) {
        return new byte[length];
    }

    private static Object negativeMulti(int length) {
        return new Object[2][length];
    }

    private static void monitor(Object lock) {
        synchronized (lock) {
            kept = new byte[104];
        }
    }

    private static void nullThrow() {
        RuntimeException none = null;
        throw none;
    }

    private static int unbox(Integer number) {
        return number;
    }

    private static void rawThrow(Object[] array, int kind) {
        switch (kind) {
            case 0:
                divide(kind + 1, kind);
                break;
            case 1:
                element(new int[kind], kind);
                break;
            case 2:
                length(null);
                break;
            case 3:
                cast(kind);
                break;
            case 4:
                store(array, new Object());
                break;
            case 5:
                negative(-kind);
                break;
            case 6:
                negativeMulti(-kind);
                break;
            case 7:
                monitor(null);
                break;
            case 8:
                nullThrow();
                break;
            case 9:
                unbox(null);
                break;
            case 10:
                kept = new String((char[]) null);
                break;
            case 11:
                "abc".substring(kind);
                break;
            case 12:
                System.arraycopy(new int[1], 0, new long[1], 0, 1);
                break;
            case 13:
                Integer.parseInt("eleven");
                break;
            case 14:
                java.util.List.of(1).iterator().remove();
                break;
            case 15:
                new java.util.ArrayDeque<>().removeFirst();
                break;
            default:
                throw new Signal(kind);
        }
    }

    static void byVm(int n) {
        int caught = 0;
        for (int kind = 0; kind < 17; kind++) {
            try {
                rawThrow(new String[1], kind);
                Check.wrong("must throw: " + kind);
            } catch (ArithmeticException | ArrayIndexOutOfBoundsException e) {
                caught++;
                Check.that(CallContext.current(), new Throwable());
            } catch (NullPointerException e) {
                caught++;
                kept = new byte[105];
                Check.that(CallContext.current(), new Throwable());
            } catch (RuntimeException e) {
                caught++;
                Check.that(CallContext.current(), new Throwable());
            }
        }
        Check.equal(17, caught);
        Check.that(CallContext.current(), new Throwable());
    }

    /** Handlers in methods that call nothing. */
    static void leaves(int n) {
        callsBehind(n % 2 - 1);
        allocatesBehind(n % 2);
        kept = leafDivide(n, n % 2);
        Check.that(CallContext.current(), new Throwable());
        Check.equal(n % 4 < 3 ? n % 4 : -1, leafIndex(new int[] {0, 1, 2}, n % 4));
        Check.that(CallContext.current(), new Throwable());
        kept = leafNull(n % 2 == 0 ? null : new int[1]);
        Check.equal(true, leafCast(n) == null);
        Check.that(CallContext.current(), new Throwable());
        Check.equal(n % 2 == 0 ? 1 : 2, leafStore(n % 2 == 0 ? new Object[1] : new String[1]));
        Check.that(CallContext.current(), new Throwable());
    }

    private static final int[] NO_INDEX = {};
    private static int caughtIndex;

    /** It catches what the VM throws, and has no hooks. */
    private static void catching(int[] array, int index) {
        try {
            caughtIndex = array[index];
        } catch (ArrayIndexOutOfBoundsException e) {
            caughtIndex = -1;
        }
    }

    /** A call and nothing else, which needs no local for its slot, behind one that may throw and goes on. */
    private static void callsBehind(int index) {
        catching(NO_INDEX, index);
        step();
    }

    private static void allocatesBehind(int index) {
        catching(NO_INDEX, index);
        kept = new Object();
    }

    private static void step() {
        kept = new byte[107];
        Check.that(CallContext.current(), new Throwable());
    }

    private static Object leafDivide(int a, int b) {
        try {
            return new int[a / b];
        } catch (ArithmeticException e) {
            return new long[1];
        }
    }

    private static int leafIndex(int[] array, int index) {
        try {
            return array[index];
        } catch (ArrayIndexOutOfBoundsException e) {
            kept = new byte[106];
            return -1;
        }
    }

    private static Object leafNull(int[] array) {
        try {
            array[0]++;
            return array;
        } catch (NullPointerException e) {
            return new Object[] {e};
        }
    }

    private static String leafCast(Object value) {
        try {
            return (String) value;
        } catch (ClassCastException e) {
            kept = new byte[107];
            return null;
        }
    }

    private static int leafStore(Object[] array) {
        try {
            array[0] = new byte[108];
            return 1;
        } catch (ArrayStoreException e) {
            kept = new byte[109];
            return 2;
        }
    }

    static void loops(int n) {
        int caught = 0;
        for (int i = 0; i < 20; i++) {
            try {
                if (i % 3 == n % 3) {
                    continue;
                }
                down(i % 5, -1);
            } catch (Signal signal) {
                caught++;
                if (i == 18) {
                    break;
                }
            } finally {
                kept = new byte[110];
                Check.that(CallContext.current(), new Throwable());
            }
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(true, caught > 10);
    }

    private static final class Resource implements AutoCloseable {
        private final boolean fails;

        Resource(boolean fails) {
            this.fails = fails;
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        public void close() {
            kept = new byte[111];
            Check.that(CallContext.current(), new Throwable());
            if (fails) {
                down(2, -1);
            }
        }
    }

    static void resources(int n) {
        try (Resource first = new Resource(n % 2 == 0); Resource second = new Resource(n % 3 == 0)) {
            kept = new Object[] {first, second};
            Check.that(CallContext.current(), new Throwable());
            if (n % 5 == 0) {
                down(n % 7, -1);
            }
        } catch (Signal signal) {
            Check.that(CallContext.current(), new Throwable());
        }
        Check.that(CallContext.current(), new Throwable());
    }

    private static void wrapping(int depth) throws Exception {
        if (depth == 0) {
            throw new java.io.IOException("innermost");
        }
        try {
            wrapping(depth - 1);
        } catch (Exception e) {
            Check.that(CallContext.current(), new Throwable());
            throw new Exception("at " + depth, e);
        }
    }

    static void rethrown(int n) {
        try {
            wrapping(n % 9 + 1);
            Check.wrong("must throw");
        } catch (Exception e) {
            Check.equal("at " + (n % 9 + 1), e.getMessage());
            Check.that(CallContext.current(), new Throwable());
        }
    }

    /** Often enough that compiled code throws, with and without a preallocated exception. */
    static void hot() {
        int caught = 0;
        for (int i = 0; i < 60_000; i++) {
            try {
                if ((i & 1) == 0) {
                    element(EMPTY, i);
                } else {
                    hotThrow(i & 7);
                }
            } catch (ArrayIndexOutOfBoundsException | Signal e) {
                caught++;
            }
            if (i % 1000 == 0) {
                Check.that(CallContext.current(), new Throwable());
            }
        }
        Check.equal(60_000, caught);
        Check.that(CallContext.current(), new Throwable());
    }

    private static final int[] EMPTY = {};
    private static final Signal SIGNAL = new Signal(0);

    private static int hotThrow(int depth) {
        if (depth == 0) {
            throw SIGNAL;
        }
        return hotThrow(depth - 1) + 1;
    }
}
