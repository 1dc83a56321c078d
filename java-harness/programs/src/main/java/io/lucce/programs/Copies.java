package io.lucce.programs;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Allocates in methods of the JDK that a compiler may replace by code of its own. How much is
 * counted must not depend on whether it did: a test compares interpreted and compiled runs. Checks
 * nothing itself and prints nothing. Needs {@code --add-exports java.base/jdk.internal.ref=ALL-UNNAMED}.
 */
public final class Copies {
    /** Copies by the older thread. */
    private static final int OLDER_COPIES = 776;

    static Object kept;

    public static void main(String[] args) throws ReflectiveOperationException, InterruptedException {
        int n = args.length > 0 ? Integer.parseInt(args[0]) : 20_000;
        copyOnOlderThread();
        objects(n, new Object[7]);
        ranges(n, new Object[7]);
        strings(n, new String[] {"a", "b"});
        primitives(n, new int[5]);
        wide(n, "\u0394\u03b5\u03bb\u03c4\u03b1".toCharArray());
        boxes(n);
        builders(n);
        grow(n / 10);
    }

    /**
     * Runs a task in the thread "Reference Handler", which the JVM starts before an agent can insert hooks into its frames. The
     * thread's first events are the task's copies.
     */
    private static void copyOnOlderThread() throws ReflectiveOperationException, InterruptedException {
        Older task = new Older();
        // Loading the class of the copying method would be an event.
        copyOlder(task.from, 1);
        Class.forName("jdk.internal.ref.Cleaner")
            .getMethod("create", Object.class, Runnable.class)
            .invoke(null, new Object(), task);
        do {
            System.gc();
        } while (!task.done.await(20, TimeUnit.MILLISECONDS));
    }

    /** No other line makes so many objects. */
    private static void copyOlder(Object[] from, int copies) {
        for (int i = 0; i < copies; i++) {
            kept = Arrays.copyOf(from, 9);
        }
    }

    private static final class Older implements Runnable {
        final CountDownLatch done = new CountDownLatch(1);
        private final Object[] from = new Object[7];

        @Override
        public void run() {
            copyOlder(from, OLDER_COPIES);
            done.countDown();
        }
    }

    private static void objects(int n, Object[] from) {
        for (int i = 0; i < n; i++) {
            kept = Arrays.copyOf(from, 9);
        }
    }

    private static void ranges(int n, Object[] from) {
        for (int i = 0; i < n; i++) {
            kept = Arrays.copyOfRange(from, 1, 3);
        }
    }

    private static void strings(int n, String[] from) {
        for (int i = 0; i < n; i++) {
            kept = Arrays.copyOf(from, 4);
        }
    }

    private static void primitives(int n, int[] from) {
        for (int i = 0; i < n; i++) {
            kept = Arrays.copyOf(from, 6);
        }
    }

    private static void wide(int n, char[] from) {
        for (int i = 0; i < n; i++) {
            kept = new String(from);
        }
    }

    private static void boxes(int n) {
        for (int i = 0; i < n; i++) {
            kept = Integer.valueOf(i + 1000);
        }
    }

    private static void builders(int n) {
        for (int i = 0; i < n; i++) {
            kept = new StringBuilder().append("x").append(i).toString();
        }
    }

    private static void grow(int n) {
        for (int i = 0; i < n; i++) {
            Map<Integer, Object> map = new HashMap<>();
            ArrayList<Object> list = new ArrayList<>();
            for (int j = 0; j < 20; j++) {
                map.put(j, kept);
                list.add(map);
            }
            kept = list.toArray();
        }
    }
}
