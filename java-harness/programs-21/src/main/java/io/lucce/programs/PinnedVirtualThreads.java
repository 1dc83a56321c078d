package io.lucce.programs;

import io.lucce.CallContext;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Virtual threads that hold a monitor while they wait. JDK 21 prints where ({@code -Djdk.tracePinnedThreads}) in the
 * middle of unmounting them, and so runs Java code of the program's while the VM answers no question about stacks.
 */
public final class PinnedVirtualThreads {
    static volatile Object kept;
    static final AtomicInteger printed = new AtomicInteger();

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(new PrintStream(new Counting()));
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 40; t++) {
            int n = t;
            threads.add(Thread.ofVirtual().uncaughtExceptionHandler(Check::uncaught).start(() -> {
                for (int i = 0; i < 5; i++) {
                    pinned(n + i);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.setOut(out);
        // As the VM runs it: newer ones are not pinned by monitors, and print nothing.
        if (Runtime.version().feature() < 24 && printed.get() == 0) {
            Check.wrong("nobody was pinned");
        }
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    static void pinned(int n) {
        kept = new byte[500];
        synchronized (new Object()) {
            Check.that(CallContext.current(), new Throwable());
            if (n % 2 == 0) {
                LockSupport.parkNanos(1_000_000);
            } else {
                Thread.yield();
            }
            kept = new byte[501];
            Check.that(CallContext.current(), new Throwable());
        }
        LockSupport.parkNanos(100_000);
        Check.that(CallContext.current(), new Throwable());
    }

    /** Where what the JDK prints arrives. It does not print into subclasses of PrintStream. */
    private static final class Counting extends OutputStream {
        @Override
        public void write(int letter) {
            kept = new byte[502];
            Initialised.use(() -> kept = new byte[503]);
            printed.incrementAndGet();
        }
    }

    /** The VM enters its initialiser. */
    private static final class Initialised {
        static final Object FIRST = new byte[504];

        static void use(Runnable body) {
            kept = FIRST;
            body.run();
        }
    }
}
