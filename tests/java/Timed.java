import io.lucce.CallContext;
import java.util.ArrayList;
import java.util.List;

/**
 * Threads that count events of their own: "clock", whose value is what the clock said just before, and
 * "step", whose values are 0, 1, 2, … in each thread. {@code Timed STEPS}: three threads, and three more when
 * those have ended; {@code Timed STEPS virtual}: virtual ones; {@code Timed forever}: one, until it is killed,
 * which says now and then how many steps it has made.
 */
public final class Timed {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("forever")) {
            forever();
        }
        int steps = Integer.parseInt(args[0]);
        boolean virtual = args.length > 1;
        for (int round = 0; round < 2; round++) {
            List<Thread> threads = new ArrayList<>();
            for (int n = 0; n < 3; n++) {
                Runnable work = () -> steps(steps, virtual);
                Thread thread = virtual ? virtual(work) : new Thread(work);
                thread.setName("timed-" + (3 * round + n));
                threads.add(thread);
            }
            for (Thread thread : threads) {
                thread.start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
    }

    /** Needs JDK 21. */
    private static Thread virtual(Runnable work) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        return (Thread) type.getMethod("unstarted", Runnable.class).invoke(builder, work);
    }

    private static void steps(int steps, boolean parks) {
        for (int n = 0; n < steps; n++) {
            step(n);
            if (parks && n % 50 == 0) {
                pause();
            }
        }
    }

    private static void step(long n) {
        CallContext.event("clock", System.nanoTime());
        CallContext.event("step", n);
    }

    private static void forever() {
        for (long n = 0; ; n++) {
            step(n);
            if (n % 100 == 99) {
                System.out.println("working " + (n + 1));
                pause();
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
