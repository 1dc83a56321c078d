package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Library code that calls the program, again and again, and keeps what it throws to itself: with
 * {@code instrument=app}, or with classes excluded, such code has no hooks.
 */
public final class OutOfScope {
    private static final int ROUNDS = Repeats.of(40);

    private OutOfScope() {}

    public static void main(String[] args) throws Exception {
        ExecutorService one = Executors.newSingleThreadExecutor();
        for (int i = 0; i < ROUNDS; i++) {
            tasks(one);
            futures();
            streams();
            comparators(i);
            handles();
            reflection();
            passedOn();
            iterated();
            loaders(i);
        }
        overflown();
        waiting();
        one.shutdown();
        Check.done();
    }

    /** A worker runs one task after the other, and all that fails stays in its future. */
    private static void tasks(ExecutorService worker) throws InterruptedException {
        List<Future<?>> all = new ArrayList<>();
        for (int depth = 0; depth < 4; depth++) {
            int fails = depth;
            all.add(worker.submit(() -> fail(fails)));
            all.add(worker.submit(OutOfScope::look));
        }
        for (Future<?> future : all) {
            try {
                future.get();
            } catch (ExecutionException e) {
                look();
            }
        }
    }

    private static void fail(int depth) {
        if (depth == 0) {
            look();
            throw new IllegalStateException();
        }
        fail(depth - 1);
        look();
    }

    private static void look() {
        Check.that(CallContext.current(), new Throwable());
    }

    /** Constructors that fail below their call of another constructor, which no handler can be around. */
    static class Base {
        Base(int depth) {
            fail(depth);
        }
    }

    static final class Derived extends Base {
        Derived() {
            super(2);
            look();
        }

        Derived(int depth) {
            this(new Object[depth], depth);
        }

        private Derived(Object[] ignored, int depth) {
            super(argument(depth));
        }

        private static int argument(int depth) {
            if (depth > 2) {
                throw new IllegalArgumentException();
            }
            look();
            return depth;
        }
    }

    private static void futures() {
        for (Supplier<Object> supplier : List.<Supplier<Object>>of(
                Derived::new, () -> new Derived(1), () -> new Derived(3), OutOfScope::made)) {
            CompletableFuture<Object> future = CompletableFuture.supplyAsync(supplier, Runnable::run);
            try {
                future.handle(OutOfScope::handled)
                        .thenApply(OutOfScope::identity)
                        .thenCombine(future.exceptionally(OutOfScope::instead), OutOfScope::both)
                        .join();
            } catch (CompletionException e) {
                Check.wrong("the failure was handled: " + e);
            }
            look();
        }
    }

    private static Object made() {
        look();
        return new Object();
    }

    private static Object handled(Object value, Throwable thrown) {
        look();
        return value;
    }

    private static Object identity(Object value) {
        look();
        return value;
    }

    private static Object instead(Throwable thrown) {
        look();
        return thrown;
    }

    private static Object both(Object a, Object b) {
        look();
        return b;
    }

    private static void streams() {
        List<Integer> sorted = IntStream.range(0, 8)
                .mapToObj(OutOfScope::boxed)
                .filter(n -> deep(n, 3))
                .sorted((a, b) -> ordered(b, a))
                .map(n -> n + (deep(n, 1) ? 0 : 1))
                .collect(Collectors.toList());
        Check.equal(8, sorted.size());
        Stream<Integer> broken = Stream.of(1, 2, 3).map(n -> {
            fail(n);
            return n;
        });
        try {
            broken.forEach(n -> look());
        } catch (IllegalStateException e) {
            look();
        }
    }

    private static Integer boxed(int n) {
        look();
        return n;
    }

    private static boolean deep(int n, int depth) {
        look();
        return depth == 0 || deep(n, depth - 1);
    }

    private static int ordered(int a, int b) {
        look();
        return Integer.compare(a, b);
    }

    /** A key that is called by maps, and that sometimes throws in the middle of them. */
    private static final class Key implements Comparable<Key> {
        private final int value;

        private Key(int value) {
            this.value = value;
            look();
        }

        @Override
        public int compareTo(Key other) {
            look();
            if (value == 13 && other.value == 13) {
                fail(1);
            }
            return ordered(value, other.value);
        }
    }

