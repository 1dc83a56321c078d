import java.util.ArrayList;
import java.util.List;

/** Allocates in threads of a kind: {@code main}, {@code threads}, {@code virtual}, or where compiled code need not. */
public final class Covered {
    static final int ROUNDS = 40_000;
    static volatile Object kept;
    static volatile long sum;

    record Point(long x, long y) {
        Point plus(Point other) {
            return new Point(x + other.x, y + other.y);
        }
    }

    public static void main(String[] how) throws Exception {
        switch (how[0]) {
            case "threads" -> threads();
            case "virtual" -> virtualThreads();
            case "escape" -> adds();
            default -> throw new IllegalArgumentException(how[0]);
        }
    }

    /** One after the other, and all of them at once. */
    private static void threads() throws Exception {
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            Thread thread = new Thread(Covered::work, "worker-" + i);
            thread.start();
            all.add(thread);
            if (i % 2 == 0) {
                thread.join();
            }
        }
        work();
        for (Thread thread : all) {
            thread.join();
        }
    }

    private static void virtualThreads() throws Exception {
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            Runnable work = Covered::work;
            all.add((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work));
        }
        for (Thread thread : all) {
            thread.join();
        }
    }

    private static void work() {
        for (int i = 0; i < ROUNDS; i++) {
            kept = new byte[1000];
        }
    }

    private static void adds() {
        for (int i = 0; i < 2_000; i++) {
            sum += many(i);
        }
    }

    private static long many(int from) {
        Point point = new Point(from, from);
        for (int i = 0; i < 5_000; i++) {
            point = new Point(point.x + 1, i).plus(new Point(i, from));
        }
        return point.x;
    }
}
