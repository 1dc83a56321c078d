import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the calls of its own methods, and measures them from within and from without. Prints both: what a tool says lies
 * between. With "--virtual", some of its threads are virtual. With "--wait FILE", it runs a round whenever the file
 * exists, which it then deletes.
 */
public class NamedMethods {
    static final TreeMap<String, AtomicLong> SUMS = new TreeMap<>();

    static AtomicLong sum(String name) {
        synchronized (SUMS) {
            return SUMS.computeIfAbsent(name, any -> new AtomicLong());
        }
    }

    static void longest(String name, long passed) {
        sum(name).accumulateAndGet(passed, Math::max);
    }

    /** A call that is measured from within and from without. */
    static void measure(String name, Runnable call) {
        long before = System.nanoTime();
        try {
            call.run();
            sum("ended " + name).incrementAndGet();
        } catch (IllegalStateException e) {
            sum("threw " + name).incrementAndGet();
        } finally {
            long passed = System.nanoTime() - before;
            sum("outer " + name).addAndGet(passed);
            longest("outer-longest " + name, passed);
        }
    }

    static void measureInner(String name, long before) {
        long passed = System.nanoTime() - before;
        sum("inner " + name).addAndGet(passed);
        longest("inner-longest " + name, passed);
    }

    interface Store {
        void put();

        default void twice() {
            calls("NamedMethods$Store.twice");
            put();
            put();
        }
    }

    static class First implements Store {
        @Override
        public void put() {
            calls("NamedMethods$First.put");
        }
    }

    static void calls(String name) {
        sum("calls " + name).incrementAndGet();
    }

    static class Repo {
        static final int READY;

        static {
            calls("NamedMethods$Repo.<clinit>");
            READY = 1;
        }

        Repo() {
            calls("NamedMethods$Repo.<init>");
        }

        /** An overload, and a constructor that throws. */
        Repo(int bad) {
            calls("NamedMethods$Repo.<init>");
            if (bad > 0) throw new IllegalStateException("bad");
        }

        static int find(int depth) {
            calls("NamedMethods$Repo.find");
            return depth == 0 ? 0 : 1 + find(depth - 1);
        }

        static String find(String text) {
            calls("NamedMethods$Repo.find");
            return text + READY;
        }

        void save(boolean fails, int millis) {
            long before = System.nanoTime();
            try {
                calls("NamedMethods$Repo.save");
                if (millis > 0) Thread.sleep(millis);
                if (fails) throw new IllegalStateException("not saved");
                if (millis == 0) find(2);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            } finally {
                measureInner("NamedMethods$Repo.save", before);
            }
        }

        /** It calls itself; the time of inner calls is that of the outermost. */
        void walk(int depth) {
            if (depth < 5) {
                walk(depth + 1);
                return;
            }
            long before = System.nanoTime();
            measure("NamedMethods$Repo.save", () -> save(false, 1));
            measureInner("NamedMethods$Repo.walk", before);
        }
    }

    /** Small: it is inlined. */
    static int leaf(int value) {
        return value + 1;
    }

    static int work(int rounds) {
        Repo repo = new Repo();
        int made = 0;
        for (int i = 0; i < rounds; i++) {
            made = leaf(made);
            made += Repo.find(i % 4);
        }
        sum("calls NamedMethods.leaf").addAndGet(rounds);
        for (int i = 0; i < 40; i++) {
            boolean fails = i % 4 == 3;
            int millis = i % 10 == 0 ? 2 : 0;
            measure("NamedMethods$Repo.save", () -> repo.save(fails, millis));
        }
        measure("NamedMethods$Repo.walk", () -> repo.walk(0));
        sum("calls NamedMethods$Repo.walk").addAndGet(6);
        Repo.find("x");
        new First().twice();
        for (int i = 0; i < 3; i++) {
            try {
                new Repo(i % 2);
            } catch (IllegalStateException e) {
                made++;
            }
        }
        new BitSet().flip(3);
        sum("calls java.util.BitSet.flip").incrementAndGet();
        return made;
    }

    static Thread start(boolean isVirtual, Runnable task) throws ReflectiveOperationException {
        if (isVirtual) {
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
        }
        Thread thread = new Thread(task);
        thread.start();
        return thread;
    }

    static void round(boolean isVirtual, int rounds) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) threads.add(start(isVirtual && i % 2 == 0, () -> work(rounds)));
        work(rounds);
        for (Thread thread : threads) thread.join();
        System.gc();
        sum("calls java.lang.System.gc").incrementAndGet();
    }

    public static void main(String[] arguments) throws Exception {
        List<String> words = List.of(arguments);
        boolean isVirtual = words.contains("--virtual");
        int at = words.indexOf("--wait");
        while (at >= 0) {
            Path file = Path.of(words.get(at + 1));
            while (!Files.deleteIfExists(file)) {
                System.out.println("working");
                Thread.sleep(20);
            }
            round(isVirtual, 500);
            print();
            SUMS.clear();
            System.out.println("round");
        }
        round(isVirtual, 20_000);
        round(isVirtual, 20_000);
        print();
    }

    static void print() {
        SUMS.forEach((name, sum) -> System.out.println(name + " " + sum));
    }
}
