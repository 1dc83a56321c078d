import java.util.ArrayList;
import java.util.List;

/** Allocates in several contexts and threads, without an end, until its standard input ends. It says how far it is. */
public class Steady {
    static volatile Object kept;
    static volatile boolean ends;

    public static void main(String[] args) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 2; n++) {
            Thread thread = new Thread(Steady::work);
            thread.start();
            threads.add(thread);
        }
        System.out.println("works");
        while (System.in.read() >= 0) {
            // A line asks whether the program goes on.
            System.out.println(rounds);
        }
        ends = true;
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static volatile long rounds;

    static void work() {
        while (!ends) {
            deep((int) (rounds++ % 40));
            Thread.yield();
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    static void deep(int depth) {
        if (depth == 0) {
            kept = new long[8];
            kept = "rounds " + rounds;
        } else {
            kept = new Object();
            deep(depth - 1);
        }
    }
}
