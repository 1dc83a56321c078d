package io.lucce.programs;

import java.io.InputStream;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Small programs that leak in a known way or not at all: {@code LeakSuite PROGRAM [ROUNDS]}. Each round makes much that
 * dies young and does what is peculiar to PROGRAM; the heap is collected now and then. Prints {@code ready} behind the last
 * round and waits to be killed, two minutes at most. What each leaks, and what holds it, is a table of {@code tests/jvm}.
 */
public final class LeakSuite {
    private static final int ROUNDS = 320;
    /** Rounds from one collection to the next. */
    private static final int COLLECT = 8;
    /** Bytes of what is kept, each time. */
    private static final int SIZE = 6_000;

    private interface Round {
        void run(int number) throws Exception;
    }

    private static final Map<String, byte[]> CACHE = new HashMap<>();
    private static final List<Listener> LISTENERS = new ArrayList<>();
    private static final ThreadLocal<List<char[]>> HISTORY = ThreadLocal.withInitial(ArrayList::new);
    private static final List<Object> PLUGINS = new ArrayList<>();
    private static final Queue<long[]> QUEUE = new LinkedBlockingQueue<>();
    private static final Map<Integer, SoftEntry> SOFT_IN_NAME = new HashMap<>();
    private static final Map<Integer, SoftReference<byte[]>> SOFT = new HashMap<>();
    private static final Map<Session, Session[]> WEAK_KEYS = new WeakHashMap<>();
    private static final List<Supplier<byte[]>> CALLBACKS = new ArrayList<>();
    private static final Set<Key> KEYS = new HashSet<>();
    private static final List<WeakReference<byte[]>> WEAK_LISTENERS = new ArrayList<>();
    private static final List<Throwable> FAILURES = new ArrayList<>();
    private static final Deque<byte[]> RING = new ArrayDeque<>();
    private static final List<byte[]> WAVE = new ArrayList<>();
    private static final List<byte[]> INDEX = new ArrayList<>();
    private static final Map<Integer, byte[]> BOUNDED = new HashMap<>();
    private static final Map<Integer, byte[]> CONCURRENT = new ConcurrentHashMap<>();
    private static final byte[][] SLOTS = new byte[64][];
    private static Object[] table = new Object[16];
    private static byte[] log = new byte[0];
    private static Node head;
    private static int work;

