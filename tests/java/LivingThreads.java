import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Starts threads of known numbers at two places: some end, the others live on until the JVM ends. */
public class LivingThreads {
    static final int KEPT = 12, SHORT = 30;
    static final CountDownLatch NEVER = new CountDownLatch(1);

    static void keep() throws Exception {
        CountDownLatch runs = new CountDownLatch(1);
        Thread thread = new Thread(() -> {
            runs.countDown();
            try {
                NEVER.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        thread.setDaemon(true);
        thread.start();
        runs.await();
    }

    static void end() throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Thread thread = new Thread(() -> {});
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) thread.join();
    }

    public static void main(String[] args) throws Exception {
        keep();
        Thread.sleep(300);
        for (int i = 1; i < KEPT; i++) keep();
        for (int i = 0; i < SHORT / 3; i++) end();
        System.out.println("ready");
        // The test kills the JVM.
        if (args.length > 0) NEVER.await();
    }
}
