package io.lucce.programs;

import io.lucce.CallContext;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Ten thousand virtual threads, or as many as the property {@code lucce.threads} says: their stacks leave one carrier and
 * come back on another.
 */
public final class VirtualThreads {
    private static final int ALL = 10_000;
    private static final int THREADS = Integer.getInteger("lucce.threads", Repeats.of(ALL));

    static volatile Object kept;
    static final AtomicInteger ran = new AtomicInteger();

    public static void main(String[] args) throws Exception {
        many(THREADS);
        parking();
        monitors();
        queues();
        deep();
        executors();
        exceptions();
        pinned();
        locals();
        interrupted();
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    private static Thread start(Runnable body) {
        return Thread.ofVirtual().uncaughtExceptionHandler(Check::uncaught).start(body);
    }

    private static void joinAll(List<Thread> threads) throws InterruptedException {
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void sleep(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Check.wrong(e.toString());
        }
    }

    static void work(int n, int depth) {
        kept = new byte[310];
        if (depth > 0) {
            work(n, depth - 1);
            if (depth == 2) {
                Check.that(CallContext.current(), new Throwable());
            }
            return;
        }
        sleep(1 + n % 5);
        Check.that(CallContext.current(), new Throwable());
        Thread.yield();
        kept = new byte[311];
        ran.incrementAndGet();
    }

    static void many(int count) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < count; t++) {
            int n = t;
            threads.add(start(() -> work(n, n % 8)));
        }
        joinAll(threads);
        Check.equal(count, ran.get());
        Check.that(CallContext.current(), new Throwable());
    }

    static void parking() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        AtomicInteger parked = new AtomicInteger();
        for (int t = 0; t < 200; t++) {
            threads.add(start(() -> {
                for (int i = 0; i < 5; i++) {
                    parked.incrementAndGet();
                    LockSupport.parkNanos(Duration.ofMillis(1).toNanos());
                    Check.that(CallContext.current(), new Throwable());
                }
            }));
        }
        for (Thread thread : threads) {
            LockSupport.unpark(thread);
        }
        joinAll(threads);
        Check.equal(1000, parked.get());
        ReentrantLock lock = new ReentrantLock();
        threads.clear();
        for (int t = 0; t < 200; t++) {
            threads.add(start(() -> {
                lock.lock();
                try {
                    Check.that(CallContext.current(), new Throwable());
                    Thread.yield();
                    kept = new byte[312];
                } finally {
                    lock.unlock();
                }
                Check.that(CallContext.current(), new Throwable());
            }));
        }
        joinAll(threads);
    }

    private static int shared;

    private static synchronized void increment(int depth) {
        if (depth > 0) {
            increment(depth - 1);
            return;
        }
        shared++;
        Thread.yield();
        kept = new byte[313];
        Check.that(CallContext.current(), new Throwable());
    }

    /** Blocking on a monitor pins the carrier before 24, and unmounts since. */
    static void monitors() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        Object monitor = new Object();
        for (int t = 0; t < 200; t++) {
            int n = t;
            threads.add(start(() -> {
                increment(n % 4);
                synchronized (monitor) {
                    sleep(n % 20 == 0 ? 1 : 0);
                    Check.that(CallContext.current(), new Throwable());
                }
                synchronized (monitor) {
                    try {
                        monitor.wait(1);
                    } catch (InterruptedException e) {
                        Check.wrong(e.toString());
                    }
                    Check.that(CallContext.current(), new Throwable());
                }
            }));
        }
        joinAll(threads);
        Check.equal(200, shared);
    }

    static void queues() throws InterruptedException {
        BlockingQueue<Object> queue = new LinkedBlockingQueue<>(3);
        SynchronousQueue<Object> hand = new SynchronousQueue<>();
        Thread consumer = start(() -> {
            try {
                for (int i = 0; i < 500; i++) {
                    Object taken = queue.take();
                    Check.that(CallContext.current(), new Throwable());
                    hand.put(taken);
                }
            } catch (InterruptedException e) {
                Check.wrong(e.toString());
            }
        });
        Thread producer = start(() -> {
            try {
                for (int i = 0; i < 500; i++) {
                    queue.put(new byte[314]);
                    Check.that(CallContext.current(), new Throwable());
                }
            } catch (InterruptedException e) {
                Check.wrong(e.toString());
            }
        });
        for (int i = 0; i < 500; i++) {
            kept = hand.take();
            Check.that(CallContext.current(), new Throwable());
        }
        consumer.join();
        producer.join();
    }

    static int down(int depth) {
        kept = new byte[315];
        if (depth == 0) {
            for (int i = 0; i < 3; i++) {
                sleep(1);
                Check.that(CallContext.current(), new Throwable());
            }
            return 0;
        }
        int below = down(depth - 1) + 1;
        if (depth % 100 == 0) {
            sleep(1);
            Check.that(CallContext.current(), new Throwable());
        }
        return below;
    }

    static void deep() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        // A deep stack takes as long to compare as a thousand threads.
        int step = THREADS < ALL ? 5 : 1;
        for (int t = 0; t < 20; t += step) {
            int depth = 50 * (t + 1) % 900;
            threads.add(start(() -> Check.equal(depth, down(depth))));
        }
        joinAll(threads);
    }

    static void executors() throws Exception {
        try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Callable<Integer>> tasks = new ArrayList<>();
            for (int t = 0; t < 500; t++) {
                int n = t;
                tasks.add(() -> {
                    work(n, 3);
                    if (n % 10 == 0) {
                        throw new IllegalStateException("task");
                    }
                    return n;
                });
            }
            int failed = 0;
            for (Future<Integer> future : executor.invokeAll(tasks)) {
                try {
                    future.get();
                } catch (ExecutionException e) {
                    failed++;
                    Check.that(CallContext.current(), new Throwable());
                }
            }
            Check.equal(50, failed);
            Future<Integer> nested = executor.submit(() -> executor.submit(() -> {
                Check.that(CallContext.current(), new Throwable());
                return 7;
            }).get());
            Check.equal(7, nested.get());
            Check.that(CallContext.current(), new Throwable());
        }
        ThreadFactory factory = Thread.ofVirtual().name("named-", 0).factory();
        Thread thread = factory.newThread(() -> Check.that(CallContext.current(), new Throwable()));
        thread.start();
        thread.join();
    }

    static void fail(int depth) {
        if (depth == 0) {
            sleep(1);
            Check.that(CallContext.current(), new Throwable());
            throw new IllegalStateException("on a virtual thread");
        }
        fail(depth - 1);
    }

    static void exceptions() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        AtomicInteger handled = new AtomicInteger();
        for (int t = 0; t < 200; t++) {
            int n = t;
            threads.add(Thread.ofVirtual().uncaughtExceptionHandler((thread, e) -> {
                handled.incrementAndGet();
                Check.that(CallContext.current(), new Throwable());
            }).start(() -> {
                try {
                    fail(n % 9);
                } catch (IllegalStateException e) {
                    sleep(1);
                    Check.that(CallContext.current(), new Throwable());
                }
                if (n % 2 == 0) {
                    fail(2);
                }
            }));
        }
        joinAll(threads);
        Check.equal(100, handled.get());
    }

    /** Frames that cannot leave their carrier: a class initialiser, a native on the stack. */
    @SuppressWarnings("removal")
    static void pinned() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 20; t++) {
            threads.add(start(() -> {
                kept = Slow.value;
                Check.that(CallContext.current(), new Throwable());
                Object result = java.security.AccessController.doPrivileged((java.security.PrivilegedAction<Object>) () -> {
                    sleep(1);
                    Check.that(CallContext.current(), new Throwable());
                    return new byte[316];
                });
                kept = result;
                try {
                    VirtualThreads.class.getDeclaredMethod("reflected").invoke(null);
                } catch (ReflectiveOperationException e) {
                    Check.wrong(e.toString());
                }
                Check.that(CallContext.current(), new Throwable());
            }));
        }
        joinAll(threads);
    }

    static void reflected() {
        sleep(1);
        Check.that(CallContext.current(), new Throwable());
    }

    static final class Slow {
        static Object value = new byte[317];

        static {
            sleep(5);
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void locals() throws InterruptedException {
        ThreadLocal<Object> local = ThreadLocal.withInitial(() -> {
            Check.that(CallContext.current(), new Throwable());
            return new byte[318];
        });
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 50; t++) {
            threads.add(start(() -> {
                Object mine = local.get();
                sleep(1);
                Check.equal(true, mine == local.get());
                Check.that(CallContext.current(), new Throwable());
            }));
        }
        joinAll(threads);
    }

    static void interrupted() throws InterruptedException {
        CountDownLatch started = new CountDownLatch(50);
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 50; t++) {
            threads.add(start(() -> {
                started.countDown();
                try {
                    Thread.sleep(60_000);
                    Check.wrong("must be interrupted");
                } catch (InterruptedException e) {
                    kept = new byte[319];
                    Check.that(CallContext.current(), new Throwable());
                }
            }));
        }
        started.await();
        for (Thread thread : threads) {
            thread.interrupt();
        }
        joinAll(threads);
    }
}
