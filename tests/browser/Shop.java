import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** A little of everything that a page shows: recursion, a contended lock, names that try to be markup. */
public final class Shop {
    private static final Object LOCK = new Object();
    private static final List<Object> kept = new ArrayList<>();
    private static Object last;

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

    /** Own code below frames of the JDK. */
    private static void mapped(int count) {
        IntStream.range(0, count).mapToObj(Shop::made).forEach(kept::add);
    }

    private static Order made(int items) {
        return new Order(items % 7);
    }

    /** A thread whose events have one way. */
    private static void oneWay() throws InterruptedException {
        Thread thread = new Thread(Shop::first, "one way");
        thread.start();
        thread.join();
    }

    private static void first() {
        second();
    }

    private static void second() {
        third();
    }

    private static void third() {
        last = new Order(3);
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
        Thread third = new Thread(wait, "pool-1-thread-7");
        List<Thread> threads = List.of(other, another, third);
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
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
            mapped(500);
            if (List.of(args).contains("collect")) {
                System.gc();
            }
        }
        contend();
        oneWay();
        if (List.of(args).contains("on")) {
            System.out.println("goes on");
            goOn();
        }
    }
}
