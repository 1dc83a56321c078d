package io.lucce.programs;

import io.lucce.CallContext;

/**
 * The same events again and again, in orders that hold for a while and then do not: what is remembered of an event, or
 * expected behind another one, is right, or of the same sites in another context, or long gone.
 */
public final class Repeated {
    private static final int CHECKED = 41;
    private static final int STEPS = 3_000;

    private static int random = 1;
    private static int step;
    private static Object kept;

    private Repeated() {}

    public static void main(String[] args) throws Exception {
        Walk[] walks = {Repeated::stay, Repeated::flat, Repeated::deep, new Twice(), new Throwing(), Repeated::down};
        for (int round = 0; round < 3; round++) {
            // In turns: each is expected behind the one before.
            for (int i = 0; i < STEPS; i++) {
                walks[i % walks.length].go(i % 7);
            }
            // In an order that does not repeat, for a while with two that follow each other.
            for (int i = 0; i < STEPS; i++) {
                walks[next(walks.length)].go(next(5));
            }
            for (int i = 0; i < STEPS; i++) {
                walks[i / 100 % walks.length].go(2);
            }
            // So many ways that those of before lose their places.
            for (int i = 0; i < 1_500; i++) {
                many(i);
            }
            kept = others(round);
        }
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    interface Walk {
        void go(int depth);
    }

    private static int next(int bound) {
        random = random * 1664525 + 1013904223;
        return (random >>> 16) % bound;
    }

    private static boolean isChecked() {
        return ++step % CHECKED == 0;
    }

    /** The event, which all reach by the same sites and in other contexts. */
    static void event() {
        kept = new byte[8];
        if (isChecked()) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    /** Many events in a frame that is known already. */
    static void stay(int times) {
        for (int i = 0; i <= times; i++) {
            kept = new int[2];
            if (isChecked()) {
                Check.that(CallContext.current(), new Throwable());
            }
        }
    }

    static void flat(int depth) {
        event();
        event();
    }

    static void deep(int depth) {
        one(depth);
    }

    static void one(int depth) {
        two(depth);
    }

    static void two(int depth) {
        three(depth);
        event();
    }

    static void three(int depth) {
        if (depth % 2 == 0) {
            four(depth);
        } else {
            five(depth);
        }
    }

    static void four(int depth) {
        event();
        five(depth);
    }

    static void five(int depth) {
        event();
    }

    /** Recursion: the same sites, so many frames above one that is known. */
    static void down(int depth) {
        if (depth > 0) {
            down(depth - 1);
        }
        event();
    }

    /** One site with two callees, which call one method. */
    static final class Twice implements Walk {
        private int turn;

        private interface Either {
            void go();
        }

        private final Either[] both = {
            new Either() {
                @Override
                public void go() {
                    event();
                }
            },
            new Either() {
                @Override
                public void go() {
                    event();
                    five(0);
                }
            },
        };

        @Override
        public void go(int depth) {
            both[turn++ / (1 + depth) & 1].go();
        }
    }

    /** Frames that an exception ends between two events. */
    static final class Throwing implements Walk {
        private static final class Ended extends RuntimeException {
            private static final long serialVersionUID = 1;

            Ended() {
                super(null, null, false, false);
            }
        }

        @Override
        public void go(int depth) {
            try {
                fall(depth);
            } catch (Ended e) {
                event();
            }
            five(depth);
        }

        private static void fall(int depth) {
            event();
            if (depth == 0) {
                throw new Ended();
            }
            fall(depth - 1);
            event();
        }
    }

    /** A path for each of `bits`. */
    static void many(int bits) {
        int rest = bits >> 1;
        if (bits == 0) {
            event();
        } else if ((bits & 1) == 0) {
            many(rest);
        } else {
            odd(rest);
        }
    }

    static void odd(int bits) {
        event();
        many(bits);
    }

    /** The same on two threads at once, each in its own order, one of them with what an earlier one of its kind has left. */
    private static Object others(int round) throws InterruptedException {
        Thread[] threads = new Thread[2];
        for (int n = 0; n < threads.length; n++) {
            int own = n;
            threads[n] = new Thread(() -> other(own + round), "repeated-" + n);
            threads[n].setUncaughtExceptionHandler(Check::uncaught);
            threads[n].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return threads;
    }

    private static void other(int own) {
        Object mine = null;
        for (int i = 0; i < STEPS; i++) {
            mine = branch(i * (own + 1) % 5, i % 300 == own);
        }
        kept = mine;
    }

    private static Object branch(int which, boolean checked) {
        switch (which) {
            case 0:
                return leaf(checked);
            case 1:
                return upper(checked);
            default:
                return which == 2 ? branch(0, checked) : upper(checked);
        }
    }

    private static Object upper(boolean checked) {
        Object first = leaf(checked);
        return checked ? first : leaf(false);
    }

    private static Object leaf(boolean checked) {
        if (checked) {
            Check.that(CallContext.current(), new Throwable());
        }
        return new byte[16];
    }
}
