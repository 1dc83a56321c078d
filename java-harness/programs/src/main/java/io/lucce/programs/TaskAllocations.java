package io.lucce.programs;

import io.lucce.Allocations;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RecursiveAction;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Hands work to other threads while its allocations are counted. It prints {@code name|least|found}: the bytes that it made at
 * least, and what was counted; or {@code name|fails|reason}. What it makes is large beside what threads and executors need.
 */
public final class TaskAllocations {
    static volatile Object sink;

    private static final int LARGE = 1_000_000;
    /** An array's header, and what fills it up to a multiple of 8. */
    private static final long BYTES = LARGE + 16;

    private TaskAllocations() {}

    private static void make() {
        sink = new byte[LARGE];
    }

    /** What the code allocates; 0 if that is not known. */
    private static long measured(Allocations.Body<Exception> body) throws Exception {
        try {
            return Allocations.of(body).bytes();
        } catch (IllegalStateException e) {
            return 0;
        }
    }

    private static void counts(String name, long least, Allocations.Body<Exception> body) throws Exception {
        String found;
        try {
            found = Long.toString(Allocations.of(body).bytes());
        } catch (IllegalStateException e) {
            System.out.println(name + "|fails|" + e.getMessage());
            return;
        }
        System.out.println(name + "|" + least + "|" + found);
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2);
        ScheduledExecutorService scheduled = Executors.newScheduledThreadPool(1);
        for (int round = 0; round < 3; round++) {
            threads();
            executors(pool, scheduled);
            forked();
            if (!nested(pool)) {
                break;
            }
        }
        virtual();
        beside(pool);
        atATime(pool);
        leftOver(pool);
        pool.shutdown();
        scheduled.shutdown();
    }

    private static void threads() throws Exception {
        counts("own", BYTES, TaskAllocations::make);
        counts("thread", BYTES, () -> {
            Thread thread = new Thread(TaskAllocations::make);
            thread.start();
            thread.join();
        });
        counts("thread of a thread", 2 * BYTES, () -> {
            Thread outer = new Thread(() -> {
                Thread inner = new Thread(TaskAllocations::make);
                inner.start();
                make();
                try {
                    inner.join();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
            outer.start();
            outer.join();
        });
    }

    private static void executors(ExecutorService pool, ScheduledExecutorService scheduled) throws Exception {
        counts("submit", BYTES, () -> pool.submit(TaskAllocations::make).get());
        counts("execute", BYTES, () -> {
            CountDownLatch done = new CountDownLatch(1);
            pool.execute(() -> {
                make();
                done.countDown();
            });
            done.await();
        });
        counts("invokeAll", 5 * BYTES, () -> {
            List<Callable<Object>> tasks = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                tasks.add(() -> sink = new byte[LARGE]);
            }
            pool.invokeAll(tasks);
        });
        counts("schedule", BYTES, () -> scheduled.schedule(TaskAllocations::make, 1, TimeUnit.MILLISECONDS).get());
        counts("own pool", BYTES, () -> {
            ExecutorService own = Executors.newSingleThreadExecutor();
            own.submit(TaskAllocations::make).get();
            own.shutdown();
        });
        counts("refused", BYTES, () -> {
            ThreadPoolExecutor full = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>(1));
            CountDownLatch begin = new CountDownLatch(1);
            full.submit(() -> {
                begin.await();
                make();
                return null;
            });
            full.execute(() -> sink = null);
            int refused = 0;
            for (int i = 0; i < 2; i++) {
                try {
                    if (i == 0) {
                        full.execute(TaskAllocations::make);
                    } else {
                        full.submit(TaskAllocations::make);
                    }
                } catch (RejectedExecutionException e) {
                    refused++;
                }
            }
            begin.countDown();
            full.shutdown();
            full.awaitTermination(1, TimeUnit.HOURS);
            if (refused != 2) throw new AssertionError(refused + " refused");
        });
    }

    private static void forked() throws Exception {
        counts("parallel stream", 1000 * 1016L, () -> sink = IntStream.range(0, 1000).parallel().mapToObj(i -> new byte[1000])
            .collect(Collectors.toList()));
        counts("supplyAsync", BYTES, () -> sink = CompletableFuture.supplyAsync(() -> new byte[LARGE]).join());
        counts("stages", 2 * BYTES, () -> CompletableFuture.runAsync(TaskAllocations::make).thenRunAsync(TaskAllocations::make).join());
        // More submissions behind each other than a context keeps.
        counts("fork", 1025 * 1016L, () -> new ForkJoinPool(3).invoke(new Chain(1024)));
        counts("halves", 1024 * 1016L, () -> ForkJoinPool.commonPool().invoke(new Halves(1024)));
    }

    /** Each forks the next one. */
    private static final class Chain extends RecursiveAction {
        private final int left;

        Chain(int left) {
            this.left = left;
        }

        @Override
        protected void compute() {
            sink = new byte[1000];
            if (left > 0) {
                Chain next = new Chain(left - 32);
                next.fork();
                for (int i = 1; i < 32; i++) {
                    sink = new byte[1000];
                }
                next.join();
            }
        }
    }

    private static final class Halves extends RecursiveAction {
        private final int leaves;

        Halves(int leaves) {
            this.leaves = leaves;
        }

        @Override
        protected void compute() {
            if (leaves == 1) {
                sink = new byte[1000];
            } else {
                invokeAll(new Halves(leaves / 2), new Halves(leaves - leaves / 2));
            }
        }
    }

    private static boolean nested(ExecutorService pool) throws Exception {
        long[] inner = new long[1];
        counts("outer", 3 * BYTES, () -> {
            pool.submit(TaskAllocations::make).get();
            inner[0] = measured(() -> pool.submit(TaskAllocations::make).get());
            make();
        });
        System.out.println("inner|" + BYTES + "|" + inner[0]);
        // Measured in a task.
        long[] within = new long[1];
        counts("outer task", 2 * BYTES, () -> pool.submit(() -> {
            make();
            within[0] = measured(() -> {
                Thread thread = new Thread(TaskAllocations::make);
                thread.start();
                thread.join();
            });
            return null;
        }).get());
        System.out.println("inner task|" + BYTES + "|" + within[0]);
        return inner[0] > 0;
    }

    private static void virtual() throws Exception {
        Method start;
        Method executor;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            executor = Executors.class.getMethod("newVirtualThreadPerTaskExecutor");
        } catch (NoSuchMethodException e) {
            return;
        }
        for (int round = 0; round < 3; round++) {
            counts("virtual thread", BYTES, () -> {
                Runnable task = TaskAllocations::make;
                Thread thread = (Thread) start.invoke(null, task);
                thread.join();
            });
            counts("virtual executor", 10 * BYTES, () -> {
                ExecutorService each = (ExecutorService) executor.invoke(null);
                for (int i = 0; i < 10; i++) {
                    each.submit(TaskAllocations::make);
                }
                each.shutdown();
                each.awaitTermination(1, TimeUnit.HOURS);
            });
        }
    }

    /** What others do meanwhile is not counted: threads that ran before, and tasks that others submit to the same pool. */
    private static void beside(ExecutorService pool) throws Exception {
        CountDownLatch running = new CountDownLatch(20);
        Thread other = new Thread(() -> {
            while (!Thread.interrupted()) {
                try {
                    pool.submit(TaskAllocations::make).get();
                } catch (Exception e) {
                    return;
                }
                make();
                running.countDown();
            }
        });
        other.start();
        running.await();
        for (int i = 0; i < 20; i++) {
            counts("beside", BYTES, () -> pool.submit(TaskAllocations::make).get());
        }
        other.interrupt();
        other.join();
    }

    /** Measurements from equal contexts, in the same pool. */
    private static void atATime(ExecutorService pool) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            int arrays = i + 1;
            Thread thread = new Thread(() -> {
                try {
                    for (int round = 0; round < 10; round++) {
                        counts("at a time", arrays * BYTES, () -> {
                            for (int n = 0; n < arrays; n++) {
                                pool.submit(TaskAllocations::make).get();
                            }
                        });
                    }
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void leftOver(ExecutorService pool) throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        Runnable waits = () -> {
            try {
                end.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        };
        counts("left thread", 0, () -> new Thread(waits, "left-behind").start());
        counts("left task", 0, () -> pool.submit(waits));
        counts("left plain task", 0, () -> pool.execute(waits));
        counts("left async task", 0, () -> CompletableFuture.runAsync(waits));
        counts("left in the queue", 0, () -> pool.submit(waits));
        end.countDown();
        // They are not taken for what comes later.
        counts("after that", BYTES, () -> pool.submit(TaskAllocations::make).get());
        CountDownLatch twice = new CountDownLatch(4);
        Runnable same = () -> {
            make();
            twice.countDown();
        };
        counts("several places", 0, () -> {
            CountDownLatch begin = new CountDownLatch(1);
            for (int i = 0; i < 2; i++) {
                pool.execute(() -> {
                    try {
                        begin.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                });
            }
            pool.execute(same);
            pool.execute(same);
            begin.countDown();
            pool.execute(twice::countDown);
            pool.execute(twice::countDown);
            twice.await();
        });
    }
}
