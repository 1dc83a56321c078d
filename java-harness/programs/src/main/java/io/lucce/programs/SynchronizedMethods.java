package io.lucce.programs;

import io.lucce.CallContext;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** Monitors: synchronized methods and blocks left by return and by exception, wait and notify, locks. */
public final class SynchronizedMethods {
    static volatile Object kept;

    public static void main(String[] args) throws Exception {
        SynchronizedMethods one = new SynchronizedMethods();
        for (int i = 0; i < 200; i++) {
            methods(one, i);
            blocks(i);
            illegal();
            Check.that(CallContext.current(), new Throwable());
        }
        contended();
        waiting();
        locks();
        Check.equal(false, Thread.holdsLock(one));
        Check.equal(false, Thread.holdsLock(SynchronizedMethods.class));
        Check.done();
    }

    private int depth;

    synchronized int instance(int n) {
        kept = new byte[150];
        Check.that(CallContext.current(), new Throwable());
        depth = n;
        return n == 0 ? 0 : instance(n - 1) + 1;
    }

    static synchronized void fails(int n) {
        kept = new byte[151];
        Check.that(CallContext.current(), new Throwable());
        if (n == 0) {
            throw new IllegalStateException("with the monitor held");
        }
        fails(n - 1);
    }

    /** No calls: only the monitor and an allocation. */
    synchronized Object leaf(int n) {
        return new byte[n];
    }

    static void methods(SynchronizedMethods one, int n) {
        Check.equal(n % 10, one.instance(n % 10));
        Check.that(CallContext.current(), new Throwable());
        try {
            fails(n % 6);
            Check.wrong("must throw");
        } catch (IllegalStateException e) {
            Check.equal(false, Thread.holdsLock(SynchronizedMethods.class));
            Check.that(CallContext.current(), new Throwable());
        }
        try {
            kept = one.leaf(n % 2 == 0 ? -1 : n);
            Check.that(CallContext.current(), new Throwable());
        } catch (NegativeArraySizeException e) {
            Check.equal(false, Thread.holdsLock(one));
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void blocks(int n) {
        Object outer = new Object();
        Object inner = new Object();
        try {
            synchronized (outer) {
                kept = new byte[152];
                Check.that(CallContext.current(), new Throwable());
                synchronized (inner) {
                    Check.that(CallContext.current(), new Throwable());
                    fails(n % 4);
                }
            }
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
        } finally {
            Check.equal(false, Thread.holdsLock(outer) || Thread.holdsLock(inner));
        }
        for (int i = 0; i < 5; i++) {
            synchronized (outer) {
                if (i == n % 5) {
                    break;
                }
                kept = new byte[153];
            }
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void illegal() {
        try {
            new Object().notify();
            Check.wrong("must throw");
        } catch (IllegalMonitorStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    private static int shared;

    private static synchronized void increment() {
        shared++;
        kept = new byte[154];
        if (shared % 100 == 0) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void contended() throws InterruptedException {
        Thread[] threads = new Thread[8];
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> {
                for (int i = 0; i < 2000; i++) {
                    increment();
                }
                Check.that(CallContext.current(), new Throwable());
            });
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Check.equal(16_000, shared);
    }

    private static int turn;

    static void waiting() throws InterruptedException {
        Object monitor = new Object();
        Thread other = new Thread(() -> {
            for (int i = 0; i < 200; i++) {
                synchronized (monitor) {
                    await(monitor, 1);
                    turn = 0;
                    monitor.notifyAll();
                    Check.that(CallContext.current(), new Throwable());
                }
            }
        });
        other.start();
        for (int i = 0; i < 200; i++) {
            synchronized (monitor) {
                await(monitor, 0);
                turn = 1;
                monitor.notifyAll();
                Check.that(CallContext.current(), new Throwable());
            }
        }
        other.join();
        Thread.currentThread().interrupt();
        synchronized (monitor) {
            try {
                monitor.wait();
                Check.wrong("must be interrupted");
            } catch (InterruptedException e) {
                Check.that(CallContext.current(), new Throwable());
            }
        }
    }

    private static void await(Object monitor, int wanted) {
        while (turn != wanted) {
            try {
                monitor.wait();
                kept = new byte[155];
            } catch (InterruptedException e) {
                Check.wrong(e.toString());
            }
        }
        Check.that(CallContext.current(), new Throwable());
    }

    static void locks() throws InterruptedException {
        ReentrantLock lock = new ReentrantLock();
        Condition ready = lock.newCondition();
        boolean[] done = new boolean[1];
        Thread other = new Thread(() -> {
            lock.lock();
            try {
                done[0] = true;
                ready.signalAll();
                Check.that(CallContext.current(), new Throwable());
            } finally {
                lock.unlock();
            }
        });
        lock.lock();
        try {
            other.start();
            while (!done[0]) {
                ready.await();
            }
            Check.that(CallContext.current(), new Throwable());
        } finally {
            lock.unlock();
        }
        other.join();
        try {
            lock.unlock();
            Check.wrong("must throw");
        } catch (IllegalMonitorStateException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }
}
