import java.util.ArrayList;
import java.util.List;

/** {@code Brief THREADS}: so many threads, fifty at once, each of which makes 51 objects and throws 51 exceptions. */
public final class Brief {
    private static volatile Object sink;

    public static void main(String[] args) throws InterruptedException {
        int threads = Integer.parseInt(args[0]);
        List<Thread> living = new ArrayList<>();
        for (int n = 0; n < threads; n++) {
            Thread thread = new Thread(Brief::work);
            living.add(thread);
            thread.start();
            if (living.size() == 50) {
                for (Thread each : living) {
                    each.join();
                }
                living.clear();
            }
        }
        for (Thread each : living) {
            each.join();
        }
        System.out.println("OK");
    }

    private static void work() {
        for (int n = 0; n < 51; n++) {
            try {
                sink = new Object();
                throw new IllegalStateException();
            } catch (IllegalStateException e) {
                sink = e;
            }
        }
    }
}