    private static void comparators(int round) {
        TreeMap<Key, Object> map = new TreeMap<>();
        for (int i = 0; i < 5; i++) {
            map.computeIfAbsent(new Key((round * 7 + i) % 13), key -> made());
        }
        try {
            map.put(new Key(13), made());
            map.put(new Key(13), made());
            Check.wrong("the key threw");
        } catch (IllegalStateException e) {
            look();
        }
        map.replaceAll((key, value) -> identity(value));
        map.forEach((key, value) -> look());
    }

    /** Handles that call one method after the other, with and without catching. */
    private static void handles() {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        try {
            MethodHandle identity = lookup.findStatic(
                    OutOfScope.class, "identity", MethodType.methodType(Object.class, Object.class));
            MethodHandle both = lookup.findStatic(
                    OutOfScope.class, "both", MethodType.methodType(Object.class, Object.class, Object.class));
            MethodHandle filtered = MethodHandles.filterArguments(both, 0, identity, identity);
            Object ignored = (Object) filtered.invokeExact((Object) "a", (Object) "b");
            MethodHandle create = lookup.findConstructor(Derived.class, MethodType.methodType(void.class, int.class))
                    .asType(MethodType.methodType(Object.class, int.class));
            MethodHandle instead = MethodHandles.dropArguments(
                    lookup.findStatic(OutOfScope.class, "instead", MethodType.methodType(Object.class, Throwable.class)),
                    1, int.class);
            MethodHandle caught = MethodHandles.catchException(create, Throwable.class, instead);
            ignored = (Object) MethodHandles.filterReturnValue(caught, identity).invokeExact(1);
            ignored = (Object) MethodHandles.filterReturnValue(caught, identity).invokeExact(3);
        } catch (Throwable e) {
            Check.wrong("handles: " + e);
        }
        look();
    }

    private static void reflection() throws Exception {
        for (int depth : new int[] {1, 3}) {
            List<Object> made = Stream.of(Derived.class.getDeclaredConstructors())
                    .map(constructor -> attempt(() -> constructor.newInstance(
                            constructor.getParameterCount() == 0 ? new Object[0]
                                    : constructor.getParameterCount() == 1 ? new Object[] {depth}
                                    : new Object[] {new Object[0], depth})))
                    .map(OutOfScope::identity)
                    .collect(Collectors.toList());
            Check.equal(3, made.size());
        }
        OutOfScope.class.getDeclaredMethod("identity", Object.class).invoke(null, "a");
        look();
    }

    private interface Action {
        Object run() throws Exception;
    }

    private static Object attempt(Action action) {
        try {
            return action.run();
        } catch (Exception e) {
            look();
            return e;
        }
    }

    /** Classes of the program that another one calls: they may be the ones without hooks. */
    static final class Middle {
        private Middle() {}

        static Object swallow(Supplier<Object> first, Function<Object, Object> then) {
            Object value;
            try {
                value = first.get();
            } catch (RuntimeException e) {
                value = then.apply(e);
            }
            return then.apply(value);
        }

        /** Creates here, and fails here. */
        static Object create(int depth, Function<Object, Object> then) {
            Object value;
            try {
                value = new Derived(depth);
            } catch (RuntimeException e) {
                value = e;
            }
            return then.apply(value);
        }

        static Object createBelow(int depth, Function<Object, Object> then) {
            try {
                return createDeeply(depth);
            } catch (RuntimeException e) {
                return then.apply(e);
            } finally {
                then.apply(depth);
            }
        }

        private static Object createDeeply(int depth) {
            return depth > 10 ? createDeeply(depth - 10) : new Derived(depth);
        }
    }

    private static void passedOn() {
        for (int depth = 0; depth < 4; depth++) {
            int below = depth;
            Middle.swallow(() -> new Derived(below), OutOfScope::identity);
            Middle.create(depth, OutOfScope::identity);
            Middle.createBelow(depth + 30, OutOfScope::identity);
            look();
        }
    }

