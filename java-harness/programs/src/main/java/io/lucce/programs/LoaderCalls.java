package io.lucce.programs;

import io.lucce.CallContext;
import java.util.List;
import java.util.function.Function;

/**
 * Methods that the VM enters by itself, called by code: from the same places again and again, by natives, in recursion, and where
 * the VM then enters the same method in the middle of the line that has called it.
 */
public final class LoaderCalls {
    private static final int ROUNDS = Repeats.of(60);
    static Object kept;

    public static void main(String[] args) throws Exception {
        Loader loader = new Loader();
        for (int i = 0; i < ROUNDS; i++) {
            direct(loader, i % 7);
            kept = Class.forName(LoaderCalls.class.getName(), false, loader);
            Check.that(CallContext.current(), new Throwable());
            Function<String, Object> call = name -> load(loader, name);
            kept = call.apply("java.lang.String");
            kept = List.of("java.util.Map", "java.util.Set").stream().map(call).toArray();
            kept = new Object[] {ClassLoader.getSystemClassLoader(), ClassLoader.getPlatformClassLoader()};
            Check.that(CallContext.current(), new Throwable());
            nobody(null);
        }
        for (int i = 0; i < 12; i++) {
            Fresh.call(new Loader().loadClass(Body.class.getName()), "run");
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(true, Loader.calls > 12 * ROUNDS);
        Check.done();
    }

    static void direct(ClassLoader loader, int deeper) throws Exception {
        if (deeper > 0) {
            kept = new byte[30 + deeper];
            direct(loader, deeper - 1);
        } else {
            kept = loader.loadClass("java.lang.Integer");
        }
        Check.that(CallContext.current(), new Throwable());
    }

    static Object load(ClassLoader loader, String name) {
        try {
            return new Object[] {loader.loadClass(name)};
        } catch (ClassNotFoundException e) {
            throw new AssertionError(e);
        }
    }

    /** The hook before the call has run, and the call does not take place. */
    static void nobody(ClassLoader none) throws Exception {
        try {
            kept = none.loadClass("java.lang.Long");
            Check.wrong("must throw");
        } catch (NullPointerException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static class Loader extends ClassLoader {
        static int calls;

        Loader() {
            super(LoaderCalls.class.getClassLoader());
        }

        @Override
        public Class<?> loadClass(String name) throws ClassNotFoundException {
            calls++;
            kept = new byte[20];
            Check.that(CallContext.current(), new Throwable());
            Class<?> loaded = super.loadClass(name);
            kept = new byte[21];
            Check.that(CallContext.current(), new Throwable());
            return loaded;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            boolean own = name.startsWith(Body.class.getName()) || name.startsWith(LoaderCalls.class.getName() + "$Late");
            if (!own) {
                return super.loadClass(name, resolve);
            }
            Class<?> known = findLoadedClass(name);
            if (known != null) {
                return known;
            }
            Check.that(CallContext.current(), new Throwable());
            byte[] bytes = Fresh.bytes(name);
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    /** In a loader of its own: what it names is loaded in the middle of its methods, once in each. */
    public static final class Body {
        static Object kept;

        public static void run() throws Exception {
            ClassLoader own = Body.class.getClassLoader();
            for (int i = 0; i < 20; i++) {
                kept = recursive(own, 5, -1);
                kept = failing(own, null);
                Check.that(CallContext.current(), new Throwable());
            }
            // Now the pointer is stale, or the call before has failed, where the VM enters loadClass.
            kept = recursive(own, 5, 2);
            kept = failing(null, own);
            kept = recursive(own, 9, 3);
            Check.that(CallContext.current(), new Throwable());
        }

        /** All on one line: a call of loadClass, and what has the VM call it while slots of frames that have returned look the same. */
        static Object recursive(ClassLoader l, int n, int late) throws Exception {
            return n > 0 ? new Object[] {recursive(l, n - 1, late), n == late ? new LateOne() : null} : l.loadClass("java.lang.Byte");
        }

        static Object failing(ClassLoader l, ClassLoader unused) throws Exception {
            try { return l.loadClass("java.lang.Short"); } catch (NullPointerException e) { return new LateTwo(unused); }
        }
    }

    static final class LateOne {
        static final Object MADE = new byte[40];
    }

    static final class LateTwo {
        static final Object MADE = new byte[41];
        final ClassLoader of;

        LateTwo(ClassLoader of) {
            this.of = of;
        }
    }
}
