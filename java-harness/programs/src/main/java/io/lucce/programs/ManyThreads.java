package io.lucce.programs;

import io.lucce.CallContext;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.RecursiveTask;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Five hundred threads, short-lived ones, pools, thread locals, fork and join. */
public final class ManyThreads {
    private static final int THREADS = Repeats.of(500);
    private static final int TASKS = Repeats.of(200);
    static volatile Object kept;
    static final AtomicInteger ran = new AtomicInteger();

    public static void main(String[] args) throws Exception {
        atOnce();
        oneAfterAnother();
        pools();
        forkJoin();
        locals();
        dying();
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    static void work(int depth) {
        kept = new byte[170];
        Check.that(CallContext.current(), new Throwable());
        if (depth > 0) {
            if (depth % 2 == 0) {
                work(depth - 1);
            } else {
                work(depth - 1);
            }
            return;
        }
        ran.incrementAndGet();
    }

    static void atOnce() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < THREADS; t++) {
            int depth = t % 11;
            Thread thread = new Thread(null, () -> work(depth), "worker-" + t, 128 * 1024);
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Check.equal(THREADS, ran.get());
        Check.that(CallContext.current(), new Throwable());
    }

    static final class Worker extends Thread {
        @Override
        public void run() {
            work(2);
        }
    }

    static void oneAfterAnother() throws InterruptedException {
        for (int t = 0; t < THREADS; t++) {
            Thread thread = new Worker();
            thread.start();
            thread.join();
        }
        Check.equal(2 * THREADS, ran.get());
        Thread direct = new Worker();
        direct.run();
        new Thread(() -> work(1)).run();
        Check.equal(2 * THREADS + 2, ran.get());
        Check.that(CallContext.current(), new Throwable());
    }

    static void pools() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(16);
        List<Callable<Integer>> tasks = new ArrayList<>();
        for (int t = 0; t < TASKS; t++) {
            int n = t;
            tasks.add(() -> {
                work(n % 4);
                if (n % 10 == 0) {
                    throw new IllegalStateException("task");
                }
                return n;
            });
        }
        int failed = 0;
        for (Future<Integer> future : pool.invokeAll(tasks)) {
            try {
                future.get();
                Check.that(CallContext.current(), new Throwable());
            } catch (ExecutionException e) {
                failed++;
                Check.that(CallContext.current(), new Throwable());
            }
        }
        Check.equal((TASKS + 9) / 10, failed);
        pool.shutdown();
        Check.equal(true, pool.awaitTermination(30, TimeUnit.SECONDS));
        ScheduledExecutorService scheduled = Executors.newScheduledThreadPool(2);
        AtomicInteger ticks = new AtomicInteger();
        Future<?> repeated = scheduled.scheduleAtFixedRate(() -> {
            Check.that(CallContext.current(), new Throwable());
            if (ticks.incrementAndGet() == 20) {
                throw new IllegalStateException("ends the repetition");
            }
        }, 0, 1, TimeUnit.MILLISECONDS);
        try {
            repeated.get();
            Check.wrong("must throw");
        } catch (ExecutionException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(20, ticks.get());
        scheduled.shutdownNow();
    }

    static final class Sum extends RecursiveTask<Integer> {
        private static final long serialVersionUID = 1;
        private final int from;
        private final int to;

        Sum(int from, int to) {
            this.from = from;
            this.to = to;
        }

        @Override
        protected Integer compute() {
            kept = new byte[171];
            Check.that(CallContext.current(), new Throwable());
            if (to - from < 10) {
                int sum = 0;
                for (int i = from; i < to; i++) {
                    sum += i;
                }
                return sum;
            }
            int middle = (from + to) >>> 1;
            Sum left = new Sum(from, middle);
            Sum right = new Sum(middle, to);
            left.fork();
            int sum = right.compute() + left.join();
            Check.that(CallContext.current(), new Throwable());
            return sum;
        }
    }

    static void forkJoin() {
        ForkJoinPool pool = new ForkJoinPool(8);
        for (int i = 0; i < 10; i++) {
            Check.equal(499_500, pool.invoke(new Sum(0, 1000)));
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(499_500, new Sum(0, 1000).invoke());
        Check.equal(499_500, ForkJoinPool.commonPool().invoke(new Sum(0, 1000)));
        pool.shutdown();
    }

    static void locals() throws InterruptedException {
        ThreadLocal<Object> local = ThreadLocal.withInitial(() -> {
            Check.that(CallContext.current(), new Throwable());
            return new byte[172];
        });
        InheritableThreadLocal<Object> inherited = new InheritableThreadLocal<>() {
            @Override
            protected Object childValue(Object parent) {
                Check.that(CallContext.current(), new Throwable());
                return new Object[] {parent};
            }
        };
        inherited.set("parent");
        for (int t = 0; t < 50; t++) {
            Thread thread = new Thread(() -> {
                kept = local.get();
                kept = inherited.get();
                Check.that(CallContext.current(), new Throwable());
            });
            thread.start();
            thread.join();
            kept = local.get();
            local.remove();
        }
    }

    static void dying() throws InterruptedException {
        AtomicInteger handled = new AtomicInteger();
        Thread.UncaughtExceptionHandler handler = (thread, e) -> {
            handled.incrementAndGet();
            Check.that(CallContext.current(), new Throwable());
            if (handled.get() % 5 == 0) {
                throw new IllegalStateException("ignored by the VM");
            }
        };
        for (int t = 0; t < 50; t++) {
            int depth = t % 7;
            Thread thread = new Thread(() -> die(depth));
            thread.setUncaughtExceptionHandler(handler);
            thread.start();
            thread.join();
        }
        Check.equal(50, handled.get());
        ThreadGroup group = new ThreadGroup("group") {
            @Override
            public void uncaughtException(Thread thread, Throwable e) {
                handled.incrementAndGet();
                Check.that(CallContext.current(), new Throwable());
            }
        };
        Thread inGroup = new Thread(group, () -> die(3));
        inGroup.start();
        inGroup.join();
        Check.equal(51, handled.get());
        Thread sleeper = new Thread(() -> {
            try {
                Thread.sleep(60_000);
                Check.wrong("must be interrupted");
            } catch (InterruptedException e) {
                Check.that(CallContext.current(), new Throwable());
            }
        });
        sleeper.start();
        sleeper.interrupt();
        sleeper.join();
    }

    static void die(int depth) {
        if (depth == 0) {
            Check.that(CallContext.current(), new Throwable());
            throw new IllegalStateException("uncaught");
        }
        kept = new byte[depth];
        die(depth - 1);
    }
}
