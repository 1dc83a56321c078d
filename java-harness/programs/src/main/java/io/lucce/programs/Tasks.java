package io.lucce.programs;

import io.lucce.CallContext;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RecursiveAction;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/**
 * Tasks of the JDK's executors: in each one the program takes a number, the stack that it sees, and the
 * stack that it saw on the line that submitted the task. It prints the three for the test that decodes the
 * number across threads, one task a line:
 *
 * <pre>{@code kind|number|frame;frame;…|frame;frame;…}</pre>
 *
 * <p>Of what a number goes on in, {@code kind} says what must be there: {@code first}: the submitting stack comes
 * first; {@code last}: it comes last; {@code none}: it is not there, as the code is no task's; {@code unknown}: the task was
 * submitted from several places, or not by way of the executor, so its submitter is not known.
 */
public final class Tasks {
    /** Taken in a task. */
    private static final class Taken {
        final String kind;
        final long id;
        final StackTraceElement[] here;
        final List<StackTraceElement[]> origins;

        Taken(String kind, long id, StackTraceElement[] here, List<StackTraceElement[]> origins) {
            this.kind = kind;
            this.id = id;
            this.here = here;
            this.origins = origins;
        }
    }

    private static final ConcurrentLinkedQueue<Taken> ALL = new ConcurrentLinkedQueue<>();

    private Tasks() {}

    private static void take(String kind, StackTraceElement[]... origins) {
        ALL.add(new Taken(kind, CallContext.current(), new Throwable().getStackTrace(), List.of(origins)));
    }

    private static Runnable task(Throwable origin) {
        StackTraceElement[] frames = origin.getStackTrace();
        return () -> take("first", frames);
    }

    private static Callable<Integer> callable(Throwable origin) {
        StackTraceElement[] frames = origin.getStackTrace();
        return () -> {
            take("first", frames);
            return 1;
        };
    }

    private static void pool(ExecutorService pool, int deeper) throws Exception {
        if (deeper > 0) {
            pool(pool, deeper - 1);
            return;
        }
        CountDownLatch done = new CountDownLatch(1);
        pool.execute(task(new Throwable()));
        pool.submit(task(new Throwable())).get();
        pool.submit(callable(new Throwable())).get();
        pool.submit(task(new Throwable()), 1).get();
        pool.invokeAll(Arrays.asList(callable(new Throwable()), callable(new Throwable())));
        CompletableFuture.runAsync(task(new Throwable()), pool).get();
        pool.execute(done::countDown);
        done.await();
    }

    private static void common() throws Exception {
        CompletableFuture.runAsync(task(new Throwable())).get();
        CompletableFuture<Void> first = new CompletableFuture<>();
        CompletableFuture<Void> second = first.thenRunAsync(() -> { });
        first.complete(null);
        second.get();
        ForkJoinPool.commonPool().submit(task(new Throwable())).get();
        IntStream.range(0, 64).parallel().forEach(parallel(new Throwable()));
    }

    private static java.util.function.IntConsumer parallel(Throwable origin) {
        StackTraceElement[] frames = origin.getStackTrace();
        return number -> take("last", frames);
    }

    /** Each half is forked or computed here. */
    private static final class Halves extends RecursiveAction {
        private final int size;
        private final transient StackTraceElement[] forked;

        Halves(int size, Throwable forked) {
            this.size = size;
            this.forked = forked == null ? null : forked.getStackTrace();
        }

        @Override
        protected void compute() {
            if (forked != null) take("first", forked);
            if (size == 1) return;
            Halves left = new Halves(size / 2, new Throwable()); left.fork();
            new Halves(size - size / 2, null).compute();
            left.join();
        }
    }

    private static void scheduled() throws Exception {
        ScheduledExecutorService pool = Executors.newScheduledThreadPool(2);
        pool.schedule(task(new Throwable()), 1, TimeUnit.MILLISECONDS).get();
        pool.schedule(callable(new Throwable()), 0, TimeUnit.MILLISECONDS).get();
        pool.execute(task(new Throwable()));
        CountDownLatch runs = new CountDownLatch(5);
        StackTraceElement[][] origin = new StackTraceElement[1][];
        Runnable again = () -> {
            take("first", origin[0]);
            runs.countDown();
        };
        origin[0] = new Throwable().getStackTrace(); ScheduledFuture<?> rate = pool.scheduleAtFixedRate(again, 0, 1, TimeUnit.MILLISECONDS);
        runs.await();
        rate.cancel(false);
        end(pool);
    }

