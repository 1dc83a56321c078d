import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Runs until it is killed, in many ways at once: in loops that were entered long ago, deep in a recursion, by
 * reflection, in pools, in virtual threads where there are any. Each of them makes objects of its own class, and prints
 * every stack trace at which it does so when it is new.
 */
public final class Busy {
    static class Marker {}
    static final class Deep extends Marker {}
    static final class Event extends Marker {}
    static final class Task extends Marker {}
    static final class Reflected extends Marker {}
    static final class Handle extends Marker {}
    static final class Sorted extends Marker {}
    static final class Thrown extends Marker {}
    static final class Started extends Marker {}
    static final class Virtual extends Marker {}

    private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();
    private static final BlockingQueue<Integer> EVENTS = new LinkedBlockingQueue<>();
    static volatile Object kept;

    public static void main(String[] args) throws Throwable {
        start("deep", () -> sit(300));
        start("events", Busy::loop);
        ExecutorService pool = Executors.newFixedThreadPool(2, Busy::daemon);
        Method reflected = Busy.class.getDeclaredMethod("reflected", int.class);
        MethodHandle handle = MethodHandles.lookup()
                .findStatic(Busy.class, "handle", MethodType.methodType(void.class, long.class));
        for (long round = 0; ; round++) {
            EVENTS.add((int) (round % 3));
            pool.submit(Busy::task);
            reflected.invoke(null, 1);
            handle.invoke((int) round);
            sorted();
            try {
                thrown(3);
            } catch (IllegalStateException e) {
                mark(new Thrown(), new Throwable());
            }
            daemon(() -> mark(new Started(), new Throwable())).start();
            virtual();
            System.out.println("working " + round);
            Thread.sleep(2);
        }
    }

    private static void sit(int depth) {
        if (depth > 0) {
            sit(depth - 1);
            return;
        }
        while (true) {
            climb(5);
            pause();
        }
    }

    private static void climb(int depth) {
        mark(new Deep(), new Throwable());
        if (depth > 0) {
            climb(depth - 1);
        }
    }

    private static void loop() {
        while (true) {
            try {
                handleEvent(EVENTS.take());
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private static void handleEvent(int event) {
        switch (event) {
            case 0:
                mark(new Event(), new Throwable());
                break;
            case 1:
                EVENTS.forEach(other -> mark(new Event(), new Throwable()));
                break;
            default:
                Runtime.getRuntime();
        }
    }

    private static void task() {
        mark(new Task(), new Throwable());
    }

    static void reflected(int value) {
        mark(new Reflected(), new Throwable());
    }

    static void handle(long value) {
        mark(new Handle(), new Throwable());
    }

    private static void sorted() {
        List<Integer> list = new ArrayList<>(List.of(2, 1));
        list.sort((a, b) -> {
            mark(new Sorted(), new Throwable());
            return a - b;
        });
    }

    private static void thrown(int depth) {
        if (depth == 0) {
            throw new IllegalStateException();
        }
        thrown(depth - 1);
    }

    /** JDK 21 and later. */
    private static void virtual() throws Throwable {
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            return;
        }
        start.invoke(null, (Runnable) () -> {
            mark(new Virtual(), new Throwable());
            pause();
            mark(new Virtual(), new Throwable());
        });
    }

    private static void start(String name, Runnable body) {
        Thread thread = daemon(body);
        thread.setName(name);
        thread.start();
    }

    private static Thread daemon(Runnable body) {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        return thread;
    }

    private static void pause() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void mark(Marker made, Throwable here) {
        kept = made;
        StringBuilder text = new StringBuilder("made=" + made.getClass().getName() + "\n");
        for (StackTraceElement frame : here.getStackTrace()) {
            String file = frame.isNativeMethod() ? "Native Method"
                    : frame.getFileName() == null ? "Unknown Source"
                    : frame.getLineNumber() < 0 ? frame.getFileName()
                    : frame.getFileName() + ":" + frame.getLineNumber();
            text.append("\tat ").append(frame.getClassName()).append('.').append(frame.getMethodName());
            text.append('(').append(file).append(")\n");
        }
        if (TOLD.add(text.toString())) {
            System.out.print(text);
        }
    }
}
