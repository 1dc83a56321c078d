package io.lucce.programs;

import io.lucce.CallContext;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Tasks of a pool that run in scopes: their traces are their own frames, {@code Scope.run}, and then
 * the trace of the line where the scope was taken.
 */
public final class Scopes {
    private static final String SCOPE = "io.lucce.CallContext$Scope";

    private Scopes() {}

    /** A number taken in a scope, and the two traces of which it must be made. */
    private static final class Taken {
        final long id;
        final StackTraceElement[] here;
        final StackTraceElement[] origin;

        Taken(long id, StackTraceElement[] here, StackTraceElement[] origin) {
            this.id = id;
            this.here = here;
            this.origin = origin;
        }
    }

    private static void check(Taken taken) {
        if (!CallContext.isActive()) {
            Check.equal(0L, taken.id);
            return;
        }
        List<String> expected = new ArrayList<>();
        for (StackTraceElement frame : taken.here) {
            expected.add(text(frame));
            boolean goesOn = frame.getMethodName().equals("run") || frame.getMethodName().equals("call");
            if (frame.getClassName().equals(SCOPE) && goesOn) {
                break;
            }
        }
        for (StackTraceElement frame : taken.origin) {
            expected.add(text(frame));
        }
        List<String> decoded = new ArrayList<>();
        for (StackTraceElement frame : CallContext.decode(taken.id)) {
            decoded.add(text(frame));
        }
        Check.equal(expected, decoded);
    }

    private static String text(StackTraceElement frame) {
        return frame.getClassName() + "." + frame.getMethodName() + ":" + frame.getLineNumber();
    }

    private static Taken taken(StackTraceElement[] origin) {
        return new Taken(CallContext.current(), new Throwable().getStackTrace(), origin);
    }

    private static Taken deeper(int depth, StackTraceElement[] origin) {
        return depth == 0 ? taken(origin) : deeper(depth - 1, origin);
    }

    private static Future<Taken> submit(ExecutorService pool, int depth) {
        CallContext.Scope scope = CallContext.Scope.capture(); StackTraceElement[] origin = new Throwable().getStackTrace();
        Callable<Taken> task = () -> deeper(depth, origin);
        return pool.submit(scope.wrap(task));
    }

    private static Future<Taken> submitFrom(int frames, ExecutorService pool, int depth) {
        return frames == 0 ? submit(pool, depth) : submitFrom(frames - 1, pool, depth);
    }

    /** Behind a scope, and after one that an exception ended, the frame has its own callers. */
    private static void restored() {
        CallContext.Scope scope = CallContext.Scope.of(CallContext.current());
        Check.that(CallContext.current(), new Throwable());
        scope.run(() -> Check.equal(CallContext.isActive(), CallContext.current() != 0));
        Check.that(CallContext.current(), new Throwable());
        try {
            scope.run(() -> {
                throw new IllegalStateException("in a scope");
            });
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    /** The innermost scope holds. */
    private static void nested() throws Exception {
        CallContext.Scope outer = CallContext.Scope.capture(); StackTraceElement[] first = new Throwable().getStackTrace();
        Thread thread = new Thread(() -> nestedIn(outer, first), "nested");
        thread.setUncaughtExceptionHandler(Check::uncaught);
        thread.start();
        thread.join();
    }

    private static void nestedIn(CallContext.Scope outer, StackTraceElement[] first) {
        CallContext.Scope inner = CallContext.Scope.capture(); StackTraceElement[] second = new Throwable().getStackTrace();
        outer.run(() -> {
            check(taken(first));
            inner.run(() -> check(taken(second)));
            check(taken(first));
        });
        Check.that(CallContext.current(), new Throwable());
    }

    /** Numbers that are none: the scope changes nothing. */
    private static void madeUp() {
        for (long id : new long[] {0, 1, -1, Long.MIN_VALUE, 0x1234_5678_9abcL}) {
            CallContext.Scope.of(id).run(Scopes::unchanged);
        }
    }

    private static void unchanged() {
        Check.that(CallContext.current(), new Throwable());
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(3);
        List<Future<Taken>> tasks = new ArrayList<>();
        for (int i = 0; i < Repeats.of(500); i++) {
            tasks.add(submitFrom(i % 20, pool, i % 7));
            tasks.add(submitFrom(i % 3, pool, i % 30));
        }
        for (Future<Taken> task : tasks) {
            check(task.get());
        }
        pool.shutdown();
        for (int i = 0; i < Repeats.of(100); i++) {
            restored();
            nested();
            madeUp();
        }
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }
}
