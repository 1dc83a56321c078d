import io.lucce.CallContext;
import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Makes known numbers of objects in phases: in the main thread, in threads that end, and in classes that are unloaded. Between
 * the phases it sets a mark, or waits until a file of the phase's name exists. A thread makes objects all the time.
 */
public final class Phases {
    public static volatile Object sink;
    static final AtomicLong DRAWN = new AtomicLong();

    private Phases() {}

    static final class Entry {}

    static final class Row {}

    static final class Drawn {}

    /** Is loaded anew for each phase. */
    public static final class Passing implements Runnable {
        static final class Leaf {}

        @Override
        public void run() {
            for (int i = 0; i < 50; i++) {
                sink = new Leaf();
            }
        }
    }

    /** Loads one class and the classes in it itself. */
    static final class Loader extends URLClassLoader {
        Loader(URL[] path) {
            super(path, Phases.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            return name.startsWith("Phases$Passing") ? findClass(name) : super.loadClass(name, resolve);
        }
    }

    private static void makeEntries(int count) {
        for (int i = 0; i < count; i++) {
            sink = new Entry();
        }
    }

    private static void makeRows(int count) {
        for (int i = 0; i < count; i++) {
            sink = new Row[i % 3];
            if (i % 2 == 0) {
                throwCaught(i);
            }
        }
    }

    private static void throwCaught(int i) {
        try {
            throw new IllegalStateException("row " + i);
        } catch (IllegalStateException e) {
            sink = e;
        }
    }

    private static void runPassing(URL[] path) throws Exception {
        Class<?> loaded = new Loader(path).loadClass("Phases$Passing");
        ((Runnable) loaded.getDeclaredConstructor().newInstance()).run();
    }

    private static void makePhase(int entries, int rows, URL[] path) throws Exception {
        makeEntries(entries);
        Thread worker = new Thread(() -> makeRows(rows), "rows-" + rows);
        worker.start();
        worker.join();
        runPassing(path);
        sink = null;
        System.gc();
    }

    private static void waitFor(File folder, String name) throws InterruptedException {
        System.out.println("waits for " + name + " drawn " + DRAWN.get());
        while (!new File(folder, name).exists()) {
            Thread.sleep(10);
        }
    }

    private static void draw() {
        while (true) {
            sink = new Drawn();
            DRAWN.incrementAndGet();
        }
    }

    public static void main(String[] args) throws Exception {
        File folder = new File(args[0]);
        URL[] path = {Phases.class.getProtectionDomain().getCodeSource().getLocation()};
        Thread drawer = new Thread(Phases::draw, "drawer");
        drawer.setDaemon(true);
        makePhase(1000, 20, path);
        if (args.length > 1) {
            drawer.start();
            Thread.sleep(50);
        }
        long before = DRAWN.get();
        CallContext.mark("loaded");
        System.out.println("drawn from " + before + " to " + DRAWN.get());
        makePhase(30, 4, path);
        waitFor(folder, "warm");
        makePhase(7, 6, path);
        CallContext.mark("loaded");
        CallContext.mark("start");
        CallContext.mark("");
        makePhase(3, 2, path);
        waitFor(folder, "reset");
        makePhase(5, 8, path);
        waitFor(folder, "end");
    }
}
