package io.lucce.programs;

import io.lucce.CallContext;
import java.io.IOException;
import java.io.InputStream;
import java.util.concurrent.CountDownLatch;

/** Daemon threads go on loading and initialising classes, deep in their stacks, while the JVM ends. */
public final class Ending {
    private static final int THREADS = 3;
    private static final CountDownLatch busy = new CountDownLatch(THREADS * 20);
    static volatile Object kept;

    private Ending() {}

    /** Loaded again and again. */
    static final class Loaded {
        static final Object[] MADE = {new int[3], new byte[7]};

        private Loaded() {}
    }

    private static final class Loader extends ClassLoader {
        private final byte[] code;

        Loader(byte[] code) {
            super(Ending.class.getClassLoader());
            this.code = code;
        }

        Class<?> define() throws ClassNotFoundException {
            Class<?> made = defineClass(Loaded.class.getName(), code, 0, code.length);
            return Class.forName(made.getName(), true, this);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            kept = new byte[8];
            Class<?> known = findLoadedClass(name);
            return known != null ? known : super.loadClass(name, resolve);
        }
    }

    private static void load(byte[] code, int depth) throws ClassNotFoundException {
        if (depth > 0) {
            load(code, depth - 1);
            return;
        }
        kept = new Loader(code).define();
        busy.countDown();
    }

    private static void forever(byte[] code) {
        try {
            while (true) {
                for (int depth = 0; depth < 30; depth++) {
                    load(code, depth);
                }
            }
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        byte[] code;
        try (InputStream in = Ending.class.getResourceAsStream("Ending$Loaded.class")) {
            code = in.readAllBytes();
        }
        for (int i = 0; i < THREADS; i++) {
            Thread thread = new Thread(() -> forever(code), "loads " + i);
            thread.setDaemon(true);
            thread.start();
        }
        busy.await();
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }
}
