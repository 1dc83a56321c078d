package io.lucce.programs;

import io.lucce.CallContext;
import java.io.File;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CyclicBarrier;

/**
 * Allocates in long loops of single frames while tags, carriers and the counted kinds change. Without arguments, prints
 * {@code tags|objects|bytes} for each tag at its end. With the path of a file: works in phases, each of which waits for a
 * file of its own, and prints how many objects each phase has.
 */
public final class LoopCounts {
    private static final int PHASES = 6;
    private static final int PER_PHASE = 40_000;
    private static final RuntimeException THROWN = new RuntimeException();
    private static final Map<String, long[]> expected = new TreeMap<>();
    private static volatile Object kept;

    private LoopCounts() {}

    /** What is counted, and nothing else makes. */
    static final class Marker {}

    private static int length(Marker... markers) {
        return markers.length;
    }

    private static long arrayBytes(int length) {
        return 16 + 4L * length + 7 & -8;
    }

    private static void add(String tags, long objects, long bytes) {
        synchronized (expected) {
            long[] sums = expected.computeIfAbsent(tags, key -> new long[2]);
            sums[0] += objects;
            sums[1] += bytes;
        }
    }

    /** All of its objects are made in loops of this frame. */
    private static void loop(int rounds, int depth, int id, String outer) {
        String tags = outer;
        CallContext.Tag open = null;
        long objects = 0;
        long bytes = 0;
        int n = 0;
        while (n < rounds) {
            try {
                for (; n < rounds; n++) {
                    Marker one = new Marker();
                    objects++;
                    bytes += 16;
                    Marker[] some = new Marker[n & 7];
                    if (n % 101 == 7) kept = some;
                    objects++;
                    bytes += arrayBytes(n & 7);
                    if (length(one, one, one) != 3) throw new AssertionError();
                    objects++;
                    bytes += arrayBytes(3);
                    if (n % 97 == 5) {
                        add(tags, objects, bytes);
                        objects = bytes = 0;
                        if (open != null) open.close();
                        open = n % 3 == 0 ? null : CallContext.tag("round", "r" + (n + id) % 7);
                        tags = open == null ? outer : "round=r" + (n + id) % 7;
                    }
                    if (n % 1_009 == 3 && depth > 0) loop(300, depth - 1, id, tags);
                    if (n % 53 == 0) Thread.yield();
                    if (n % 2_003 == 0) Check.that(CallContext.current(), new Throwable());
                    if (n % 211 == 9) {
                        n++;
                        throw THROWN;
                    }
                }
            } catch (RuntimeException e) {
                if (e != THROWN) throw e;
                kept = new Marker();
                objects++;
                bytes += 16;
            }
        }
        add(tags, objects, bytes);
        if (open != null) open.close();
    }

    /** One loop in one frame for all phases. */
    private static void phases(String file, CyclicBarrier done, boolean first) throws Exception {
        Object last = null;
        for (int n = 0; n < PHASES * PER_PHASE; n++) {
            if (n % PER_PHASE == 0) next(file, n / PER_PHASE, done, first);
            last = new Marker();
            if (n % 1_000 == 0) Thread.yield();
        }
        kept = last;
        next(file, PHASES, done, first);
    }

    private static void next(String file, int phase, CyclicBarrier done, boolean first) throws Exception {
        done.await();
        if (first) System.out.println("phase " + phase);
        while (!new File(file + phase).exists()) Thread.sleep(5);
    }

    private static Thread start(String name, boolean virtual, Runnable body) throws Exception {
        Method start = null;
        try {
            start = virtual ? Thread.class.getMethod("startVirtualThread", Runnable.class) : null;
        } catch (NoSuchMethodException e) {
            // An older JDK.
        }
        if (start != null) return (Thread) start.invoke(null, body);
        Thread thread = new Thread(body, name);
        thread.start();
        return thread;
    }

    public static void main(String[] args) throws Exception {
        List<Thread> threads = new ArrayList<>();
        if (args.length > 0) {
            CyclicBarrier done = new CyclicBarrier(3);
            for (int i = 0; i < 3; i++) {
                boolean first = i == 0;
                threads.add(start("phased-" + i, i == 2, () -> {
                    try {
                        phases(args[0], done, first);
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            System.out.println("each phase: " + 3 * PER_PHASE);
            return;
        }
        loop(60_000, 2, 0, "(no tag)");
        for (int i = 0; i < 6; i++) {
            int id = i;
            threads.add(start("looping-" + i, i % 2 == 1, () -> loop(20_000, 1, id, "(no tag)")));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        // The next thread of a kind continues with the counters of an ended one.
        Thread later = start("looping-7", false, () -> loop(5_000, 1, 7, "(no tag)"));
        later.join();
        expected.forEach((tags, sums) -> System.out.println(tags + "|" + sums[0] + "|" + sums[1]));
        Check.done();
    }
}
