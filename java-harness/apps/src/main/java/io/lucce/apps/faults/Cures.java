package io.lucce.apps.faults;

import com.google.gson.Gson;
import java.lang.invoke.MethodHandles;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.LongSupplier;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.regex.Pattern;

/** The work of {@link Faults} without the faults: {@code lucce explain} finds nothing. */
public final class Cures {
    private static final int ROUNDS = 20_000;
    private static final int[] NOTHING = {};
    private static final Pattern PATTERN = Pattern.compile("a+b");
    private static final SimpleDateFormat DATES = new SimpleDateFormat("yyyy-MM-dd");
    private static final Gson MAPPER = new Gson();
    /** A logger that prints: what is built for it is used. */
    private static final Logger PRINTING = Logger.getLogger("cures");
    private static final byte[] BUFFER = new byte[1 << 10];
    private static Object kept;
    private static long sum;

    private Cures() {}

    /** A work that uses most of the memory, by many types. */
    static final class Order {
        private final long number;
        private final char[] text = new char[40];

        Order(long number) {
            this.number = number;
        }
    }

    private static final class Printer extends Handler {
        @Override
        public void publish(LogRecord entry) {
            sum += entry.getMessage().length();
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }

    public static void main(String[] args) throws Exception {
        Faults.LOGGER.setLevel(Level.INFO);
        PRINTING.setUseParentHandlers(false);
        PRINTING.addHandler(new Printer());
        PRINTING.setLevel(Level.FINE);
        for (int n = 0; n < 20 * ROUNDS; n++) {
            order(n);
        }
        for (int n = 0; n < ROUNDS; n++) {
            box(n);
            iterate();
            capture();
            add(n);
            join();
            emptyArray();
            log(n);
            buffer();
        }
        Faults.spend(100, Cures::format);
        Faults.spend(500, Cures::grow);
        Faults.spend(200, Cures::fillMap);
        Faults.spend(100, Cures::fillList);
        Faults.spend(400, Cures::print);
        Faults.repeat(Cures::matchPattern);
        Faults.repeat(Cures::formatDate);
        Faults.repeat(Cures::useMapper);
        usePool();
        Faults.repeat(Cures::parse);
        defineClass();
        Faults.contend(new Object(), new Object());
        System.out.println(sum > 0);
    }

    private static void order(int n) {
        kept = new Order(n);
        sum += ((Order) kept).number + ((Order) kept).text.length;
    }

    private static void box(int n) {
        sum += (long) n;
    }

    private static void iterate() {
        for (int i = 0; i < Faults.NAMES.size(); i++) {
            sum += Faults.NAMES.get(i).length();
        }
    }

    private static void capture() {
        LongSupplier supplier = () -> 7;
        sum += supplier.getAsLong();
    }

    private static void format(int n) {
        sum += "order ".concat(Integer.toString(n)).length();
    }

    private static void add(int n) {
        sum += n + 1000L;
    }

    private static void grow(int n) {
        List<Object> list = new ArrayList<>(100);
        for (int i = 0; i < 100; i++) {
            list.add(Faults.NAMES);
        }
        sum += list.size();
    }

    /** One element: the first storage is no growth. */
    private static void fillList(int n) {
        List<Object> list = new ArrayList<>();
        list.add(Faults.NAMES);
        sum += list.size();
        kept = list;
    }

    private static void fillMap(int n) {
        Map<Object, Object> map = new HashMap<>();
        map.put(Faults.NAMES, kept);
        sum += map.size();
    }

    private static int count(Object first, Object second, Object third) {
        return first == second ? 0 : 3;
    }

    private static void join() {
        sum += count(Faults.NAMES, Faults.LOGGER, Faults.LEVELS);
    }

    private static void emptyArray() {
        kept = NOTHING;
    }

    private static void log(int n) {
        if (Faults.LOGGER.isLoggable(Level.FINE)) {
            Faults.LOGGER.fine("order " + n + " of " + Faults.NAMES);
        }
    }

    private static void print(int n) {
        PRINTING.fine("order " + n + " of " + Faults.NAMES);
    }

    private static void buffer() {
        sum += BUFFER.length;
    }

    private static void matchPattern(int n) {
        sum += PATTERN.matcher("aab").matches() ? 1 : 0;
    }

    private static void formatDate(int n) {
        sum += DATES.format(new Date(n)).length();
    }

    private static void useMapper(int n) {
        sum += MAPPER.toJson(n).length();
    }

    private static void usePool() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(1);
        for (int n = 0; n < Faults.TIMES; n++) {
            pool.submit(() -> sum++).get();
        }
        pool.shutdown();
    }

    private static void parse(int n) {
        String text = "none";
        sum += Character.isDigit(text.charAt(0)) ? Long.parseLong(text) : 1;
    }

    private static void defineClass() throws Exception {
        byte[] template = Faults.template();
        kept = MethodHandles.lookup().defineHiddenClass(template, false);
        for (int n = 0; n < Faults.TIMES; n++) {
            sum += kept.hashCode() == n ? 1 : 0;
        }
    }
}
