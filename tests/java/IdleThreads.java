import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Threads that have nothing to do for a second: those of a pool, of a timer, of the JDK's delays and, where it is there, of
 * Flight Recorder. One task of the timer waits for something of its own.
 */
public class IdleThreads {
    public static void main(String[] args) throws Exception {
        AutoCloseable recording = recording();
        var pool = Executors.newFixedThreadPool(2);
        pool.submit(() -> 0).get();
        var timer = new Timer();
        timer.schedule(new Task(), 10);
        delay();
        Thread.sleep(1_500);
        delay();
        timer.cancel();
        pool.shutdown();
        pool.awaitTermination(10, TimeUnit.SECONDS);
        if (recording != null) recording.close();
    }

    /** {@code null}: this JDK has no Flight Recorder. */
    private static AutoCloseable recording() throws Exception {
        try {
            Class<?> type = Class.forName("jdk.jfr.Recording");
            Object recording = type.getConstructor().newInstance();
            type.getMethod("start").invoke(recording);
            return (AutoCloseable) recording;
        } catch (ClassNotFoundException absent) {
            return null;
        }
    }

    private static void delay() {
        new CompletableFuture<Void>().completeOnTimeout(null, 20, TimeUnit.MILLISECONDS).join();
    }

    static class Task extends TimerTask {
        @Override
        public synchronized void run() {
            try {
                wait(300);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
