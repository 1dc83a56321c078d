package io.lucce.programs;

import io.lucce.CallContext;

/** Natives that call back: once, twice, with exceptions that they swallow, nested, with class loading. */
public final class NativeCallback {
    static Object kept;
    static int calls;

    public static void main(String[] args) throws Exception {
        if (!NativeLibrary.load()) {
            return;
        }
        for (int i = 0; i < Repeats.of(50); i++) {
            calling();
            exceptions();
            nested();
            objects();
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(Repeats.of(50) * (1 + 2 + 2 + 9 + 2), calls);
        classes();
        Check.done();
    }

    static final class Callback implements Runnable {
        @Override
        public void run() {
            calls++;
            kept = new byte[30];
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class Failing implements Runnable {
        private final int depth;

        Failing(int depth) {
            this.depth = depth;
        }

        @Override
        public void run() {
            kept = new byte[31];
            Check.that(CallContext.current(), new Throwable());
            fail(depth);
        }
    }

    static void fail(int depth) {
        if (depth == 0) {
            Check.that(CallContext.current(), new Throwable());
            throw new UnsupportedOperationException("callback");
        }
        fail(depth - 1);
    }

    static void calling() {
        NativeLibrary.once(new Callback());
        Check.that(CallContext.current(), new Throwable());
        NativeLibrary.twice(new Callback());
        Check.that(CallContext.current(), new Throwable());
        NativeLibrary.once(() -> NativeLibrary.twice(new Callback()));
        Check.that(CallContext.current(), new Throwable());
        NativeLibrary.times(() -> NativeLibrary.times(new Callback(), 3), 3);
        Check.that(CallContext.current(), new Throwable());
        leafOnce(new Callback());
        leafOnce(new Callback());
        kept = new byte[32];
    }

    static void leafOnce(Runnable runnable) {
        NativeLibrary.once(runnable);
    }

    static void exceptions() {
        Check.equal(true, NativeLibrary.swallow(new Failing(4), () -> Check.that(CallContext.current(), new Throwable())));
        Check.that(CallContext.current(), new Throwable());
        Check.equal(true, NativeLibrary.swallowOnly(new Failing(7)));
        Check.that(CallContext.current(), new Throwable());
        kept = leafSwallow(new Failing(9));
        Check.that(CallContext.current(), new Throwable());
        Check.equal(true, NativeLibrary.swallow(() -> NativeLibrary.throwing(), new Failing2()));
        Check.that(CallContext.current(), new Throwable());
        try {
            NativeLibrary.once(new Failing(3));
            Check.wrong("must throw");
        } catch (UnsupportedOperationException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        try {
            NativeLibrary.translate(new Failing(5));
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.equal("translated", e.getMessage());
            Check.that(CallContext.current(), new Throwable());
        }
        try {
            NativeLibrary.throwing();
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        } finally {
            kept = new byte[33];
        }
        for (int i = 0; i < 5; i++) {
            Check.equal(true, NativeLibrary.swallowOnly(() -> NativeLibrary.times(new Failing(2), 2)));
            kept = new byte[34];
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class Failing2 implements Runnable {
        @Override
        public void run() {
            Check.equal(true, NativeLibrary.swallowOnly(new Failing(1)));
            Check.that(CallContext.current(), new Throwable());
        }
    }

    /** The allocation after the native is made with whatever the callback has left behind. */
    static Object leafSwallow(Runnable runnable) {
        NativeLibrary.swallowOnly(runnable);
        return new byte[35];
    }

    static void nested() {
        Check.equal(10, new NativeLibrary().nested(10));
        Check.that(CallContext.current(), new Throwable());
        NativeLibrary.once(() -> Check.equal(3, new NativeLibrary().nested(3)));
        Check.that(CallContext.current(), new Throwable());
    }

    static class Made {
        final Object argument;

        Made(Object argument) {
            this.argument = argument;
            kept = new byte[36];
            Check.that(CallContext.current(), new Throwable());
            if (argument instanceof String) {
                throw new IllegalArgumentException((String) argument);
            }
        }
    }

    static class Base implements Runnable {
        @Override
        public void run() {
            kept = new byte[37];
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class Derived extends Base {
        @Override
        public void run() {
            Check.wrong("the base method was to be called");
        }
    }

    static void objects() {
        kept = NativeLibrary.construct(Made.class, 1);
        Check.that(CallContext.current(), new Throwable());
        try {
            kept = NativeLibrary.construct(Made.class, "refused");
            Check.wrong("must throw");
        } catch (IllegalArgumentException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        kept = NativeLibrary.allocate(100);
        Check.that(CallContext.current(), new Throwable());
        NativeLibrary.nonvirtual(new Derived(), Base.class);
        Check.that(CallContext.current(), new Throwable());
    }

    static final class Found {
        static Object value = new byte[38];

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class FailsToStart {
        static Object value = new Object();

        static {
            fail(3);
        }
    }

    /** Called by the native behind Class.forName. */
    public static final class FindingLoader extends ClassLoader {
        FindingLoader() {
            super(NativeCallback.class.getClassLoader());
        }

        @Override
        public Class<?> loadClass(String name) throws ClassNotFoundException {
            Check.that(CallContext.current(), new Throwable());
            return super.loadClass(name);
        }
    }

    static void classes() throws Exception {
        String prefix = NativeCallback.class.getName().replace('.', '/');
        for (int i = 0; i < 2; i++) {
            Check.equal(Found.class, NativeLibrary.find(prefix + "$Found"));
            Check.that(CallContext.current(), new Throwable());
            Check.equal(null, NativeLibrary.find(prefix + "$Absent"));
            Check.that(CallContext.current(), new Throwable());
            Check.equal(null, NativeLibrary.find(prefix + "$FailsToStart"));
            Check.that(CallContext.current(), new Throwable());
        }
        Class.forName(Base.class.getName(), true, new FindingLoader());
        Check.that(CallContext.current(), new Throwable());
    }
}
