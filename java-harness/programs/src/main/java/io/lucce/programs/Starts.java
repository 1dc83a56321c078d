package io.lucce.programs;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Starts threads and says from which lines: {@code thread|line|count|0}, and {@code nested|line|outer line|0} for
 * a thread that another one has started.
 */
public final class Starts {
    private static final Map<Integer, Integer> starts = new TreeMap<>();

    private Starts() {}

    /** A thread is started on the caller's line; that line. */
    private static int here() {
        int line = new Throwable().getStackTrace()[1].getLineNumber();
        synchronized (starts) {
            starts.merge(line, 1, Integer::sum);
        }
        return line;
    }

    /** Says so by itself. */
    private static final class Own extends Thread {
        @Override
        public void start() {
            here(); super.start();
        }
    }

    private static void run(Thread thread) throws InterruptedException {
        here(); thread.start();
        thread.join();
    }

    private static void nested(int outer) {
        Thread inner = new Thread(() -> {}, "inner");
        int line = here(); inner.start();
        System.out.println("nested|" + line + "|" + outer + "|0");
        try {
            inner.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 20; i++) {
            run(new Thread(() -> {}));
        }
        for (int i = 0; i < 3; i++) {
            Own own = new Own();
            own.start();
            own.join();
        }
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 4; i++) {
            here(); pool.submit(() -> {}).get();
        }
        for (int i = 0; i < 7; i++) {
            pool.submit(() -> {}).get();
        }
        pool.shutdown();
        int outer = new Throwable().getStackTrace()[0].getLineNumber() + 2;
        Thread thread = new Thread(() -> nested(outer), "outer");
        here(); thread.start();
        thread.join();
        try {
            thread.start();
        } catch (IllegalThreadStateException e) {
            // Is not a start that counts.
        }
        synchronized (starts) {
            starts.forEach((line, count) -> System.out.println("thread|" + line + "|" + count + "|0"));
        }
    }
}
