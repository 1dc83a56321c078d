package io.lucce.programs;

import io.lucce.CallContext;

/** The natives of {@code lucce_callback.c}; {@code -Dlucce.native=FILE} says where they are. */
final class NativeLibrary {
    static int loads;

    /** Returns false, and says so, if there is no library to load. */
    static boolean load() {
        String file = System.getProperty("lucce.native");
        if (file == null) {
            System.out.println("SKIPPED no native library (-Dlucce.native=FILE)");
            return false;
        }
        System.load(file);
        Check.that(CallContext.current(), new Throwable());
        Check.equal(1, loads);
        return true;
    }

    /** Called by JNI_OnLoad. */
    static void loaded() {
        loads++;
        Check.that(CallContext.current(), new Throwable());
    }

    static native void once(Runnable runnable);

    static native void twice(Runnable runnable);

    static native void times(Runnable runnable, int times);

    static native boolean swallow(Runnable first, Runnable second);

    static native boolean swallowOnly(Runnable runnable);

    static native void translate(Runnable runnable);

    static native void throwing();

    /** Throws one of the class, for the second time. */
    static native void throwNew(Class<? extends Throwable> thrown);

    /** Has the VM print it twice. */
    static native void describe(Throwable thrown);

    native int nested(int depth);

    /** Called by {@link #nested}. */
    int back(int depth) {
        Check.that(CallContext.current(), new Throwable());
        int below = depth == 0 ? 0 : nested(depth);
        Check.that(CallContext.current(), new Throwable());
        return below;
    }

    static native Class<?> find(String name);

    /** Has the VM initialize a class with a static field {@code Object value}; whether that succeeds. */
    static native boolean initialize(Class<?> type);

    static native Object construct(Class<?> type, Object argument);

    static native Object allocate(int length);

    static native void nonvirtual(Object receiver, Class<?> declaring);

    static native boolean attach(Runnable runnable, int threads, int rounds);

    /** Calls a C function {@code int f(int)} this many times; the result of the last call. */
    static native int upcall(long function, int argument, int times);

    /** Calls the object by JNI, a C function, and the object again. */
    static native int upcallBetween(long function, int argument, Runnable runnable);

    static native void registerRunnable(Runnable runnable);

    /** {@code how} a native thread becomes one of the JVM's: 0 by its first upcall, 1 by JNI, 2 as a daemon. */
    static native boolean upcallOnThread(long function, Runnable runnable, int how, int rounds);
}
