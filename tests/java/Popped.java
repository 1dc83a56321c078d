import io.lucce.CallContext;
import io.lucce.programs.Check;
import java.lang.reflect.Method;

/**
 * A program whose frames a debugger ends, see {@code Debugs}: it pops them, so that their callers call again, or has them
 * return at once. What it does then has the JVM's own trace.
 */
public final class Popped {
    private static Object kept;
    private static int turn;
    private static int next = 1;
    static boolean isIn;

    /** The debugger waits here. {@code what}: so many frames are popped from this one on; below 0: it returns at once. */
    static void stop(int what) {
        kept = new int[3];
    }

    /** Whether this is the first time for the present turn. */
    private static boolean isFirst() {
        boolean is = next == turn;
        if (is) {
            next++;
        }
        return is;
    }

    private static void event() {
        kept = new byte[1];
        Check.that(CallContext.current(), new Throwable());
        deeper(3);
        Check.that(CallContext.current(), new Throwable());
    }

    private static void deeper(int depth) {
        kept = new byte[depth];
        if (depth > 0) {
            deeper(depth - 1);
        } else {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    /** Before and behind what may stop there are events. */
    private static int one(int what) {
        event();
        if (isFirst()) {
            stop(what);
        }
        event();
        return 1;
    }

    private static int two(int what) {
        kept = new byte[2];
        int sum = one(what);
        event();
        return sum + 1;
    }

    private static int three(int what) {
        event();
        int sum = two(what);
        kept = new byte[4];
        return sum + 1;
    }

    /** It keeps nothing: the call is its only one. */
    private static void here(int what) {
        one(what);
    }

    private static void aboveHere(int what) {
        event();
        here(what);
        event();
    }

    private static int recursive(int depth, int what) {
        kept = new byte[5];
        int sum = depth > 0 ? recursive(depth - 1, what) : one(what);
        event();
        return sum;
    }

    /** The VM enters its initialiser. */
    private static final class Initialized {
        static int value;

        static {
            event();
            value = two(2);
            event();
        }
    }

    /** The debugger has the initialiser return before its end. */
    static final class Returned {
        static int value;

        static {
            event();
            isIn = true;
            event();
        }
    }

    /** Its first event is where the pointer says. */
    private static void initializes() {
        Object before = new byte[Returned.value];
        kept = new Object[] {before, new Object()};
    }

    /** Asks the VM who calls. */
    private static final class Loader extends ClassLoader {
        @Override
        public Class<?> loadClass(String name) throws ClassNotFoundException {
            event();
            if (isFirst()) {
                stop(2);
            }
            event();
            return super.loadClass(name);
        }
    }

    /** The JDK calls it, in a method that may be without hooks and asks the VM who calls only if somebody needs it. */
    private static final class Finder extends ClassLoader {
        Finder() {
            super(null);
        }

        @Override
        protected Class<?> findClass(String name) {
            event();
            if (isFirst()) {
                stop(4);
            }
            event();
            return null;
        }
    }

    private final int made;

    private Popped(int what) {
        made = one(what);
        event();
    }

    private static void turn(Runnable body) {
        turn++;
        event();
        body.run();
        event();
        Check.equal(turn + 1, next);
    }

    /** JDKs before 21 have none. */
    private static void inVirtualThread() throws Exception {
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            return;
        }
        for (int what : new int[] {2, 3, -1}) {
            turn(() -> {
                try {
                    Thread thread = (Thread) start.invoke(null, (Runnable) () -> three(what));
                    thread.join();
                } catch (ReflectiveOperationException | InterruptedException e) {
                    Check.wrong(e.toString());
                }
            });
        }
    }

    public static void main(String[] args) throws Exception {
        turn(() -> Check.equal(1, one(1)));
        turn(() -> Check.equal(1, one(2)));
        turn(() -> Check.equal(3, three(2)));
        turn(() -> Check.equal(3, three(3)));
        turn(() -> Check.equal(3, three(4)));
        turn(() -> aboveHere(2));
        turn(() -> aboveHere(3));
        turn(() -> Check.equal(1, recursive(6, 5)));
        turn(() -> Check.equal(2, Initialized.value));
        turn(() -> Check.equal(1, new Popped(2).made));
        turn(() -> {
            try {
                new Loader().loadClass("java.lang.Object");
            } catch (ClassNotFoundException e) {
                Check.wrong(e.toString());
            }
        });
        turn(() -> {
            try {
                new Finder().loadClass("none");
            } catch (ClassNotFoundException e) {
                Check.wrong(e.toString());
            }
        });
        // A thread's first methods, and what native code calls.
        turn(() -> {
            Thread thread = new Thread(() -> two(3));
            thread.start();
            try {
                thread.join();
            } catch (InterruptedException e) {
                Check.wrong(e.toString());
            }
        });
        turn(() -> {
            try {
                Popped.class.getDeclaredMethod("three", int.class).invoke(null, 3);
            } catch (ReflectiveOperationException e) {
                Check.wrong(e.toString());
            }
        });
        inVirtualThread();
        turn(() -> Check.equal(3, three(-1)));
        turn(() -> Check.equal(1, recursive(3, -1)));
        event();
        initializes();
        Check.equal(true, isIn);
        event();
        Check.done();
    }
}
