package io.lucce.programs;

import io.lucce.CallContext;
import java.util.ArrayList;
import java.util.List;

/**
 * Threads hand each other objects of classes that have just been loaded, by plain writes and reads: no lock and no volatile
 * field orders them. So sites, methods, numbers and kinds of events that one thread has made are looked up by others at once.
 */
public final class Handed {
    private static final int CLASSES = Repeats.of(60);
    private static final int READERS = 3;
    /** Plain. */
    private static final Runnable[] shelf = new Runnable[4];
    private static volatile boolean ended;

    private Handed() {}

    public static void main(String[] args) throws Exception {
        List<Thread> readers = new ArrayList<>();
        for (int reader = 0; reader < READERS; reader++) {
            Thread thread = new Thread(Handed::read, "reader " + reader);
            thread.start();
            readers.add(thread);
        }
        for (int made = 0; made < CLASSES; made++) {
            Class<?> step = new Fresh(Step.class.getName()).loadClass(Step.class.getName());
            Runnable run = (Runnable) step.getConstructor(int.class).newInstance(made);
            shelf[made % shelf.length] = run;
            if (made % 3 == 0) run.run();
        }
        ended = true;
        for (Thread reader : readers) {
            reader.join();
        }
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    private static void read() {
        Runnable last = null;
        while (!ended) {
            for (int place = 0; place < shelf.length; place++) {
                Runnable run = shelf[place];
                if (run != null && run != last) {
                    last = run;
                    run.run();
                }
            }
            Thread.onSpinWait();
        }
    }

    /** Calls by several ways to the same places, and has a kind of events of its own. */
    public static final class Step implements Runnable {
        private final String kind;
        private Object kept;

        public Step(int number) {
            kind = "handed " + number % 20;
        }

        @Override
        public void run() {
            left(3);
            right(2);
            Check.that(CallContext.current(), new Throwable());
        }

        private void left(int depth) {
            kept = new long[depth];
            CallContext.event(kind, depth);
            if (depth == 0) {
                Check.that(CallContext.current(), new Throwable());
            } else {
                right(depth - 1);
            }
        }

        private void right(int depth) {
            kept = new Object[depth];
            if (depth > 0) left(depth - 1);
            Check.that(CallContext.current(), new Throwable());
        }
    }
}
