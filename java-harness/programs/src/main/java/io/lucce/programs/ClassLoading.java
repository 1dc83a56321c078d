package io.lucce.programs;

import io.lucce.CallContext;
import java.util.function.Supplier;

/**
 * A class loader of the program's own, called by the VM in the middle of a method. As many loaders as the property {@code
 * lucce.loaders} says, and a third of that number of parallel capable ones.
 */
public final class ClassLoading {
    private static final int LOADERS = Integer.getInteger("lucce.loaders", Repeats.of(30));

    static Object kept;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < LOADERS; i++) {
            Loader loader = new Loader();
            Class<?> body = loader.loadClass(Body.class.getName());
            Fresh.call(body, "run");
            Check.that(CallContext.current(), new Throwable());
            Check.equal(true, loader.upcalls > 10);
        }
        parallelCapable();
        Check.done();
    }

    /** Parallel capable loaders take no lock around the upcall. */
    static void parallelCapable() throws Exception {
        for (int i = 0; i < LOADERS / 3; i++) {
            Fresh.call(new ParallelLoader().loadClass(Body.class.getName()), "run");
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static boolean own(String name) {
        return name.startsWith(ClassLoading.class.getName() + "$") && !name.endsWith("Loader");
    }

    static class Loader extends ClassLoader {
        int upcalls;

        Loader() {
            super(ClassLoading.class.getClassLoader());
        }

        @Override
        public Class<?> loadClass(String name) throws ClassNotFoundException {
            upcalls++;
            kept = new byte[20];
            Check.that(CallContext.current(), new Throwable());
            Class<?> loaded = super.loadClass(name);
            Check.that(CallContext.current(), new Throwable());
            return loaded;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                if (known != null) {
                    return known;
                }
                return own(name) ? findClass(name) : super.loadClass(name, resolve);
            }
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            kept = new Object[] {name, new byte[21]};
            Check.that(CallContext.current(), new Throwable());
            byte[] bytes = Fresh.bytes(name);
            if (bytes == null || name.endsWith("Missing")) {
                Check.that(CallContext.current(), new Throwable());
                throw new ClassNotFoundException("not to be found: " + name);
            }
            Class<?> defined = defineClass(name, bytes, 0, bytes.length);
            Check.that(CallContext.current(), new Throwable());
            return defined;
        }
    }

    static final class ParallelLoader extends Loader {
        static {
            registerAsParallelCapable();
        }
    }

    // What follows is loaded by Loader; each class for the first time by the instruction that needs it.

    static class Body {
        static Object made;

        static void run() throws Exception {
            made = leafAnewarray();
            Check.that(CallContext.current(), new Throwable());
            made = byNew();
            Check.equal(false, leafInstanceof("no"));
            Check.that(CallContext.current(), new Throwable());
            byCheckcast("no");
            made = leafLdc();
            Check.that(CallContext.current(), new Throwable());
            made = leafField();
            Check.that(CallContext.current(), new Throwable());
            byStatic();
            byInterface();
            bySuperclasses();
            byDescriptor();
            byHandler();
            byMultiArray();
            byLambda();
            missing();
            missing();
            leafMissing();
            leafMissing();
            Check.that(CallContext.current(), new Throwable());
            for (int i = 0; i < 3; i++) {
                made = new byte[22];
                Check.that(CallContext.current(), new Throwable());
            }
        }

        static Object leafAnewarray() {
            return new Anewarray[3];
        }

        static Object byNew() {
            Object value = new New(new byte[23]);
            Check.that(CallContext.current(), new Throwable());
            return value;
        }

        /** null needs no class: resolution happens only for a value. */
        static boolean leafInstanceof(Object value) {
            return value instanceof Instanceof;
        }

        static void byCheckcast(Object value) {
            try {
                made = (Checkcast) value;
                Check.wrong("must not be cast");
            } catch (ClassCastException e) {
                Check.that(CallContext.current(), new Throwable());
            }
        }

        static Object leafLdc() {
            return Ldc.class;
        }

        static Object leafField() {
            return Field.value;
        }

        static void byStatic() {
            made = Static.make(null);
            Check.that(CallContext.current(), new Throwable());
        }

        static void byInterface() {
            Supplier<Object> supplier = new Implementation();
            made = supplier.get();
            Check.that(CallContext.current(), new Throwable());
        }

        static void bySuperclasses() {
            made = new Lowest();
            Check.that(CallContext.current(), new Throwable());
        }

        static void byDescriptor() throws Exception {
            made = Descriptors.class.getDeclaredMethods();
            Check.that(CallContext.current(), new Throwable());
            made = Descriptors.class.getDeclaredFields();
            Check.that(CallContext.current(), new Throwable());
            made = Descriptors.class.getDeclaredConstructors();
            Check.that(CallContext.current(), new Throwable());
        }

        /** The type of a handler is resolved while an exception is looking for its handler. */
        static void byHandler() {
            try {
                try {
                    made = new byte[24];
                    throw new IllegalStateException();
                } catch (Handler e) {
                    Check.wrong("another exception");
                }
            } catch (IllegalStateException e) {
                Check.that(CallContext.current(), new Throwable());
            }
            Check.that(CallContext.current(), new Throwable());
        }

        static void byMultiArray() {
            made = new Multi[2][3];
            Check.that(CallContext.current(), new Throwable());
        }

        static void byLambda() {
            Supplier<FromLambda> supplier = FromLambda::new;
            Check.that(CallContext.current(), new Throwable());
            made = supplier.get();
            Check.that(CallContext.current(), new Throwable());
        }

        static void missing() {
            try {
                made = new IsMissing();
                Check.wrong("must not be found");
            } catch (NoClassDefFoundError e) {
                Check.that(CallContext.current(), new Throwable());
            }
            Check.that(CallContext.current(), new Throwable());
        }

        static int leafMissing() {
            try {
                made = new LeafMissing[1];
                return 0;
            } catch (NoClassDefFoundError e) {
                made = new byte[25];
                return 1;
            }
        }
    }

    static final class Anewarray {}

    static final class New {
        static {
            Check.that(CallContext.current(), new Throwable());
        }

        final Object held;

        New(Object held) {
            this.held = held;
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class Instanceof {}

    static final class Checkcast {}

    static final class Ldc {}

    static final class Field {
        static FieldType value;

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class FieldType {}

    static final class Static {
        static Argument make(Argument argument) {
            Check.that(CallContext.current(), new Throwable());
            return new Argument();
        }
    }

    static final class Argument {
        Argument() {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    interface Above extends Supplier<Object> {}

    interface Interface extends Above {
        @Override
        default Object get() {
            Check.that(CallContext.current(), new Throwable());
            return new byte[26];
        }
    }

    static final class Implementation implements Interface {}

    static class Highest {
        Highest() {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static class Between extends Highest implements Runnable {
        @Override
        public void run() {}
    }

    static final class Lowest extends Between {
        Lowest() {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class Descriptors {
        InField field;

        Descriptors() {}

        Descriptors(InConstructor argument) {}

        InResult method(InArgument argument) throws InThrows {
            return null;
        }
    }

    static final class InField {}

    static final class InConstructor {}

    static final class InResult {}

    static final class InArgument {}

    static final class InThrows extends Exception {
        private static final long serialVersionUID = 1;
    }

    static final class Handler extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    static final class Multi {}

    static final class FromLambda {
        FromLambda() {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static final class IsMissing {}

    static final class LeafMissing {}
}
