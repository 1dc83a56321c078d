package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/** Loaders that come and go; numbers outlive the classes whose frames they hold. */
public final class ClassUnloading {
    static Object kept;

    public static void main(String[] args) throws Exception {
        List<WeakReference<Class<?>>> classes = new ArrayList<>();
        for (int round = 0; round < 10; round++) {
            for (int i = 0; i < 20; i++) {
                classes.add(new WeakReference<>(loadAndRun(i)));
                Check.that(CallContext.current(), new Throwable());
            }
            System.gc();
            Check.that(CallContext.current(), new Throwable());
        }
        for (int i = 0; i < 20 && loaded(classes) > 0; i++) {
            System.gc();
            Thread.sleep(10);
        }
        Check.equal(0, loaded(classes));
        kept = loadAndRun(1);
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    private static int loaded(List<WeakReference<Class<?>>> classes) {
        int loaded = 0;
        for (WeakReference<Class<?>> reference : classes) {
            if (reference.get() != null) {
                loaded++;
            }
        }
        return loaded;
    }

    private static Class<?> loadAndRun(int variant) throws Exception {
        Class<?> twin = Generated.define(SameNameTwice.NAME, SameNameTwice.twin(variant % 7));
        Check.equal(5 + variant % 7, twin.getMethod("run", int.class).invoke(null, 5));
        Fresh.call(new Fresh(Unloaded.class.getName()).loadClass(Unloaded.class.getName()), "run");
        return twin;
    }

    /** Defined and dropped again and again; also leaves through an exception. */
    static final class Unloaded {
        static final Object SHARED = new byte[210];

        static {
            Check.that(CallContext.current(), new Throwable());
        }

        static void run() {
            try {
                fail(4);
            } catch (IllegalStateException e) {
                Check.that(CallContext.current(), new Throwable());
            }
            Runnable lambda = () -> Check.that(CallContext.current(), new Throwable());
            lambda.run();
        }

        private static void fail(int depth) {
            if (depth == 0) {
                Check.that(CallContext.current(), new Throwable());
                throw new IllegalStateException();
            }
            fail(depth - 1);
        }
    }
}
