import java.lang.reflect.Method;

/**
 * Runs until it is killed: in each round a thread has to wait for a monitor, and waits to be notified, once each
 * and for a millisecond at least; and an exception is thrown. In {@code --virtual} mode such threads are virtual.
 */
public final class Contended {
    static final class Lock {
        synchronized void method() {
            entered++;
        }
    }

    private static final long HELD_NANOS = 1_000_000;
    private static final Lock lock = new Lock();
    static volatile int entered;
    private static Method startVirtual;

    private static void block() {
        int before = entered;
        synchronized (lock) { // enter
            entered = before + 1;
        }
    }

    private static void deeper(int depth) {
        if (depth > 0) deeper(depth - 1);
        else block();
    }

    private static void waiting() {
        synchronized (lock) {
            try {
                lock.wait(1); // wait
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static volatile Object garbage;

    private static void failing() {
        garbage = new byte[1 << 16];
        try {
            throw new IllegalStateException();
        } catch (IllegalStateException e) {
            return;
        }
    }

    private static void contended(Runnable work) throws Exception {
        Thread thread;
        synchronized (lock) {
            thread = start(work);
            while (thread.getState() != Thread.State.BLOCKED) Thread.onSpinWait();
            long since = System.nanoTime();
            while (System.nanoTime() - since < HELD_NANOS) Thread.onSpinWait();
        }
        thread.join();
    }

    private static Thread start(Runnable work) throws Exception {
        if (startVirtual != null) return (Thread) startVirtual.invoke(null, work);
        Thread thread = new Thread(work, "contended");
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0) startVirtual = Thread.class.getMethod("startVirtualThread", Runnable.class);
        for (int round = 0; ; round++) {
            int depth = round % 3;
            contended(() -> deeper(depth));
            contended(lock::method);
            start(Contended::waiting).join();
            failing();
            if (round % 20 == 0) System.out.println("working " + round);
        }
    }
}
