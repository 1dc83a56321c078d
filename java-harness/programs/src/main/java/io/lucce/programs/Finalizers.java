package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.ref.Cleaner;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Finalizers, cleaners and reference queues: the VM's own threads call the program. */
public final class Finalizers {
    private static final int OBJECTS = Repeats.of(500);
    static final AtomicInteger finalized = new AtomicInteger();
    static final AtomicInteger cleaned = new AtomicInteger();
    static final CountDownLatch begun = new CountDownLatch(1);
    static volatile Object kept;

    public static void main(String[] args) throws Exception {
        first();
        make();
        cleaners();
        queues();
        collect();
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    @SuppressWarnings({"removal", "deprecation"})
    static class Finalized {
        final Object content = new byte[140];

        @Override
        protected void finalize() throws Throwable {
            kept = new byte[141];
            int n = finalized.incrementAndGet();
            Check.that(CallContext.current(), new Throwable());
            if (n % 10 == 0) {
                throw new IllegalStateException("ignored by the VM");
            }
        }
    }

    static final class Derived extends Finalized {
        Derived() {
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        protected void finalize() throws Throwable {
            try {
                Check.that(CallContext.current(), new Throwable());
            } finally {
                super.finalize();
            }
        }
    }

    /** Registered with the VM, but its finalizer does nothing. */
    static final class EmptyFinalizer {
        @Override
        @SuppressWarnings({"removal", "deprecation"})
        protected void finalize() {}
    }

    /** Its constructor throws; the object is finalizable nevertheless. */
    static final class Refused extends Finalized {
        Refused() {
            throw new IllegalStateException("refused");
        }
    }

    /** The finalizer's thread is older than any agent: the first that it does lies above a frame of a native method. */
    static final class First {
        @Override
        @SuppressWarnings({"removal", "deprecation"})
        protected void finalize() throws ClassNotFoundException {
            Class.forName(Begun.class.getName());
        }
    }

    static final class Begun {
        static {
            Check.that(CallContext.current(), new Throwable());
            begun.countDown();
        }
    }

    private static void first() throws InterruptedException {
        kept = new First();
        kept = null;
        boolean done = false;
        for (int i = 0; i < 100 && !done; i++) {
            System.gc();
            done = begun.await(50, TimeUnit.MILLISECONDS);
        }
        Check.equal(true, done);
    }

    static void make() {
        for (int i = 0; i < OBJECTS; i++) {
            kept = new Finalized();
            Check.that(CallContext.current(), new Throwable());
            kept = new Derived();
            kept = new EmptyFinalizer();
            try {
                kept = new Refused();
            } catch (IllegalStateException e) {
                Check.that(CallContext.current(), new Throwable());
            }
        }
        kept = null;
    }

    static void cleaners() {
        Cleaner cleaner = Cleaner.create();
        for (int i = 0; i < OBJECTS; i++) {
            Object referent = new byte[142];
            Cleaner.Cleanable cleanable = cleaner.register(referent, Finalizers::clean);
            if (i % 5 == 0) {
                cleanable.clean();
            }
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(true, cleaned.get() >= OBJECTS / 5);
    }

    static void clean() {
        kept = new byte[143];
        cleaned.incrementAndGet();
        Check.that(CallContext.current(), new Throwable());
    }

    static void queues() throws InterruptedException {
        ReferenceQueue<Object> queue = new ReferenceQueue<>();
        List<Reference<?>> references = new ArrayList<>();
        for (int i = 0; i < OBJECTS; i++) {
            references.add(i % 2 == 0 ? new WeakReference<>(new byte[144], queue) : new PhantomReference<>(new byte[145], queue));
        }
        AtomicInteger seen = new AtomicInteger();
        CountDownLatch all = new CountDownLatch(1);
        Thread reader = new Thread(() -> {
            try {
                while (seen.get() < OBJECTS) {
                    queue.remove();
                    seen.incrementAndGet();
                    kept = new byte[146];
                    Check.that(CallContext.current(), new Throwable());
                }
                all.countDown();
            } catch (InterruptedException e) {
                Check.wrong(e.toString());
            }
        }, "reader");
        reader.start();
        for (int i = 0; i < 100 && !all.await(50, TimeUnit.MILLISECONDS); i++) {
            System.gc();
        }
        Check.equal(OBJECTS, seen.get());
        Reference.reachabilityFence(references);
    }

    @SuppressWarnings({"removal", "deprecation"})
    private static void collect() throws InterruptedException {
        int expected = 3 * OBJECTS - 2;
        for (int i = 0; i < 100 && (finalized.get() < expected || cleaned.get() < OBJECTS - 1); i++) {
            System.gc();
            System.runFinalization();
            Thread.sleep(20);
        }
        Check.equal(true, finalized.get() >= expected);
        Check.equal(true, cleaned.get() >= OBJECTS - 1);
    }
}
