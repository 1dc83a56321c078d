package io.lucce.programs;

import io.lucce.CallContext;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import sun.misc.Signal;

/** Methods of the program that the VM calls for exceptions, and signals, one after the other. */
public final class VmCalls {
    private static final int ROUNDS = Repeats.of(30);
    static volatile Object kept;
    static int made;
    static int printed;
    static int asked;

    public static void main(String[] args) throws Exception {
        if (!NativeLibrary.load()) {
            return;
        }
        for (int i = 0; i < ROUNDS; i++) {
            constructors();
            printing();
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(ROUNDS * 3, made);
        Check.equal(ROUNDS * 2, printed);
        initialisers();
        bootstraps();
        signals();
        Check.done();
    }

    /** Everything that the VM may call on it has an allocation. */
    static final class Told extends RuntimeException {
        private static final long serialVersionUID = 1;

        /** Public: called by ThrowNew. */
        public Told(String message) {
            super(message);
            made++;
            kept = new byte[60];
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        public void printStackTrace() {
            printed++;
            deeper(3);
            kept = new byte[61];
            System.err.println(getMessage());
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        public StackTraceElement[] getStackTrace() {
            asked++;
            deeper(2);
            Check.that(CallContext.current(), new Throwable());
            return super.getStackTrace();
        }
    }

    static void deeper(int depth) {
        kept = new byte[62];
        if (depth > 0) {
            deeper(depth - 1);
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void constructors() {
        deeper(5);
        try {
            NativeLibrary.throwNew(Told.class);
            Check.wrong("must throw");
        } catch (Told e) {
            Check.equal("thrown", e.getMessage());
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void printing() {
        Told told = new Told("to be printed");
        deeper(4);
        NativeLibrary.describe(told);
        Check.that(CallContext.current(), new Throwable());
    }

    static final class Refuses {
        static final Object VALUE = refuse();

        private static Object refuse() {
            throw new Told("initialiser");
        }
    }

    /** From JDK 18 on the VM asks what an initialiser threw for its trace, to tell it again. */
    static void initialisers() {
        for (int i = 0; i < 3; i++) {
            deeper(6);
            try {
                kept = Refuses.VALUE;
                Check.wrong("must throw");
            } catch (ExceptionInInitializerError | NoClassDefFoundError e) {
                Check.that(CallContext.current(), new Throwable());
            }
        }
    }

    /** The message of the error is made from that of its cause. */
    static void bootstraps() throws Exception {
        Class<?> broken = BrokenCallSite.define();
        for (int i = 0; i < 3; i++) {
            deeper(6);
            try {
                broken.getMethod("call").invoke(null);
                Check.wrong("must throw");
            } catch (java.lang.reflect.InvocationTargetException e) {
                Check.equal(BootstrapMethodError.class, e.getCause().getClass());
                Check.that(CallContext.current(), new Throwable());
            }
        }
    }

    /** Called by the broken call site. */
    public static Object bootstrap(Object lookup, String name, Object type) throws Exception {
        Check.that(CallContext.current(), new Throwable());
        throw new java.io.IOException("no call site");
    }

    /** The dispatcher makes a thread for each. */
    static void signals() throws Exception {
        Semaphore handled = new Semaphore(0);
        Signal.handle(new Signal("URG"), signal -> {
            kept = new byte[63];
            Check.that(CallContext.current(), new Throwable());
            handled.release();
        });
        for (int i = 0; i < ROUNDS; i++) {
            Signal.raise(new Signal("URG"));
            Check.equal(true, handled.tryAcquire(30, TimeUnit.SECONDS));
        }
        Check.that(CallContext.current(), new Throwable());
    }
}
