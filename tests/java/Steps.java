import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A thread waits for three monitors, one after the other, which another one holds. That lets go of the first when
 * there is a file {@code stop} in the folder that is given, of the second when there is {@code start}, and of the
 * third as soon as it is waited for. Then it runs until it is killed.
 */
public final class Steps {
    private static final Object first = new Object(), second = new Object(), third = new Object();
    private static volatile int passed;

    private static void first() {
        synchronized (first) {
            passed = 1;
        }
    }

    private static void second() {
        synchronized (second) {
            passed = 2;
        }
    }

    private static void third() {
        synchronized (third) {
            passed = 3;
        }
    }

    private static void awaitBlocked(Thread thread, int behind) {
        while (passed != behind || thread.getState() != Thread.State.BLOCKED) Thread.onSpinWait();
    }

    private static void until(Path file) throws InterruptedException {
        while (!Files.exists(file)) {
            System.out.println("working until " + file.getFileName());
            Thread.sleep(20);
        }
    }

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        Thread thread = new Thread(() -> {
            first();
            second();
            third();
        }, "waits");
        synchronized (third) {
            synchronized (second) {
                synchronized (first) {
                    thread.start();
                    awaitBlocked(thread, 0);
                    until(folder.resolve("stop"));
                }
                awaitBlocked(thread, 1);
                until(folder.resolve("start"));
            }
            awaitBlocked(thread, 2);
        }
        thread.join();
        until(folder.resolve("never"));
    }
}
