package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.RecursiveTask;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Submits tasks under tags, and knows under which tags each task runs: prints {@code tags#events#markers} at its end. With
 * {@code thread} as its argument, tags belong to threads alone.
 */
public final class TaggedTasks {
    private static final Map<String, long[]> expected = new TreeMap<>();
    private static final String NONE = "(no tag)";
    private static final int ROUNDS = 40;
    private static boolean follows = true;

    private TaggedTasks() {}

    /** What is counted, and nothing else makes. */
    static final class Marker {}

    /** An event and an object in a task that code under these tags has submitted. */
    private static void task(String tags) {
        work(follows ? tags : NONE);
    }

    private static void work(String tags) {
        count(tags);
        Check.that(CallContext.current(), new Throwable());
    }

    private static void count(String tags) {
        CallContext.event("own", 1);
        Object made = new Marker();
        synchronized (expected) {
            long[] sums = expected.computeIfAbsent(tags, key -> new long[2]);
            sums[0]++;
            sums[1]++;
        }
        if (made.hashCode() == 0 && made == expected) throw new AssertionError();
    }

    /** A sum by forked tasks. */
    private static final class Sum extends RecursiveTask<Integer> {
        private final int depth;
        private final String tags;

        Sum(int depth, String tags) {
            this.depth = depth;
            this.tags = tags;
        }

        @Override
        protected Integer compute() {
            if (depth == 0) {
                task(tags);
                return 1;
            }
            Sum left = new Sum(depth - 1, tags);
            left.fork();
            return new Sum(depth - 1, tags).compute() + left.join();
        }
    }

    private static void pools(ExecutorService pool, ExecutorService other, ScheduledExecutorService later) throws Exception {
        List<Future<?>> futures = new ArrayList<>();
        for (int n = 0; n < ROUNDS; n++) {
            String name = "request=r" + n % 5;
            try (CallContext.Tag tag = CallContext.tag("request", "r" + n % 5)) {
                futures.add(pool.submit(() -> task(name)));
                CountDownLatch done = new CountDownLatch(1);
                pool.execute(() -> {
                    task(name);
                    done.countDown();
                });
                done.await();
                futures.add(later.schedule(() -> task(name), 1, TimeUnit.MILLISECONDS));
                // A task hands its tags on, with its own.
                futures.add(pool.submit(() -> {
                    try (CallContext.Tag inner = CallContext.tag("step", "s")) {
                        String both = follows ? name + ", step=s" : "step=s";
                        work(both);
                        Future<?> next = other.submit(() -> task(name + ", step=s"));
                        next.get();
                    }
                    task(name);
                    return null;
                }));
                Future<?> fails = pool.submit(() -> {
                    task(name);
                    throw new IllegalStateException("expected");
                });
                try {
                    fails.get();
                    throw new AssertionError("nothing was thrown");
                } catch (ExecutionException e) {
                    work(name);
                }
                futures.add(CompletableFuture.supplyAsync(() -> {
                    task(name);
                    return 1;
                }));
                futures.add(CompletableFuture.runAsync(() -> task(name), pool));
            }
            futures.add(pool.submit(() -> task(NONE)));
            CountDownLatch done = new CountDownLatch(1);
            other.execute(() -> {
                work(NONE);
                done.countDown();
            });
            done.await();
        }
        for (Future<?> future : futures) future.get();
    }

    private static void forks() throws Exception {
        ForkJoinPool forks = new ForkJoinPool(3);
        for (int n = 0; n < 10; n++) {
            String name = "fork=f" + n % 2;
            try (CallContext.Tag tag = CallContext.tag("fork", "f" + n % 2)) {
                forks.submit(new Sum(5, name)).get();
                work(name);
            }
            forks.invoke(new Sum(4, NONE));
            work(NONE);
        }
        forks.shutdown();
    }

    /** A full queue: the submitting thread runs the task itself, or it is refused. */
    private static void refused() throws Exception {
        CountDownLatch hold = new CountDownLatch(1);
        ThreadPoolExecutor narrow = new ThreadPoolExecutor(1, 1, 1, TimeUnit.MINUTES, new ArrayBlockingQueue<>(1));
        narrow.setRejectedExecutionHandler(new ThreadPoolExecutor.CallerRunsPolicy());
        narrow.execute(() -> {
            try {
                hold.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        Runnable twice = () -> work(NONE);
        Future<?> last;
        try (CallContext.Tag tag = CallContext.tag("refused", "queued")) {
            last = narrow.submit(() -> task("refused=queued"));
        }
        try (CallContext.Tag tag = CallContext.tag("refused", "caller")) {
            narrow.execute(() -> work("refused=caller"));
        }
        hold.countDown();
        last.get();
        // Submitted under two tags before it runs: nobody knows which run is whose.
        CountDownLatch again = new CountDownLatch(1);
        ThreadPoolExecutor wide = new ThreadPoolExecutor(1, 1, 1, TimeUnit.MINUTES, new ArrayBlockingQueue<>(10));
        wide.execute(() -> {
            try {
                again.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        for (String value : new String[] {"a", "b"}) {
            try (CallContext.Tag tag = CallContext.tag("twice", value)) {
                wide.execute(twice);
            }
        }
        again.countDown();
        wide.shutdown();
        if (!wide.awaitTermination(1, TimeUnit.MINUTES)) throw new AssertionError("tasks do not end");
        narrow.shutdown();
    }

    private static void threads() throws Exception {
        Method virtual = null;
        try {
            virtual = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            // An older JDK.
        }
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < 20; n++) {
            String name = "start=t" + n % 3;
            try (CallContext.Tag tag = CallContext.tag("start", "t" + n % 3)) {
                if (virtual != null) {
                    threads.add((Thread) virtual.invoke(null, (Runnable) () -> {
                        task(name);
                        Thread.yield();
                        try (CallContext.Tag inner = CallContext.tag("step", "v")) {
                            work(follows ? name + ", step=v" : "step=v");
                            Thread.yield();
                        }
                        task(name);
                    }));
                }
                Thread platform = new Thread(() -> work(NONE), "platform-" + n);
                platform.start();
                threads.add(platform);
            }
        }
        for (Thread thread : threads) thread.join();
    }

    /** Scopes carry tags to a thread that no executor of the JDK runs. */
    private static void scopes() throws Exception {
        ArrayBlockingQueue<Runnable> queue = new ArrayBlockingQueue<>(100);
        Thread worker = new Thread(() -> {
            try (CallContext.Tag own = CallContext.tag("worker", "w")) {
                for (int n = 0; n < 45; n++) queue.take().run();
                count("worker=w");
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }, "scoped");
        worker.start();
        for (int n = 0; n < 15; n++) {
            String name = "scope=s" + n % 2;
            String scoped = follows ? name : "worker=w";
            String both = follows ? name + ", step=i" : "step=i, worker=w";
            try (CallContext.Tag tag = CallContext.tag("scope", "s" + n % 2)) {
                CallContext.Scope scope = CallContext.Scope.capture();
                queue.put(scope.wrap(() -> {
                    count(scoped);
                    try (CallContext.Tag inner = CallContext.tag("step", "i")) {
                        count(both);
                    }
                }));
                queue.put(scope.wrap(() -> {
                    try {
                        scope.run(() -> {
                            count(scoped);
                            throw new IllegalStateException("expected");
                        });
                    } catch (IllegalStateException e) {
                        count(scoped);
                    }
                }));
            }
            // Without tags a scope leaves those of the thread.
            queue.put(CallContext.Scope.capture().wrap(() -> count("worker=w")));
        }
        worker.join();
    }

    public static void main(String[] args) throws Exception {
        follows = !List.of(args).contains("thread");
        ExecutorService pool = Executors.newFixedThreadPool(3);
        ExecutorService other = Executors.newCachedThreadPool();
        ScheduledExecutorService later = Executors.newScheduledThreadPool(1);
        List<Thread> clients = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            Thread client = new Thread(() -> {
                try {
                    pools(pool, other, later);
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            }, "client-" + n);
            client.start();
            clients.add(client);
        }
        for (Thread client : clients) client.join();
        pool.shutdown();
        other.shutdown();
        later.shutdown();
        forks();
        refused();
        threads();
        scopes();
        expected.forEach((tags, sums) -> System.out.println(tags + "#" + sums[0] + "#" + sums[1]));
        Check.done();
    }
}