    private static final Map<Integer, byte[]> RECENT =
            new LinkedHashMap<>(256, 0.75f, true) {
                private static final long serialVersionUID = 1;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Integer, byte[]> eldest) {
                    return size() > 200;
                }
            };

    static final class Listener {
        final byte[] buffer = new byte[SIZE];
    }

    static final class Node {
        final Node next;
        final byte[] payload = new byte[SIZE];

        Node(Node next) {
            this.next = next;
        }
    }

    /** It has a soft reference, and a strong one beside. */
    static final class SoftEntry {
        final SoftReference<byte[]> soft;
        final byte[] strong;

        SoftEntry(byte[] value) {
            soft = new SoftReference<>(value);
            strong = value;
        }
    }

    static final class Session {
        final byte[] state = new byte[SIZE];
    }

    /** No two are equal, although they mean the same. */
    static final class Key {
        final byte[] name = new byte[SIZE];
    }

    /** The first one is never done with. */
    static final class Resource {
        final byte[] buffer = new byte[SIZE];

        @Override
        @SuppressWarnings({"deprecation", "removal"})
        protected void finalize() throws Throwable {
            new CountDownLatch(1).await();
        }
    }

    /** What is deployed: its class holds a table. */
    public static final class Plugin {
        static final byte[] TABLE = table();

        public Plugin() {}

        private static byte[] table() {
            return new byte[4 * SIZE];
        }
    }

    static final class PluginLoader extends ClassLoader {
        PluginLoader() {
            super(LeakSuite.class.getClassLoader());
        }

        Object deploy(byte[] code) throws ReflectiveOperationException {
            Class<?> plugin = defineClass(Plugin.class.getName(), code, 0, code.length);
            return plugin.getDeclaredConstructor().newInstance();
        }
    }

    private LeakSuite() {}

    public static void main(String[] args) throws Exception {
        int rounds = args.length > 1 ? Integer.parseInt(args[1]) : ROUNDS;
        Round round = round(args[0], rounds);
        boolean collects = !args[0].startsWith("exhausted");
        for (int number = 0; number < rounds || !collects; number++) {
            work += garbage();
            round.run(number);
            if (collects && number % COLLECT == 0) {
                System.gc();
                // Snapshots are 20 ms apart, or a twentieth of the time.
                Thread.sleep(10);
            }
        }
        hang();
    }

    private static void hang() throws InterruptedException {
        System.out.println("ready");
        Thread.sleep(120_000);
        System.exit(work == 1 ? 1 : 0);
    }

    private static Round round(String program, int rounds) throws Exception {
        switch (program) {
            case "cache":
                return LeakSuite::cache;
            case "concurrent-map":
                return LeakSuite::concurrent;
            case "listener":
                return number -> listen();
            case "thread-local":
                ExecutorService pool = Executors.newFixedThreadPool(1, LeakSuite::daemon);
                return number -> pool.submit(LeakSuite::remember).get();
            case "class-loader":
                byte[] code;
                try (InputStream in = LeakSuite.class.getResourceAsStream("LeakSuite$Plugin.class")) {
                    code = in.readAllBytes();
                }
                return number -> deploy(code);
            case "finalizer":
                return number -> finalizable();
            case "static-array":
                return LeakSuite::store;
            case "queue":
                return number -> enqueue();
            case "backlog":
                return number -> produce();
            case "soft-in-name":
                return LeakSuite::softInName;
            case "weak-keys":
                return number -> weakKey();
            case "lambda":
                return number -> capture();
            case "thread":
                return number -> startThread(number);
            case "timer":
                ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, LeakSuite::daemon);
                return number -> schedule(timer);
            case "linked-list":
                return number -> link();
            case "bad-keys":
                return number -> addKey();
            case "weak-list":
                return number -> watch();
            case "failures":
                return number -> fail();
            case "growing-array":
                return number -> append();
            case "hang":
                return number -> cacheThenHang(number);
            case "exhausted-cache":
            case "exhausted-at-once":
                return LeakSuite::cache;
            case "recent":
                return LeakSuite::recent;
            case "ring":
                return number -> ring();
            case "waves":
                return LeakSuite::wave;
            case "start-up":
                return number -> index(number, rounds / 4);
            case "bounded":
                return number -> bounded(number, rounds / 2);
            case "interned":
                return LeakSuite::intern;
            case "soft":
                return LeakSuite::soft;
            case "slots":
                return LeakSuite::slot;
            case "nothing":
                return number -> work++;
            default:
                throw new IllegalArgumentException(program);
        }
    }

    private static Thread daemon(Runnable task) {
        Thread thread = new Thread(task, "pooled");
        thread.setDaemon(true);
        return thread;
    }

    /** Some 300 KB that are not needed afterwards. */
    private static int garbage() {
        int sum = 0;
        for (int i = 0; i < 40; i++) {
            sum += new byte[7_000 + i].length;
        }
        return sum;
    }

    private static void cache(int number) {
        for (int i = 0; i < 3; i++) {
            CACHE.put(number + "/" + i, new byte[SIZE]);
        }
    }

    private static void concurrent(int number) {
        for (int i = 0; i < 3; i++) {
            CONCURRENT.put(number * 3 + i, new byte[SIZE]);
        }
    }

    private static void listen() {
        for (int i = 0; i < 3; i++) {
            LISTENERS.add(new Listener());
        }
    }

    private static void remember() {
        for (int i = 0; i < 2; i++) {
            HISTORY.get().add(new char[SIZE]);
        }
    }

    private static void deploy(byte[] code) throws ReflectiveOperationException {
        PLUGINS.add(new PluginLoader().deploy(code));
    }

    private static void finalizable() {
        for (int i = 0; i < 3; i++) {
            work += new Resource().buffer.length;
        }
    }

    private static void store(int number) {
        for (int i = 0; i < 3; i++) {
            int at = number * 3 + i;
            if (at >= table.length) {
                table = java.util.Arrays.copyOf(table, 2 * table.length);
            }
            table[at] = new int[SIZE / 4];
        }
    }

    /** Who takes from it has died. */
    private static void enqueue() {
        for (int i = 0; i < 3; i++) {
            QUEUE.add(new long[SIZE / 8]);
        }
    }

    /** Less is taken from it than comes: nothing old is there, but ever more. */
    private static void produce() {
        for (int i = 0; i < 5; i++) {
            QUEUE.add(new long[SIZE / 8]);
        }
        for (int i = 0; i < 2; i++) {
            QUEUE.poll();
        }
    }

    private static void softInName(int number) {
        for (int i = 0; i < 3; i++) {
            SOFT_IN_NAME.put(number * 3 + i, new SoftEntry(new byte[SIZE]));
        }
    }

    /** The value refers to its key. */
    private static void weakKey() {
        for (int i = 0; i < 3; i++) {
            Session session = new Session();
            WEAK_KEYS.put(session, new Session[] {session});
        }
    }

    private static void capture() {
        for (int i = 0; i < 3; i++) {
            byte[] request = new byte[SIZE];
            CALLBACKS.add(() -> request);
        }
    }

    /** A thread that waits for ever has the array in a variable. */
    private static void startThread(int number) throws InterruptedException {
        if (number % 4 == 0) {
            CountDownLatch begun = new CountDownLatch(1);
            daemon(() -> waitForEver(begun)).start();
            begun.await();
        }
    }

    private static void waitForEver(CountDownLatch begun) {
        byte[] buffer = new byte[4 * SIZE];
        begun.countDown();
        try {
            new CountDownLatch(1).await();
        } catch (InterruptedException e) {
            work++;
        }
        work += buffer.length;
    }

    private static void schedule(ScheduledThreadPoolExecutor timer) {
        for (int i = 0; i < 3; i++) {
            byte[] request = new byte[SIZE];
            timer.schedule(() -> work += request.length, 1, TimeUnit.DAYS);
        }
    }

    private static void link() {
        for (int i = 0; i < 3; i++) {
            head = new Node(head);
        }
    }

    private static void addKey() {
        for (int i = 0; i < 3; i++) {
            KEYS.add(new Key());
        }
    }

    /** What they refer to goes, they stay. */
    private static void watch() {
        for (int i = 0; i < 400; i++) {
            WEAK_LISTENERS.add(new WeakReference<>(new byte[8]));
        }
    }

    private static void fail() {
        for (int i = 0; i < 150; i++) {
            FAILURES.add(new IllegalStateException("failed"));
        }
    }

    /** One array that becomes ever larger. */
    private static void append() {
        log = java.util.Arrays.copyOf(log, log.length + 3 * SIZE);
    }

    private static void cacheThenHang(int number) throws Exception {
        for (int i = 0; i < 3; i++) {
            CACHE.put(number + "/" + i, new byte[SIZE]);
        }
        if (number == 40) {
            hang();
        }
    }

    private static void recent(int number) {
        for (int i = 0; i < 6; i++) {
            RECENT.put(number * 6 + i, new byte[SIZE]);
        }
    }

    private static void ring() {
        for (int i = 0; i < 6; i++) {
            RING.add(new byte[SIZE]);
            if (RING.size() > 150) {
                RING.remove();
            }
        }
    }

    private static void wave(int number) {
        if (number % 50 == 0) {
            WAVE.clear();
        }
        for (int i = 0; i < 6; i++) {
            WAVE.add(new byte[SIZE]);
        }
    }

    private static void index(int number, int until) {
        if (number < until) {
            for (int i = 0; i < 6; i++) {
                INDEX.add(new byte[SIZE]);
            }
        }
    }

    /** Grows for half of the run, and not beyond. */
    private static void bounded(int number, int until) {
        for (int i = 0; i < 4; i++) {
            int key = number < until ? number * 4 + i : (number * 31 + i * 7) % (until * 4);
            BOUNDED.put(key, new byte[SIZE]);
        }
    }

    /** The JVM lets go of interned strings to which nobody refers. */
    private static void intern(int number) {
        for (int i = 0; i < 200; i++) {
            work += ("interned " + number + "/" + i).intern().length();
        }
    }

    private static void soft(int number) {
        for (int i = 0; i < 3; i++) {
            SOFT.put((number * 3 + i) % 600, new SoftReference<>(new byte[SIZE]));
        }
    }

    /** Each slot is used anew. */
    private static void slot(int number) {
        for (int i = 0; i < 8; i++) {
            SLOTS[(number * 8 + i) % SLOTS.length] = new byte[SIZE];
        }
    }
}
