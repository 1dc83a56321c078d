package io.lucce.programs;

import io.lucce.CallContext;
import java.security.AccessController;
import java.security.PrivilegedAction;
import java.security.PrivilegedActionException;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Timer;
import java.util.TimerTask;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;

/** Callbacks out of the depths of the library, and methods of the VM that look at their caller. */
public final class LibraryCallbacks {
    static volatile Object kept;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Repeats.of(30); i++) {
            services();
            walkers();
            privileged(i);
            futures(i);
            collections(i);
            Check.that(CallContext.current(), new Throwable());
        }
        timer();
        logging();
        Check.done();
    }

    public interface Service {
        String name();
    }

    public static final class First implements Service {
        public First() {
            kept = new byte[250];
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        public String name() {
            Check.that(CallContext.current(), new Throwable());
            return "first";
        }
    }

    public static final class Failing implements Service {
        public Failing() {
            Check.that(CallContext.current(), new Throwable());
            throw new IllegalStateException("provider");
        }

        @Override
        public String name() {
            return "never";
        }
    }

    public static final class Second {
        private Second() {}

        public static Service provider() {
            Check.that(CallContext.current(), new Throwable());
            return new First();
        }
    }

    /** In a class path, provider() methods do not count: the second fails, too. */
    static void services() {
        List<String> names = new ArrayList<>();
        var iterator = ServiceLoader.load(Service.class).iterator();
        int failures = 0;
        while (true) {
            try {
                if (!iterator.hasNext()) {
                    break;
                }
                names.add(iterator.next().name());
                Check.that(CallContext.current(), new Throwable());
            } catch (ServiceConfigurationError e) {
                failures++;
                Check.that(CallContext.current(), new Throwable());
            }
        }
        Check.equal(List.of("first"), names);
        Check.equal(2, failures);
    }

    static void walkers() {
        StackWalker walker = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);
        Check.equal(true, frames(walker, 5) >= 7);
        Check.equal(LibraryCallbacks.class, caller(walker));
        Check.that(CallContext.current(), new Throwable());
        Check.equal("walkers", new Throwable().getStackTrace()[0].getMethodName());
        Check.equal("walkers", StackWalker.getInstance().walk(s -> s.findFirst().get().getMethodName()));
        kept = Thread.currentThread().getStackTrace();
        kept = Thread.getAllStackTraces();
        Check.that(CallContext.current(), new Throwable());
        try {
            walker.walk(s -> {
                Check.that(CallContext.current(), new Throwable());
                throw new IllegalStateException("out of a walk");
            });
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static long frames(StackWalker walker, int depth) {
        if (depth > 0) {
            return frames(walker, depth - 1);
        }
        walker.forEach(frame -> {
            kept = frame;
            Check.that(CallContext.current(), new Throwable());
        });
        return walker.walk(stream -> stream.peek(frame -> Check.that(CallContext.current(), new Throwable())).count());
    }

    static Class<?> caller(StackWalker walker) {
        return new Object() {
            Class<?> get() {
                Check.that(CallContext.current(), new Throwable());
                return walker.getCallerClass();
            }
        }.get();
    }

    @SuppressWarnings({"removal", "deprecation"})
    static void privileged(int n) {
        Check.equal(n, AccessController.doPrivileged((PrivilegedAction<Integer>) () -> {
            kept = new byte[251];
            Check.that(CallContext.current(), new Throwable());
            return n;
        }));
        Check.that(CallContext.current(), new Throwable());
        try {
            AccessController.doPrivileged((PrivilegedExceptionAction<Object>) () -> {
                Check.that(CallContext.current(), new Throwable());
                throw new java.io.IOException("privileged");
            });
            Check.wrong("must throw");
        } catch (PrivilegedActionException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(n, AccessController.doPrivileged((PrivilegedAction<Integer>) () -> n, AccessController.getContext()));
        Check.that(CallContext.current(), new Throwable());
    }

    static void futures(int n) throws Exception {
        CompletableFuture<Integer> future = CompletableFuture.supplyAsync(() -> {
            Check.that(CallContext.current(), new Throwable());
            return n;
        });
        future.join();
        CompletableFuture<Integer> next = future.thenApply(x -> {
            Check.that(CallContext.current(), new Throwable());
            return x + 1;
        }).thenCombine(CompletableFuture.completedFuture(2), (a, b) -> {
            Check.that(CallContext.current(), new Throwable());
            return a * b;
        });
        Check.equal(2 * n + 2, next.get());
        CompletableFuture<Integer> failed = next.thenApply(x -> {
            if (x >= 0) {
                throw new IllegalStateException("in a stage");
            }
            return x;
        });
        Check.equal(-1, failed.exceptionally(e -> {
            Check.that(CallContext.current(), new Throwable());
            return -1;
        }).get());
        try {
            failed.join();
            Check.wrong("must throw");
        } catch (CompletionException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        CompletableFuture<String> later = new CompletableFuture<>();
        CompletableFuture<Void> done = later.thenAccept(x -> Check.that(CallContext.current(), new Throwable()));
        later.complete("now");
        done.get();
        Check.that(CallContext.current(), new Throwable());
    }

    static final class Weighed implements Comparable<Weighed> {
        private final int weight;

        Weighed(int weight) {
            this.weight = weight;
        }

        @Override
        public int compareTo(Weighed other) {
            kept = new byte[252];
            Check.that(CallContext.current(), new Throwable());
            return weight - other.weight;
        }
    }

    static void collections(int n) {
        PriorityQueue<Weighed> queue = new PriorityQueue<>();
        TreeMap<Weighed, Object> map = new TreeMap<>();
        for (int i = 0; i < 10; i++) {
            queue.add(new Weighed((i * 7 + n) % 10));
            map.put(new Weighed((i * 3 + n) % 10), new byte[253]);
        }
        Check.equal(0, queue.poll().weight);
        Check.equal(10, map.size());
        ConcurrentHashMap<Integer, Object> concurrent = new ConcurrentHashMap<>();
        for (int i = 0; i < 10; i++) {
            concurrent.compute(i % 4, (key, old) -> {
                Check.that(CallContext.current(), new Throwable());
                return old == null ? new byte[254] : old;
            });
        }
        Check.equal("a<1>b<22>", Pattern.compile("\\d+").matcher("a1b22").replaceAll(match -> {
            Check.that(CallContext.current(), new Throwable());
            return "<" + match.group() + ">";
        }));
        Check.that(CallContext.current(), new Throwable());
    }

    static void timer() throws Exception {
        Timer timer = new Timer("timer", true);
        CountDownLatch ticks = new CountDownLatch(10);
        timer.schedule(new TimerTask() {
            @Override
            public void run() {
                Check.that(CallContext.current(), new Throwable());
                ticks.countDown();
                if (ticks.getCount() == 0) {
                    cancel();
                }
            }
        }, 0, 2);
        ticks.await();
        timer.cancel();
        Check.that(CallContext.current(), new Throwable());
    }

    /** The logger finds its caller by walking the stack. */
    static void logging() {
        AtomicReference<String> method = new AtomicReference<>();
        java.util.logging.Logger logger = java.util.logging.Logger.getLogger("io.lucce.programs");
        logger.setUseParentHandlers(false);
        logger.addHandler(new java.util.logging.Handler() {
            @Override
            public void publish(java.util.logging.LogRecord record) {
                method.set(record.getSourceMethodName());
                Check.that(CallContext.current(), new Throwable());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        });
        for (int i = 0; i < 10; i++) {
            logger.info("message");
            Check.equal("logging", method.get());
            logger.info(() -> {
                Check.that(CallContext.current(), new Throwable());
                return "supplied";
            });
        }
        Check.that(CallContext.current(), new Throwable());
    }
}
