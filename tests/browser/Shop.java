import java.util.ArrayList;
import java.util.List;

/** A little of everything that a page shows: recursion, a contended lock, names that try to be markup. */
public final class Shop {
    private static final Object LOCK = new Object();
    private static final List<Object> kept = new ArrayList<>();

    /** Tries to be an element of a page, wherever it is shown as a type. */
    private static final class Order {
        final long[] items;

        Order(int items) {
            this.items = new long[items];
        }
    }

    private static Object tree(int depth) {
        Object[] node = new Object[2];
        if (depth > 0) {
            node[0] = tree(depth - 1);
            node[1] = tree(depth - 1);
        }
        return node;
    }

    private static void orders(int count) {
        for (int order = 0; order < count; order++) {
            kept.add(new Order(order % 50));
        }
    }

    private static void contend() throws InterruptedException {
        Runnable wait = () -> {
            for (int turn = 0; turn < 20; turn++) {
                synchronized (LOCK) {
                    // Each of the two counts something, whether or not it ever has to wait.
                    kept.add(new Order(turn));
                    try {
                        Thread.sleep(1);
                    } catch (InterruptedException e) {
                        return;
                    }
                }
            }
        };
        Thread other = new Thread(wait, "<img src=x onerror=alert(1)></script><script>alert(2)</script>");
        Thread another = new Thread(wait, "pool-1-thread-2");
        other.start();
        another.start();
        other.join();
        another.join();
    }

    /** Until the process that has started it closes its standard input. */
    private static void goOn() throws Exception {
        while (System.in.available() == 0) {
            tree(8);
            Thread.sleep(10);
        }
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        for (int round = 0; round < rounds; round++) {
            tree(12);
            orders(2_000);
            if (List.of(args).contains("collect")) {
                System.gc();
            }
        }
        contend();
        if (List.of(args).contains("on")) {
            System.out.println("goes on");
            goOn();
        }
    }
}
