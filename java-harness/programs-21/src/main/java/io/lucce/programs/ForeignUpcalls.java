package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * C functions made of Java methods, called by whom ever: native methods, native threads that are attached or not, C
 * functions that Java calls without JNI, and each of them within the others.
 */
public final class ForeignUpcalls {
    private static final AtomicInteger calls = new AtomicInteger();
    static volatile Object kept;

    /** Not constants, so the JVM compiles them for their targets after some calls. */
    private static MethodHandle fire, run;

    /** Initialised once the library is loaded. */
    private static final class Functions {
        static final long UP = function("up");
        static final long LEAF = function("leaf");
        static final MethodHandle DOWN = downcall("lucce_upcall", Foreign.INT, Foreign.LONG, Foreign.INT);
    }

    public static void main(String[] args) throws Throwable {
        if (!NativeLibrary.load()) {
            return;
        }
        NativeLibrary.registerRunnable(ForeignUpcalls::work);
        downcall("lucce_register", null, Foreign.LONG).invoke(Functions.UP);
        fire = downcall("lucce_fire", Foreign.INT, Foreign.INT);
        run = downcall("lucce_run_registered", Foreign.INT);
        for (int depth = 0; depth < 3; depth++) {
            everything(depth);
            Check.that(CallContext.current(), new Throwable());
        }
        // The JVM compiles a handle for its target after so many calls, in the middle of an upcall.
        Check.equal(1, NativeLibrary.upcall(function("compiled"), 0, 300));
        Check.equal(1, NativeLibrary.upcall(Functions.LEAF, 1, 300));
        Check.that(CallContext.current(), new Throwable());
        threads();
        carriers();
        NativeMain main = new NativeMain();
        main.start();
        main.join();
        Check.equal(true, calls.get() > 300);
        Check.done();
    }

    /** Its first frame is a native method's. */
    static final class NativeMain extends Thread {
        @Override
        public native void run();
    }

    /** On native threads, one after the other and side by side. */
    private static void threads() throws InterruptedException {
        List<Thread> waiting = new ArrayList<>();
        for (int how = 0; how < 3; how++) {
            int attached = how;
            Check.equal(true, NativeLibrary.upcallOnThread(Functions.UP, ForeignUpcalls::work, attached, 2));
            Check.that(CallContext.current(), new Throwable());
            for (int i = 0; i < 2; i++) {
                waiting.add(new Thread(() -> Check.equal(
                        true, NativeLibrary.upcallOnThread(Functions.UP, ForeignUpcalls::work, attached, 2))));
            }
        }
        waiting.forEach(Thread::start);
        for (Thread thread : waiting) {
            thread.join();
        }
    }

    /** Virtual threads, which stay on their carriers meanwhile. */
    private static void carriers() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            threads.add(Thread.ofVirtual().start(() -> {
                everything(0);
                Thread.yield();
                everything(1);
                Check.that(CallContext.current(), new Throwable());
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    /** Called by C. */
    static int up(int depth) {
        calls.incrementAndGet();
        kept = new byte[depth + 8];
        Check.that(CallContext.current(), new Throwable());
        if (depth > 0) {
            everything(depth - 1);
        }
        Check.that(CallContext.current(), new Throwable());
        return depth;
    }

    /** Called by C: calls nothing before the event, and nothing at all if there is no number. */
    static int leaf(int length) {
        kept = new int[length];
        return length;
    }

    static int compiled(int ignored) {
        Check.that(CallContext.current(), new Throwable());
        return 1;
    }

    static void work() {
        calls.incrementAndGet();
        kept = new byte[7];
        Check.that(CallContext.current(), new Throwable());
    }

    /** All ways from Java to C and back. */
    private static void everything(int depth) {
        try {
            Check.equal(depth, NativeLibrary.upcall(Functions.UP, depth, 2));
            Check.that(CallContext.current(), new Throwable());
            Check.equal(depth, (int) Functions.DOWN.invokeExact(Functions.UP, depth));
            Check.that(CallContext.current(), new Throwable());
            Check.equal(depth, (int) fire.invokeExact(depth));
            Check.that(CallContext.current(), new Throwable());
            Check.equal(depth, NativeLibrary.upcallBetween(Functions.UP, depth, ForeignUpcalls::work));
            Check.that(CallContext.current(), new Throwable());
            Check.equal(0, (int) run.invokeExact());
            Check.that(CallContext.current(), new Throwable());
            Check.equal(9, NativeLibrary.upcall(Functions.LEAF, 9, 1));
            Check.equal(9, (int) Functions.DOWN.invokeExact(Functions.LEAF, 9));
            NativeLibrary.times(ForeignUpcalls::mixed, 2);
            Check.that(CallContext.current(), new Throwable());
            Check.equal(true, NativeLibrary.swallowOnly(ForeignUpcalls::failing));
            Check.that(CallContext.current(), new Throwable());
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /** Called by JNI. */
    private static void mixed() {
        Check.equal(0, NativeLibrary.upcall(Functions.UP, 0, 2));
        Check.that(CallContext.current(), new Throwable());
        try {
            Check.equal(0, (int) Functions.DOWN.invokeExact(Functions.UP, 0));
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
        Check.that(CallContext.current(), new Throwable());
    }

    private static void failing() {
        Check.equal(0, NativeLibrary.upcall(Functions.UP, 0, 1));
        throw new UnsupportedOperationException("after an upcall");
    }

    private static MethodHandle downcall(String name, Object result, Object... arguments) {
        try {
            return Foreign.downcall(name, Foreign.function(result, arguments));
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private static long function(String name) {
        try {
            MethodHandle target = MethodHandles.lookup()
                    .findStatic(ForeignUpcalls.class, name, MethodType.methodType(int.class, int.class));
            return Foreign.address(Foreign.upcall(target, Foreign.function(Foreign.INT, Foreign.INT)));
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }
}
