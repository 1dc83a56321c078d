package io.lucce.programs;

import io.lucce.CallContext;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Exchanger;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntUnaryOperator;

/**
 * Objects of classes that have just been loaded go from thread to thread, between each two by another means: an exchanger, two
 * queues, and a plain field behind a volatile one.
 *
 * <p>How many contexts are compared is known: in each of {@link #LAPS} laps, each of {@link #THREADS} threads compares
 * three, twice each; the main thread compares one.
 */
public final class HandOver {
    private static final int LAPS = Repeats.of(12);
    private static final int THREADS = 4;

    private HandOver() {}

    public static void main(String[] args) throws Exception {
        List<Link> links = List.of(new Exchanged(), new Queued(new SynchronousQueue<>()), new Published(),
            new Queued(new ArrayBlockingQueue<>(1)), new Published());
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            Link from = links.get(i);
            Link to = links.get(i + 1);
            Thread thread = new Thread(() -> pass(from, to), "runner " + i);
            thread.setUncaughtExceptionHandler(Check::uncaught);
            thread.start();
            threads.add(thread);
        }
        int runs = 0;
        for (int lap = 0; lap < LAPS; lap++) {
            Class<?> type = new Fresh(Baton.class.getName()).loadClass(Baton.class.getName());
            links.get(0).put((IntUnaryOperator) type.getConstructor().newInstance());
            runs += links.get(THREADS).take().applyAsInt(0);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Check.equal(LAPS * THREADS, runs);
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    private static void pass(Link from, Link to) {
        try {
            for (int lap = 0; lap < LAPS; lap++) {
                IntUnaryOperator baton = from.take();
                baton.applyAsInt(1);
                to.put(baton);
            }
        } catch (InterruptedException e) {
            Check.wrong(e.toString());
        }
    }

    /** From one thread to the next. */
    private interface Link {
        void put(IntUnaryOperator baton) throws InterruptedException;

        IntUnaryOperator take() throws InterruptedException;
    }

    private static final class Exchanged implements Link {
        private final Exchanger<IntUnaryOperator> exchanger = new Exchanger<>();

        @Override
        public void put(IntUnaryOperator baton) throws InterruptedException {
            exchanger.exchange(baton);
        }

        @Override
        public IntUnaryOperator take() throws InterruptedException {
            return exchanger.exchange(null);
        }
    }

    private static final class Queued implements Link {
        private final BlockingQueue<IntUnaryOperator> queue;

        Queued(BlockingQueue<IntUnaryOperator> queue) {
            this.queue = queue;
        }

        @Override
        public void put(IntUnaryOperator baton) throws InterruptedException {
            queue.put(baton);
        }

        @Override
        public IntUnaryOperator take() throws InterruptedException {
            return queue.take();
        }
    }

    /** Only the volatile field orders the plain one. */
    private static final class Published implements Link {
        private IntUnaryOperator plain;
        private volatile boolean isFull;

        @Override
        public void put(IntUnaryOperator baton) {
            await(false);
            plain = baton;
            isFull = true;
        }

        @Override
        public IntUnaryOperator take() {
            await(true);
            IntUnaryOperator baton = plain;
            isFull = false;
            return baton;
        }

        private void await(boolean full) {
            while (isFull != full) {
                LockSupport.parkNanos(100_000);
            }
        }
    }

    /** Counts its runs, without a lock: one thread at a time has it. */
    public static final class Baton implements IntUnaryOperator {
        private Object kept;
        private int runs;

        /** {@code more}: 0 asks for the number of runs alone. */
        @Override
        public int applyAsInt(int more) {
            if (more > 0) {
                runs += more;
                kept = new long[runs];
                Check.that(CallContext.current(), new Throwable());
                deeper(runs);
            }
            return runs;
        }

        private void deeper(int depth) {
            kept = new Object[] {kept, new byte[depth]};
            Check.that(CallContext.current(), new Throwable());
            if (depth > 0) {
                Runnable task = () -> Check.that(CallContext.current(), new Throwable());
                task.run();
            }
        }
    }
}
