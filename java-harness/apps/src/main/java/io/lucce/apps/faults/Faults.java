package io.lucce.apps.faults;

import com.google.gson.Gson;
import java.lang.invoke.MethodHandles;
import java.math.BigDecimal;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Pattern;

/** One method for each fault that {@code lucce explain} finds. {@link Cures} does the same work without the faults. */
public final class Faults {
    /** Faults that are found by their share of bytes allocate this much. */
    static final long BYTES = 2 << 20;
    /** More than the least number of each fault that is found by its number. */
    static final int TIMES = 150;

    static final List<String> NAMES = new ArrayList<>(List.of("one"));
    static final Logger LOGGER = Logger.getLogger("faults");
    static Object kept;
    static long sum;

    private Faults() {}

    interface Work {
        void run(int round) throws Exception;
    }

    /** Repeats a work that allocates this much each time, or more. The compiler may remove what it allocates. */
    static void spend(int bytes, Work work) throws Exception {
        for (int round = 0; round < BYTES / bytes; round++) {
            work.run(100_000 + round);
        }
    }

    static void repeat(Work work) throws Exception {
        for (int n = 0; n < TIMES; n++) {
            work.run(n);
        }
    }

    public static void main(String[] args) throws Exception {
        LOGGER.setLevel(Level.INFO);
        spend(12, Faults::box);
        spend(16, Faults::iterate);
        spend(8, Faults::capture);
        spend(300, Faults::format);
        spend(40, Faults::add);
        spend(700, Faults::grow);
        spend(500, Faults::fillMap);
        spend(16, Faults::join);
        spend(16, Faults::emptyArray);
        spend(16, Faults::emptyList);
        spend(80, Faults::log);
        for (int n = 0; n < 16; n++) {
            buffer();
        }
        repeat(Faults::compilePattern);
        repeat(Faults::formatDate);
        repeat(Faults::makeMapper);
        repeat(Faults::makePool);
        repeat(Faults::startThread);
        repeat(Faults::parse);
        defineClasses();
        collect();
        contend();
        System.out.println(sum > 0);
    }

    static void box(int n) {
        Long boxed = (long) n;
        kept = boxed;
    }

    static void iterate(int n) {
        for (String name : NAMES) {
            sum += name.length();
        }
    }

    static void capture(int n) {
        LongSupplier supplier = () -> n;
        sum += supplier.getAsLong();
    }

    static void format(int n) {
        sum += String.format("order %d", n).length();
    }

    static void add(int n) {
        kept = BigDecimal.valueOf(n, 2).add(BigDecimal.TEN);
    }

    static void grow(int n) {
        List<Object> list = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            list.add(NAMES);
        }
        sum += list.size();
    }

    static void fillMap(int n) {
        Map<Object, Object> map = new HashMap<>();
        for (Level level : LEVELS) {
            for (String suffix : SUFFIXES) {
                map.put(level.getName().concat(suffix), level);
            }
        }
        sum += map.size();
    }

    static final Level[] LEVELS = {Level.FINE, Level.FINER, Level.FINEST, Level.INFO, Level.CONFIG, Level.WARNING};
    static final String[] SUFFIXES = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};

    private static int count(Object... parts) {
        return parts.length;
    }

    static void join(int n) {
        sum += count(NAMES, LOGGER, LEVELS);
    }

    static void emptyArray(int n) {
        kept = new int[0];
    }

    static void emptyList(int n) {
        List<Object> list = new ArrayList<>();
        sum += list.size();
        kept = list;
    }

    static void log(int n) {
        LOGGER.fine("order " + n + " of " + NAMES);
    }

    static void buffer() {
        byte[] bytes = new byte[1 << 20];
        sum += bytes.length;
        kept = bytes;
    }

    static void compilePattern(int n) {
        sum += Pattern.compile("a+b").matcher("aab").matches() ? 1 : 0;
    }

    static void formatDate(int n) {
        sum += new SimpleDateFormat("yyyy-MM-dd").format(new Date(n)).length();
    }

    static void makeMapper(int n) {
        sum += new Gson().toJson(n).length();
    }

    static void makePool(int n) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(1);
        pool.submit(() -> sum++).get();
        pool.shutdown();
    }

    static void startThread(int n) throws Exception {
        Thread thread = new Thread(() -> sum++);
        thread.start();
        thread.join();
    }

    static void parse(int n) {
        try {
            sum += Long.parseLong("none");
        } catch (NumberFormatException ignored) {
            sum++;
        }
    }

    /** A class of which copies are defined. */
    static final class Template {}

    static byte[] template() throws Exception {
        try (var in = Faults.class.getResourceAsStream("Faults$Template.class")) {
            return in.readAllBytes();
        }
    }

    private static void defineClasses() throws Exception {
        byte[] template = template();
        for (int n = 0; n < TIMES; n++) {
            kept = MethodHandles.lookup().defineHiddenClass(template, false);
        }
    }

    private static void collect() {
        for (int n = 0; n < 6; n++) {
            System.gc();
        }
    }

    private static void contend() throws Exception {
        Object lock = new Object();
        contend(lock, lock);
    }

    /** Two threads that hold a lock for a while, again and again. */
    static void contend(Object first, Object second) throws Exception {
        CountDownLatch start = new CountDownLatch(2);
        Thread[] threads = {new Thread(() -> hold(first, start)), new Thread(() -> hold(second, start))};
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void hold(Object lock, CountDownLatch start) {
        start.countDown();
        for (int n = 0; n < 40; n++) {
            synchronized (lock) {
                pause(3);
            }
            // Monitors are not fair: without a pause the same thread often has the lock again before the other wakes.
            pause(1);
        }
    }

    private static void pause(long millis) {
        try {
            TimeUnit.MILLISECONDS.sleep(millis);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }
}
