import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that wait for locks which others hold in known methods. Prints `WAITING HOLDING COUNT` for each pair of methods, with
 * `-` for a holder that cannot be known. Argument `--virtual`: all threads are virtual.
 */
public class LockHolders {
    static final int ROUNDS = 4;
    /** A wait is surely reported after this time. */
    static final int HELD_MILLIS = 30;

    static final class Case {
        final Object lock;
        final CountDownLatch held = new CountDownLatch(1);
        volatile Thread waiting;
        int uses;

        Case(Object lock) { this.lock = lock; }

        /** The holder has the lock: waits until the other thread is blocked. */
        void hold() throws InterruptedException {
            held.countDown();
            while (waiting == null) Thread.sleep(1);
            Thread.State state;
            do {
                Thread.sleep(1);
                state = waiting.getState();
            } while (state != Thread.State.BLOCKED && state != Thread.State.WAITING);
            Thread.sleep(HELD_MILLIS);
            uses++;
        }
    }

    static class Lock {
        synchronized void holdMethod(Case of) throws InterruptedException { of.hold(); }

        synchronized void holdThrowing(Case of) throws InterruptedException {
            of.hold();
            throw new IllegalStateException();
        }
    }

    static final class Global {
        static synchronized void holdStatic(Case of) throws InterruptedException { of.hold(); }
    }

    /** The test leaves this class without hooks. */
    static final class Unhooked {
        static void hold(Case of) throws InterruptedException {
            synchronized (of.lock) { of.hold(); }
        }
    }

    static void holdBlock(Case of) throws InterruptedException {
        synchronized (of.lock) { of.hold(); }
    }

    static void holdAgain(Case of) throws InterruptedException {
        synchronized (of.lock) {
            of.hold();
            holdInner(of);
        }
    }

    static void holdInner(Case of) {
        synchronized (of.lock) { of.uses++; }
    }

    static void holdNested(Case of) throws InterruptedException {
        synchronized (of.lock) {
            of.hold();
            // Another lock of the same class.
            synchronized (new Lock()) { of.uses++; }
        }
    }

    static void holdUntilWait(Case of) throws InterruptedException {
        synchronized (of.lock) {
            of.hold();
            of.lock.wait(1);
        }
    }

    static void holdFailing(Case of) throws InterruptedException {
        synchronized (of.lock) {
            of.hold();
            throw new IllegalStateException();
        }
    }

    static void holdReentrant(Case of) throws InterruptedException {
        ReentrantLock lock = (ReentrantLock) of.lock;
        lock.lock();
        try {
            lock.lock();
            of.hold();
            lock.unlock();
        } finally {
            lock.unlock();
        }
    }

    static void await(Case of) {
        synchronized (of.lock) { of.uses++; }
    }

    // One for each case, so that the waits have contexts of their own.
    static void awaitBlock(Case of) { await(of); }
    static void awaitMethod(Case of) { await(of); }
    static void awaitThrowing(Case of) { await(of); }
    static void awaitStatic(Case of) { await(of); }
    static void awaitAgain(Case of) { await(of); }
    static void awaitNested(Case of) { await(of); }
    static void awaitWait(Case of) { await(of); }
    static void awaitFailing(Case of) { await(of); }
    static void awaitUnhooked(Case of) { await(of); }
    static void awaitReentrant(Case of) {
        ReentrantLock lock = (ReentrantLock) of.lock;
        lock.lock();
        try { of.uses++; } finally { lock.unlock(); }
    }

    interface Step { void run(Case of) throws Exception; }

    static boolean virtual;

    static Thread start(Runnable work) throws Exception {
        if (virtual) return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        Thread thread = new Thread(work);
        thread.start();
        return thread;
    }

    static Runnable caught(Step step, Case of) {
        return () -> {
            try {
                step.run(of);
            } catch (IllegalStateException expected) {
                of.uses++;
            } catch (Exception e) {
                e.printStackTrace();
                System.exit(2);
            }
        };
    }

    static void play(String waiting, String holding, Object lock, Step wait, Step hold) throws Exception {
        for (int i = 0; i < ROUNDS; i++) {
            Case of = new Case(lock);
            Thread holder = start(caught(hold, of));
            of.held.await();
            Thread waiter = start(caught(wait, of));
            of.waiting = waiter;
            holder.join();
            waiter.join();
        }
        System.out.println(waiting + " " + holding + " " + ROUNDS);
    }

    public static void main(String[] args) throws Exception {
        virtual = args.length > 0;
        // Until their first use, these classes have no hooks.
        new Lock();
        play("awaitBlock", "holdBlock", new Lock(), LockHolders::awaitBlock, LockHolders::holdBlock);
        Lock own = new Lock();
        play("awaitMethod", "holdMethod", own, LockHolders::awaitMethod, own::holdMethod);
        play("awaitStatic", "holdStatic", Global.class, LockHolders::awaitStatic, Global::holdStatic);
        play("awaitAgain", "holdAgain", new Lock(), LockHolders::awaitAgain, LockHolders::holdAgain);
        play("awaitNested", "holdNested", new Lock(), LockHolders::awaitNested, LockHolders::holdNested);
        play("awaitWait", "holdUntilWait", new Lock(), LockHolders::awaitWait, LockHolders::holdUntilWait);
        ReentrantLock reentrant = new ReentrantLock();
        play("awaitReentrant", "holdReentrant", reentrant, LockHolders::awaitReentrant, LockHolders::holdReentrant);
        // Nothing precedes these releases.
        Lock throwing = new Lock();
        play("awaitThrowing", "-", throwing, LockHolders::awaitThrowing, throwing::holdThrowing);
        play("awaitFailing", "-", new Lock(), LockHolders::awaitFailing, LockHolders::holdFailing);
        play("awaitUnhooked", "-", new Lock(), LockHolders::awaitUnhooked, Unhooked::hold);
    }
}
