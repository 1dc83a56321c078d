package io.lucce.programs;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Contends for monitors, waits and parks, and knows how often at which line, and how long at least:
 * prints {@code class (how)|line|count|nanoseconds} at its end. {@code --virtual}: in virtual threads.
 */
public final class Locks {
    private static final int ROUNDS = 12;
    private static final long HELD_NANOS = 3_000_000;
    private static final Map<String, long[]> expected = new TreeMap<>();

    private Locks() {}

    static final class Guard {
        private int entered;

        synchronized void method() {
            entered++;
        }

        static synchronized void ofClass() {
            array = null;
        }
    }

    private static volatile long[] array;
    private static boolean virtual;

    private static void note(Object of, String how, int line, long nanos) {
        String key = (of == null ? "" : of.getClass().getTypeName() + " ") + "(" + how + ")|" + line;
        synchronized (expected) {
            long[] sums = expected.computeIfAbsent(key, any -> new long[2]);
            sums[0]++;
            sums[1] += nanos;
        }
    }

    private static int line() {
        return new Throwable().getStackTrace()[1].getLineNumber();
    }

    private interface Work {
        void run() throws InterruptedException;
    }

    private static Thread start(Work work) {
        Runnable runnable = () -> {
            try {
                work.run();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        };
        Thread thread = virtual ? Virtual.thread(runnable) : new Thread(runnable, "locks");
        thread.setUncaughtExceptionHandler(Check::uncaught);
        thread.start();
        return thread;
    }

    /** For JDK 21 and later, by reflection: this class is compiled for 17. */
    private static final class Virtual {
        static Thread thread(Runnable work) {
            try {
                Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
                Class<?> type = Class.forName("java.lang.Thread$Builder");
                return (Thread) type.getMethod("unstarted", Runnable.class).invoke(builder, work);
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
            }
        }
    }

    /** Runs {@code work} in a thread that has to wait for {@code lock}, for a known time at least. */
    private static void contended(Object lock, Work work) throws InterruptedException {
        Thread thread;
        synchronized (lock) {
            thread = start(work);
            hold(thread);
        }
        thread.join();
    }

    private static void hold(Thread thread) throws InterruptedException {
        while (thread.getState() != Thread.State.BLOCKED && thread.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        long since = System.nanoTime();
        while (System.nanoTime() - since < HELD_NANOS) {
            Thread.onSpinWait();
        }
    }

    private static void block(Object lock) {
        note(lock, "enter", line() + 1, HELD_NANOS);
        synchronized (lock) {
            array = new long[1];
        }
    }

    private static void blockAt(Object lock, int depth) {
        if (depth > 0) {
            blockAt(lock, depth - 1);
        } else {
            block(lock);
        }
    }

    private static void method(Guard guard) {
        note(guard, "enter", METHOD, HELD_NANOS);
        guard.method();
    }

    private static void ofClass() {
        note(Guard.class, "enter", OF_CLASS, HELD_NANOS);
        Guard.ofClass();
    }

    /** Lines of the first instructions of those methods. */
    private static final int METHOD = 23, OF_CLASS = 27;

    private static void waiting(Object lock) throws InterruptedException {
        synchronized (lock) {
            note(lock, "wait", line() + 1, 2_000_000);
            lock.wait(2);
        }
    }

    private static void park(Object blocker) {
        note(blocker, "park", line() + 1, 2_000_000);
        LockSupport.parkNanos(blocker, 2_000_000);
    }

    private static void parkForNothing() {
        note(null, "park", line() + 1, 2_000_000);
        LockSupport.parkNanos(2_000_000);
    }

    private static final class Permit extends ReentrantLock {}

    private static void rounds() throws InterruptedException {
        Object plain = new Object();
        Guard guard = new Guard();
        for (int round = 0; round < ROUNDS; round++) {
            int depth = round % 4 * 10;
            contended(plain, () -> blockAt(plain, depth));
            contended(guard, () -> method(guard));
            contended(Guard.class, Locks::ofClass);
            contended(array = new long[0], () -> block(array));
            Thread waiter = start(() -> {
                waiting(plain);
                park(guard);
                parkForNothing();
            });
            waiter.join();
        }
        Check.equal(ROUNDS, guard.entered);
    }

    public static void main(String[] args) throws InterruptedException {
        virtual = args.length > 0 && args[0].equals("--virtual");
        rounds();
        expected.forEach((key, sums) -> System.out.println(key + "|" + sums[0] + "|" + sums[1]));
    }
}