    /** A task submits a task, and one submits itself. */
    private static void chains() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2);
        CountDownLatch done = new CountDownLatch(2);
        pool.execute(() -> {
            pool.execute(task(new Throwable()));
            done.countDown();
        });
        pool.execute(new Runnable() {
            private StackTraceElement[] origin;
            private int runs;

            @Override
            public void run() {
                if (origin != null) take("first", origin);
                if (++runs > 40) {
                    done.countDown();
                    return;
                }
                origin = new Throwable().getStackTrace(); pool.execute(this);
            }
        });
        done.await();
        end(pool);
    }

    /** The same object from two lines before it runs; and again from one line. */
    private static void severalTimes() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(1);
        CountDownLatch begin = new CountDownLatch(1);
        pool.execute(() -> await(begin));
        StackTraceElement[][] origins = new StackTraceElement[2][];
        Runnable task = () -> take("unknown", origins);
        origins[0] = new Throwable().getStackTrace(); pool.execute(task);
        origins[1] = new Throwable().getStackTrace(); pool.execute(task);
        begin.countDown();
        pool.submit(() -> { }).get();
        StackTraceElement[][] now = new StackTraceElement[1][];
        Runnable known = () -> take("first", now);
        for (int i = 0; i < 3; i++) {
            now[0] = new Throwable().getStackTrace(); pool.execute(known);
            pool.submit(() -> { }).get();
        }
        end(pool);
    }

    /** What a pool does around a task is not the task's. */
    private static void around() throws Exception {
        StackTraceElement[][] origin = new StackTraceElement[1][];
        LinkedBlockingQueue<Runnable> queue = new LinkedBlockingQueue<>();
        ThreadPoolExecutor pool = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, queue) {
            @Override
            protected void beforeExecute(Thread thread, Runnable task) {
                take("none", origin);
            }

            @Override
            protected void afterExecute(Runnable task, Throwable thrown) {
                take("none", origin);
            }
        };
        pool.prestartCoreThread();
        for (int i = 0; i < 3; i++) {
            origin[0] = new Throwable().getStackTrace(); pool.execute(() -> take("first", origin));
            pool.submit(() -> { }).get();
        }
        // Not by way of the pool.
        queue.add(() -> take("unknown", origin));
        pool.submit(() -> { }).get();
        end(pool);
    }

    /** A full pool rejects tasks, which are then put into its queue past the pool; one is submitted again. */
    private static void rejected() throws Exception {
        LinkedBlockingQueue<Runnable> queue = new LinkedBlockingQueue<>(1);
        ThreadPoolExecutor pool = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, queue);
        CountDownLatch begin = new CountDownLatch(1);
        pool.execute(() -> await(begin));
        pool.execute(() -> { });
        StackTraceElement[][] origin = new StackTraceElement[1][];
        Runnable plain = () -> take("unknown", origin);
        FutureTask<Void> future = new FutureTask<>(() -> take("unknown", origin), null);
        StackTraceElement[][] later = new StackTraceElement[1][];
        Runnable again = () -> take("first", later);
        for (Runnable task : List.of(plain, future, again)) {
            try {
                origin[0] = new Throwable().getStackTrace(); pool.execute(task);
                Check.wrong("not rejected");
            } catch (RejectedExecutionException e) {
                Check.equal(1, queue.size());
            }
        }
        begin.countDown();
        queue.put(plain);
        queue.put(future);
        future.get();
        later[0] = new Throwable().getStackTrace(); pool.execute(again);
        end(pool);
    }

    /** Many threads give few tasks to few pools: a task knows its submitters only. */
    private static void crowd() throws Exception {
        ExecutorService[] pools = {Executors.newFixedThreadPool(2), Executors.newCachedThreadPool(), new ForkJoinPool(2)};
        AtomicInteger runs = new AtomicInteger();
        Thread[] threads = new Thread[4];
        for (int n = 0; n < threads.length; n++) {
            Random random = new Random(n);
            threads[n] = new Thread(() -> {
                for (int i = 0; i < 200; i++) {
                    submitted(pools[random.nextInt(pools.length)], random.nextInt(4), runs);
                }
            });
            threads[n].start();
        }
        for (Thread thread : threads) thread.join();
        for (ExecutorService pool : pools) end(pool);
        Check.equal(800, runs.get());
    }

    private static void submitted(ExecutorService pool, int deeper, AtomicInteger runs) {
        if (deeper > 0) {
            submitted(pool, deeper - 1, runs);
            return;
        }
        StackTraceElement[] origin = new Throwable().getStackTrace(); pool.execute(() -> counted(runs, origin));
    }

    private static void counted(AtomicInteger runs, StackTraceElement[] origin) {
        runs.incrementAndGet();
        take("first", origin);
    }

    /** JDK 21 and later: a virtual thread for each task. */
    private static void virtual() throws Exception {
        ExecutorService pool;
        try {
            pool = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        } catch (NoSuchMethodException e) {
            return;
        }
        List<Future<?>> tasks = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            tasks.add(pool.submit(task(new Throwable())));
            tasks.add(pool.submit(callable(new Throwable())));
        }
        for (Future<?> task : tasks) task.get();
        end(pool);
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void end(ExecutorService pool) throws InterruptedException {
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.MINUTES);
    }

    private static String text(StackTraceElement[] frames) {
        StringBuilder text = new StringBuilder();
        for (StackTraceElement frame : frames) {
            text.append(text.length() == 0 ? "" : ";").append(frame.getClassName()).append('.');
            text.append(frame.getMethodName()).append(':').append(frame.getLineNumber());
        }
        return text.toString();
    }

    public static void main(String[] args) throws Exception {
        ExecutorService[] pools = {Executors.newFixedThreadPool(2), Executors.newCachedThreadPool(), Executors.newSingleThreadExecutor(), new ForkJoinPool(2)};
        for (int i = 0; i < 3; i++) {
            for (ExecutorService pool : pools) pool(pool, i);
        }
        for (ExecutorService pool : pools) end(pool);
        common();
        ForkJoinPool.commonPool().invoke(new Halves(16, new Throwable()));
        new Halves(16, null).invoke();
        scheduled();
        chains();
        severalTimes();
        around();
        rejected();
        crowd();
        virtual();
        for (Taken taken : ALL) {
            // Its own are checked here as well.
            Check.equal(CallContext.isActive(), taken.id != 0);
            if (CallContext.isActive()) {
                Check.equal(text(taken.here), text(CallContext.decode(taken.id)));
            }
        }
        if (args.length > 0) {
            for (Taken taken : ALL) {
                for (StackTraceElement[] origin : taken.origins) {
                    System.out.println(taken.kind + "|" + taken.id + "|" + text(taken.here) + "|" + text(origin));
                }
            }
        }
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }
}
