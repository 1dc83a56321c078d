package io.lucce.programs;

import java.io.InputStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * A server at work, which leaks or not: {@code Leaks KIND [REQUESTS]}. Every request makes much that
 * dies young, puts something into a cache that is full and something into a queue; what is peculiar to
 * KIND comes besides. Wants a heap of 40 MB or so, so that the old generation is collected now and then; with
 * {@code -Dcollect=N} also behind each Nth request, for a collector that works beside the program and gets to little
 * where processors are scarce.
 * Prints what leaks as {@code leak TYPE CLASS LINE}, or {@code clean}.
 */
public final class Leaks {
    private static final int CACHED = 3_000;
    private static final int QUEUED = 400;
    private static final Random RANDOM = new Random(1);

    /** Least recently used entries go. */
    private static final Map<Integer, byte[]> CACHE =
            new LinkedHashMap<>(2 * CACHED, 0.75f, true) {
                private static final long serialVersionUID = 1;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Integer, byte[]> eldest) {
                    return size() > CACHED;
                }
            };

    private static final Deque<Object> QUEUE = new ArrayDeque<>();
    private static final Map<Integer, byte[]> SESSIONS = new HashMap<>();
    private static final List<Listener> LISTENERS = new ArrayList<>();
    private static final ThreadLocal<List<char[]>> HISTORY = ThreadLocal.withInitial(ArrayList::new);
    private static final List<Object> PLUGINS = new ArrayList<>();
    private static final List<int[]> INDEX = new ArrayList<>();
    static int work;

    /** Somebody who wants to hear of something, and never stops. */
    static final class Listener {
        long a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
    }

    /** A class loader for each deployment of {@link Plugin}. */
    static final class PluginLoader extends ClassLoader {
        PluginLoader() {
            super(Leaks.class.getClassLoader());
        }

        Object deploy(byte[] code) throws ReflectiveOperationException {
            Class<?> plugin = defineClass(Plugin.class.getName(), code, 0, code.length);
            return plugin.getDeclaredConstructor().newInstance();
        }
    }

    /** What is deployed: its class holds a table. */
    public static final class Plugin {
        static final byte[] TABLE = new byte[12 << 10];
        static final int LINE = line() - 1;

        public Plugin() {}

        int size() {
            return TABLE.length;
        }
    }

    private interface Request {
        void run(int number) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        String kind = args[0];
        int requests = args.length > 1 ? Integer.parseInt(args[1]) : 18_000;
        int collect = Integer.getInteger("collect", requests + 1);
        Request peculiar = peculiar(kind, requests);
        for (int number = 0; number < requests; number++) {
            work += busy();
            cache();
            queue();
            peculiar.run(number);
            if ((number + 1) % collect == 0) {
                System.gc();
            }
        }
        POOL.shutdown();
        System.out.println(expected);
    }

    private static String expected = "clean";
    private static final ExecutorService POOL = Executors.newFixedThreadPool(2, task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    });

    private static void leak(Class<?> type, Class<?> where, int line) {
        expected = "leak " + type.getTypeName() + " " + where.getName() + " " + line;
    }

    /** Another loader's classes ask, too. */
    public static int line() {
        return StackWalker.getInstance().walk(s -> s.skip(1).findFirst().get().getLineNumber());
    }

    private static Request peculiar(String kind, int requests) throws Exception {
        switch (kind) {
            case "map":
                return Leaks::session;
            case "listeners":
                return number -> listen();
            case "thread-local":
                return number -> {
                    Future<?> done = POOL.submit(Leaks::remember);
                    done.get();
                };
            case "class-loader":
                byte[] code;
                try (InputStream in = Leaks.class.getResourceAsStream("Leaks$Plugin.class")) {
                    code = in.readAllBytes();
                }
                leak(byte[].class, Plugin.class, Plugin.LINE);
                return number -> deploy(number, code);
            case "start-up":
                return number -> index(number, requests / 3);
            case "queue":
                return number -> queue();
            case "cache":
                return number -> cache();
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static void session(int number) {
        byte[] session = new byte[RANDOM.nextInt(900)];
        leak(byte[].class, Leaks.class, line() - 1);
        SESSIONS.put(number, session);
    }

    private static void listen() {
        for (int i = 0; i < 3; i++) {
            LISTENERS.add(new Listener());
        }
        leak(Listener.class, Leaks.class, line() - 2);
    }

    private static void remember() {
        HISTORY.get().add(new char[220]);
        leak(char[].class, Leaks.class, line() - 1);
    }

    private static void deploy(int number, byte[] code) throws ReflectiveOperationException {
        if (number % 20 == 0) {
            PLUGINS.add(new PluginLoader().deploy(code));
        }
    }

    /** Grows while the program starts. */
    private static void index(int number, int until) {
        if (number < until) {
            INDEX.add(new int[300]);
        }
    }

    /** Some 200 KB that are not needed afterwards. */
    private static int busy() {
        int sum = 0;
        for (int i = 0; i < 40; i++) {
            byte[] buffer = new byte[3_000 + RANDOM.nextInt(2_000)];
            List<String> words = new ArrayList<>();
            for (int j = 0; j < 8; j++) {
                words.add("word " + j + buffer.length);
            }
            sum += String.join(",", words).length();
        }
        return sum;
    }

    /** Twelve in a hundred are there already. */
    private static void cache() {
        for (int i = 0; i < 12; i++) {
            CACHE.computeIfAbsent(RANDOM.nextInt(CACHED * 8), key -> new byte[800 + key % 400]);
        }
    }

    /** First come, first served; how many wait varies. */
    private static void queue() {
        int come = RANDOM.nextInt(9);
        for (int i = 0; i < come; i++) {
            QUEUE.add(new long[60]);
        }
        int go = QUEUE.size() > QUEUED ? 9 : RANDOM.nextInt(8);
        for (int i = 0; i < go; i++) {
            QUEUE.poll();
        }
    }
}
