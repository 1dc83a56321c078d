package io.lucce.programs;

import java.lang.ref.Cleaner;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.lang.reflect.Array;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Has objects that are held in known ways, each made in a method of that way's name; goes on making and collecting others until it
 * is ended, and prints {@code working} now and then.
 */
public final class Holders {
    private static final int SIZE = 1 << 16;
    private static final int LONG = 100_000;

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

    /** Loaded by loaders of its own, which are held by one of its objects, by an array of them, or by its class. */
    public static class Plugin {
        public Plugin() {}
    }

    /** Loaded by the same loaders; nothing but its static field refers to what it holds. */
    public static class Unit {
        public static Object held;
    }

    static final class OwnLoader extends ClassLoader {
        final Object held;

        OwnLoader(Object held) {
            this.held = held;
        }
    }

    /** The finalizer of the first one does not end, so the others wait for theirs. */
    static class Slow {
        static final CountDownLatch STARTED = new CountDownLatch(1);
        final Object held;

        Slow(Object held) {
            this.held = held;
        }

        @Override
        @SuppressWarnings({"removal", "deprecation"})
        protected void finalize() throws Exception {
            STARTED.countDown();
            Thread.sleep(Long.MAX_VALUE);
        }
    }

    record Action(Object held) implements Runnable {
        @Override
        public void run() {}
    }

    private final byte[] own = outer();

    /** Made here, so that no method below makes the arrays of its literals. */
    static final Object[] LITERALS = {"a key", "x"};
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

    static final Cleaner CLEANER = Cleaner.create();
    static final ThreadLocal<Object> POOLED = new ThreadLocal<>();
    static final ClassValue<Object> BY_CLASS = new ClassValue<>() {
        @Override
        protected Object computeValue(Class<?> type) {
            return inClassValue();
        }
    };
    static Node longChain;
    static LinkedList<Object> linked;

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

    private static byte[] inLoader() {
        return new byte[SIZE];
    }

    private static byte[] inArrayLoader() {
        return new byte[SIZE];
    }

    private static byte[] inClassLoader() {
        return new byte[SIZE];
    }

    /** A static field of a class with a loader of its own holds the object; the other class of the loader is returned. */
    private static Class<?> load(Object held) throws Exception {
        URL[] urls = {Holders.class.getProtectionDomain().getCodeSource().getLocation()};
        ClassLoader loader = new URLClassLoader(urls, ClassLoader.getPlatformClassLoader());
        loader.loadClass(Unit.class.getName()).getField("held").set(null, held);
        return loader.loadClass(Plugin.class.getName());
    }

    private static byte[] inContextLoader() {
        return new byte[SIZE];
    }

    private static byte[] finalizable() {
        return new byte[SIZE];
    }

    private static void waitForFinalizers() throws Exception {
        new Slow(null);
        while (!Slow.STARTED.await(10, TimeUnit.MILLISECONDS)) {
            System.gc();
        }
        for (int i = 0; i < 3; i++) {
            new Slow(finalizable());
        }
    }

    private static void interned() {
        KEPT.add("x".repeat(SIZE).intern());
    }

    private static byte[] cleaned() {
        return new byte[SIZE];
    }

    private static byte[] locked() {
        return new byte[SIZE];
    }

    /** No walk reports what holds it. */
    private static byte[] inClassValue() {
        return new byte[SIZE];
    }

    private static byte[] inLongChain() {
        return new byte[SIZE];
    }

    private static byte[] inLinkedList() {
        return new byte[SIZE];
    }

    private static void longChains() {
        Node first = new Node(null);
        first.payload = inLongChain();
        for (int i = 0; i < LONG; i++) {
            first = new Node(first);
        }
        longChain = first;
        linked = new LinkedList<>();
        for (int i = 0; i < LONG; i++) {
            linked.add(i == LONG / 2 ? inLinkedList() : "nothing");
        }
    }

    /** The lock is held by what this method runs alone. */
    private static void locks(CountDownLatch ready) {
        synchronized (locked()) {
            ready.countDown();
            sleep();
        }
    }

    /** The thread of a pool: its thread local holds an object whose class's loader holds another class. */
    private static void pooled(CountDownLatch ready) {
        try {
            POOLED.set(load(inLoader()).getDeclaredConstructor().newInstance());
        } catch (Exception e) {
            throw new AssertionError(e);
        }
        ready.countDown();
        sleep();
    }

    private static void context(CountDownLatch ready) {
        Thread.currentThread().setContextClassLoader(new OwnLoader(inContextLoader()));
        ready.countDown();
        sleep();
    }

    private static void sleep() {
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void start(String name, Consumer<CountDownLatch> body) throws Exception {
        CountDownLatch ready = new CountDownLatch(1);
        Thread thread = new Thread(() -> body.accept(ready), name);
        thread.setDaemon(true);
        thread.setContextClassLoader(null);
        thread.start();
        ready.await();
    }

    /** What only a class, a loader, a thread or the VM itself leads to. */
    private static void others() throws Exception {
        KEPT.add(Array.newInstance(load(inArrayLoader()), 0));
        KEPT.add(load(inClassLoader()));
        interned();
        CLEANER.register(KEPT, new Action(cleaned()));
        BY_CLASS.get(Holders.class);
        longChains();
        start("locker", Holders::locks);
        start("pool-thread", Holders::pooled);
        start("context", Holders::context);
        waitForFinalizers();
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
        others();
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
