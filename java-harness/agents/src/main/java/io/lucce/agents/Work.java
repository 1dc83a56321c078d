package io.lucce.agents;

import java.io.InputStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.logging.Level;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.Inflater;

/**
 * Classes by each way into the VM, reflection, exceptions, threads: twice, with the Java agents that the arguments name
 * attached in between.
 */
public final class Work {
    static volatile Object sink;

    private Work() {}

    /** Has a proxy. */
    public interface Service {
        Object serve(int n);
    }

    /** Is defined by a lookup from its own bytes, in another loader's class. */
    public static final class Defined implements Runnable {
        @Override
        public void run() {
            keep(new int[5]);
            makes();
        }

        private static void makes() {
            keep(new Object[3]);
        }
    }

    public static void main(String[] agents) throws Exception {
        Early.programBegins();
        Runnable defined = defined();
        Service proxy = (Service) Proxy.newProxyInstance(
                Work.class.getClassLoader(), new Class<?>[] {Service.class}, (self, method, arguments) -> {
                    sink = arguments.clone();
                    return makes((Integer) arguments[0]);
                });
        work(defined, proxy);
        for (String agent : agents) {
            Attaching.attach(agent);
        }
        work(defined, proxy);
        clean();
        System.out.println("OK " + sink.getClass().getSimpleName());
    }

    /** Called from another package, as another loader's classes are. */
    public static void keep(Object object) {
        sink = object;
    }

    private static void work(Runnable defined, Service proxy) throws Exception {
        for (int i = 0; i < 3; i++) {
            defined.run();
            sink = proxy.serve(i);
        }
        reflect();
        handles();
        initialize();
        tasks();
        files();
        ArrayDeque<Object> queue = new ArrayDeque<>(1);
        for (int i = 0; i < 40; i++) {
            queue.addLast(List.of(i));
        }
        sink = queue;
    }

    /** The JDK's cleaner, a thread that is older than hooks, links a native method in the middle of its first work. */
    private static void clean() throws Exception {
        sink = new Inflater().getRemaining();
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(10);
        }
    }

    /** Often enough for the JDK to make classes for it. */
    private static void reflect() throws Exception {
        Method method = Work.class.getMethod("makes", int.class);
        for (int i = 0; i < 400; i++) {
            sink = method.invoke(null, 3);
        }
    }

    /** Of a type that the JDK has no code for; often enough for the JDK to make more of it. */
    static void handles() throws Exception {
        MethodType type = MethodType.methodType(Object.class, double.class, int.class, long.class, float.class);
        MethodHandle handle = MethodHandles.lookup().findStatic(Work.class, "handled", type);
        try {
            for (int i = 0; i < 300; i++) {
                sink = (Object) handle.invokeExact(1.5, i % 5, 7L, 2.5f);
            }
        } catch (Throwable thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    /** JDK 25 has the VM load classes in the middle of code of its own that has no hooks. */
    static void initialize() throws Exception {
        sink = Level.SEVERE.getLocalizedName();
        if (Runtime.version().feature() > 11) {
            MethodHandles.lookup().ensureInitialized(Class.forName("java.util.Currency", false, null));
        }
    }

    static Object handled(double a, int n, long b, float c) {
        return makes(n);
    }

    public static Object makes(int n) {
        return new int[n];
    }

    private static void tasks() throws Exception {
        ExecutorService executor = Executors.newFixedThreadPool(2);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            int size = i;
            all.add(executor.submit(() -> task(size)));
        }
        for (Future<?> one : all) {
            one.get();
        }
        executor.shutdown();
    }

    private static void files() throws Exception {
        Path file = Files.createTempFile("work", null);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(new byte[9]));
            sink = channel.size();
        }
        Files.delete(file);
    }

    private static void task(int size) {
        for (int depth = 0; depth < 8; depth++) {
            sink = deep(depth);
            sink = IntStream.range(0, size).mapToObj(n -> "s" + n).collect(Collectors.toList());
            sink = sorted(Arrays.asList(3, size, depth), Comparator.reverseOrder());
            try {
                sink = refuse(depth);
            } catch (IllegalStateException expected) {
                sink = expected;
            }
        }
    }

    private static Object deep(int n) {
        return n == 0 ? new Object() : deep(n - 1);
    }

    private static <T> List<T> sorted(List<T> list, Comparator<T> order) {
        List<T> copy = new ArrayList<>(list);
        copy.sort(order);
        return copy;
    }

    private static Object refuse(int n) {
        if (n % 3 == 0) {
            throw new IllegalStateException("refused " + n);
        }
        return n;
    }

    private static Runnable defined() throws Exception {
        String file = Defined.class.getName().replace('.', '/') + ".class";
        try (InputStream stream = Work.class.getClassLoader().getResourceAsStream(file)) {
            byte[] bytes = stream.readAllBytes();
            Elsewhere loader = new Elsewhere(Work.class.getClassLoader());
            Class<?> there = loader.define(Host.class);
            MethodHandles.Lookup lookup = (MethodHandles.Lookup) there.getMethod("lookup").invoke(null);
            return (Runnable) lookup.defineClass(bytes).getConstructor().newInstance();
        }
    }

    /** Gives a lookup into its own loader. */
    public static final class Host {
        private Host() {}

        public static MethodHandles.Lookup lookup() {
            return MethodHandles.lookup();
        }
    }

    private static final class Elsewhere extends ClassLoader {
        Elsewhere(ClassLoader parent) {
            super(parent);
        }

        Class<?> define(Class<?> like) throws Exception {
            String file = like.getName().replace('.', '/') + ".class";
            try (InputStream stream = getResourceAsStream(file)) {
                byte[] bytes = stream.readAllBytes();
                return defineClass(like.getName(), bytes, 0, bytes.length);
            }
        }
    }
}
