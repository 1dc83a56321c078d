import java.io.IOException;
import java.io.InputStream;
import java.util.concurrent.atomic.AtomicLong;

/** The system class loader of a program: while the VM starts, it defines a class of its own and runs it. The program runs it on. */
public final class EarlyLoader extends ClassLoader {
    /** Defined by the loader itself. Each run makes four {@code AtomicLong}s, and one more if it has failed. */
    public static final class Made implements Runnable {
        private static int runs;
        static Object kept;

        @Override
        public void run() {
            runs++;
            step(3);
        }

        private static void step(int depth) {
            kept = new AtomicLong(depth);
            if (depth > 0) {
                step(depth - 1);
                return;
            }
            try {
                fail(runs);
            } catch (IllegalStateException e) {
                kept = new AtomicLong(e.getMessage().length());
            }
        }

        private static void fail(int run) {
            if (run % 2 == 0) {
                throw new IllegalStateException(Integer.toString(run));
            }
        }
    }

    private final Runnable made;

    public EarlyLoader(ClassLoader parent) throws ReflectiveOperationException, IOException {
        super(parent);
        byte[] bytes;
        try (InputStream in = parent.getResourceAsStream("EarlyLoader$Made.class")) {
            bytes = in.readAllBytes();
        }
        made = (Runnable) defineClass(null, bytes, 0, bytes.length).getConstructor().newInstance();
        for (int i = 0; i < 10; i++) {
            made.run();
        }
    }

    public static void main(String[] args) {
        Runnable made = ((EarlyLoader) getSystemClassLoader()).made;
        for (int i = 0; i < 100; i++) {
            made.run();
        }
    }
}