    /** Called twice for each element, by code that does not know it. */
    private static void iterated() {
        Iterable<Object> three = () -> new Iterator<>() {
            private int left = 3;

            @Override
            public boolean hasNext() {
                return deep(left, 2) && left > 0;
            }

            @Override
            public Object next() {
                left--;
                return made();
            }
        };
        three.forEach(OutOfScope::identity);
        Check.equal("a, b", String.join(", ", () -> Stream.<CharSequence>of(new Text("a"), new Text("b")).iterator()));
        look();
    }

    /**
     * {@code loadClass} can be a VM entry. Without hooks, nobody needs its context until the program's own method, far above,
     * has an event.
     */
    private static final class Finding extends ClassLoader {
        private final Function<Finding, Object> body;
        private final int left;

        Finding(int left, Function<Finding, Object> body) {
            super(null);
            this.left = left;
            this.body = body;
        }

        /** Here it is without hooks if nested classes are. */
        @Override
        public Class<?> loadClass(String name) throws ClassNotFoundException {
            if (name.isEmpty()) {
                body.apply(this);
                body.apply(this);
            }
            return super.loadClass(name);
        }

        /** Called by the JDK. */
        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            return (Class<?>) body.apply(this);
        }
    }

    /** Initialized while a class is looked for. */
    private static final class First {
        static final Object MADE = made();
        static final Supplier<Object> LATER = () -> new Object[] {made()};
    }

    private static Object find(int left, String name, Function<Finding, Object> body) {
        try {
            return new Finding(left, body).loadClass(name);
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Object quiet(Finding loader) {
        return null;
    }

    private static Object found(Finding loader) {
        deep(0, 20);
        identity(First.LATER.get());
        look();
        return null;
    }

    private static Object foundLater(Finding loader) {
        return loader.left == 0 ? found(loader) : find(loader.left - 1, "none", OutOfScope::foundLater);
    }

    private static Object foundFirst(Finding loader) {
        look();
        Object all = loader.left == 0 ? null : find(loader.left - 1, "none", OutOfScope::foundFirst);
        look();
        return all;
    }

    private static Object foundBroken(Finding loader) {
        if (loader.left > 0) {
            return find(loader.left - 1, "none", OutOfScope::foundBroken);
        }
        return new Derived(3);
    }

    private static Object foundInLoop(Finding loader) {
        List.of(1, 2).forEach(n -> identity(boxed(n)));
        return null;
    }

    private static void loaders(int round) {
        List<Function<Finding, Object>> bodies = List.of(
                OutOfScope::quiet, OutOfScope::found, OutOfScope::foundLater, OutOfScope::foundFirst, OutOfScope::foundInLoop);
        for (Function<Finding, Object> body : bodies) {
            find(round % 4, "none", body);
            look();
        }
        try {
            find(2, "none", OutOfScope::foundBroken);
            Check.wrong("it is broken");
        } catch (IllegalArgumentException e) {
            look();
        }
        try {
            find(1, "", OutOfScope::foundFirst);
        } catch (NullPointerException e) {
            look();
        }
        look();
    }

    private static Object foundForever(Finding loader) {
        return find(0, "none", OutOfScope::foundForever);
    }

    /** No handler is sure to run. */
    private static void overflown() {
        for (int i = 0; i < 3; i++) {
            try {
                foundForever(null);
                Check.wrong("the stack has an end");
            } catch (StackOverflowError e) {
                look();
            }
            find(2, "none", OutOfScope::foundLater);
            look();
        }
    }

    private static Object foundSlowly(Finding loader) {
        LockSupport.parkNanos(100_000);
        look();
        return null;
    }

    /** A virtual thread waits below a loader; JDKs before 21 have none. */
    private static void waiting() throws Exception {
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            return;
        }
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            String name = i % 2 == 0 ? "" : "none";
            threads.add((Thread) start.invoke(null, (Runnable) () -> find(0, name, OutOfScope::foundSlowly)));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        look();
    }

    private static final class Text implements CharSequence {
        private final String text;

        Text(String text) {
            this.text = text;
        }

        @Override
        public int length() {
            look();
            return text.length();
        }

        @Override
        public char charAt(int index) {
            look();
            return text.charAt(index);
        }

        @Override
        public CharSequence subSequence(int start, int end) {
            return text.substring(start, end);
        }

        @Override
        public String toString() {
            deep(0, 2);
            return text;
        }
    }
}
