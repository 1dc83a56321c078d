package io.lucce.programs;

import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;

/**
 * Has objects that are held in known ways, each made in a method of that way's name; goes on making and collecting others until it
 * is ended, and prints {@code working} now and then.
 */
public final class Holders {
    private static final int SIZE = 1 << 16;

    /** In the order of the class file: a number of a field is not that of its name. */
    interface Constants {
        Object FIRST = new Object();
        Object SECOND = new Object();
    }

    interface More extends Constants {
        Object THIRD = new Object();
    }

    static class Base implements More {
        Object unused;
        Object held;
    }

    static final class Derived extends Base implements Constants {
        Object other;
        Object last;
    }

    static final class Node {
        final Node next;
        Object payload;

        Node(Node next) {
            this.next = next;
        }
    }

    final class Inner {
        int value;
    }

    private final byte[] own = outer();

    static final Map<String, byte[]> MAP = new HashMap<>();
    static final ThreadLocal<Object> LOCAL = new ThreadLocal<>();
    static final List<Object> KEPT = new ArrayList<>();
    static final Object[] LATE = new Object[512];
    static Node chain;
    static Object[][] grid;
    static Derived derived;
    static Inner inner;
    static Supplier<Object> lambda;
    static WeakReference<Object> weakly;
    static PhantomReference<Object> phantom;
    static SoftReference<Object> softly;

    private Holders() {}

    private static byte[] outer() {
        return new byte[SIZE];
    }

    private static void map() {
        MAP.put("a key", new byte[SIZE]);
    }

    private static byte[] inChain() {
        return new byte[SIZE];
    }

    private static void chain() {
        Node first = new Node(null);
        first.payload = inChain();
        for (int i = 0; i < 20; i++) {
            first = new Node(first);
        }
        chain = first;
    }

    private static void grid() {
        grid = new Object[3][4];
        grid[1][2] = new byte[SIZE];
    }

    private static void derived() {
        derived = new Derived();
        derived.held = new byte[SIZE];
    }

    private static byte[] inLambda() {
        return new byte[SIZE];
    }

    private static void captured() {
        byte[] captured = inLambda();
        lambda = () -> captured;
    }

    private static byte[] threadLocal() {
        return new byte[SIZE];
    }

    private static byte[] variable() {
        return new byte[SIZE];
    }

    private static byte[] weak() {
        return new byte[SIZE];
    }

    private static byte[] soft() {
        return new byte[SIZE];
    }

    private static byte[] both() {
        return new byte[SIZE];
    }

    /** Held weakly, and by a list. */
    private static void twice() {
        byte[] both = both();
        KEPT.add(new WeakReference<>(both));
        KEPT.add(both);
    }

    private static byte[] later() {
        return new byte[SIZE];
    }

    private static byte[] several() {
        return new byte[SIZE];
    }

    /** Its variable is all that holds the object. */
    private static void holds(CountDownLatch ready) {
        byte[] held = variable();
        LOCAL.set(threadLocal());
        ready.countDown();
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException e) {
            return;
        }
        KEPT.add(held);
    }

    public static void main(String[] args) throws Exception {
        // The VM begins to sample a thread when it has allocated some.
        for (int i = 0; i < 300; i++) {
            LATE[i % LATE.length] = later();
        }
        // Here, not where it is needed: to load a class makes arrays of bytes.
        derived = new Derived();
        map();
        chain();
        grid();
        derived();
        inner = new Holders().new Inner();
        captured();
        softly = new SoftReference<>(soft());
        byte[] of = weak();
        weakly = new WeakReference<>(of);
        phantom = new PhantomReference<>(of, new ReferenceQueue<>());
        twice();
        for (int i = 0; i < 5; i++) {
            KEPT.add(several());
        }
        CountDownLatch ready = new CountDownLatch(1);
        Thread holder = new Thread(() -> holds(ready), "holder \u001b[2J<b>");
        holder.setDaemon(true);
        holder.start();
        ready.await();
        Object kept = of;
        for (long round = 0; ; round++) {
            for (int i = 0; i < 50; i++) {
                kept = i % 2 == 0 ? of : new byte[SIZE];
            }
            LATE[(int) (round % LATE.length)] = later();
            if (round < 60 || round % 4 == 0) {
                System.gc();
            } else {
                Thread.sleep(20);
            }
            if (round % 20 == 0) {
                System.out.println("working " + (kept == null));
            }
            Reference.reachabilityFence(of);
        }
    }
}
