package io.lucce.agents;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * A Java agent that uses method handles, and starts a thread that is in the middle of a change of a class when the program
 * begins, which may be the first that another agent sees.
 */
public final class Early {
    private static final CountDownLatch CHANGING = new CountDownLatch(1);
    private static final CountDownLatch PROGRAM = new CountDownLatch(1);
    private static volatile Thread loading;
    static volatile Object sink;

    private Early() {}

    /** Is loaded by the agent's thread. */
    static final class Loaded {
        static final List<int[]> MADE = new ArrayList<>();
    }

    public static void premain(String argument, Instrumentation instrumentation) throws Throwable {
        Work.handles();
        instrumentation.addTransformer(new Changing());
        loading = new Thread(Early::load, "loading");
        loading.start();
        CHANGING.await();
    }

    /** The program begins: the agent's thread goes on with what it was at. */
    static void programBegins() throws InterruptedException {
        Thread thread = loading;
        if (thread != null) {
            PROGRAM.countDown();
            thread.join();
            if (Loaded.MADE.size() != 100) throw new AssertionError("the thread did its work");
        }
    }

    /** Loads a class in the middle of a method, behind calls that went deeper. */
    private static void load() {
        sink = deep(9);
        List<int[]> made = Loaded.MADE;
        for (int i = 0; i < 100; i++) {
            made.add(new int[i]);
        }
    }

    private static Object deep(int calls) {
        return calls == 0 ? new int[3] : List.of(deep(calls - 1));
    }

    private static final class Changing implements ClassFileTransformer {
        @Override
        public byte[] transform(
                ClassLoader loader, String name, Class<?> changed, ProtectionDomain domain, byte[] bytes) {
            if ("io/lucce/agents/Early$Loaded".equals(name)) {
                CHANGING.countDown();
                try {
                    PROGRAM.await();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
                for (int i = 0; i < 100; i++) {
                    sink = deep(i % 7);
                }
            }
            return null;
        }
    }
}
