package io.lucce.programs;

import io.lucce.CallContext;
import java.util.concurrent.atomic.AtomicInteger;

/** Work after main has ended: shutdown hooks, one of which dies, and the default handler. */
public final class ShutdownHooks {
    static final AtomicInteger handled = new AtomicInteger();
    static volatile Object kept;

    public static void main(String[] args) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler((thread, e) -> {
            handled.incrementAndGet();
            Check.that(CallContext.current(), new Throwable());
        });
        Thread[] hooks = new Thread[10];
        for (int i = 0; i < hooks.length; i++) {
            int n = i;
            hooks[i] = new Thread(() -> hook(n));
            Runtime.getRuntime().addShutdownHook(hooks[i]);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> last(hooks)));
        Check.that(CallContext.current(), new Throwable());
        throw new IllegalStateException("main ends by an exception");
    }

    static void hook(int n) {
        kept = new byte[255];
        Check.that(CallContext.current(), new Throwable());
        if (n > 0 && n % 4 == 0) {
            throw new IllegalStateException("a hook dies");
        }
    }

    /** Hooks run side by side; this one waits for the others and has the last word. */
    static void last(Thread[] hooks) {
        try {
            for (Thread hook : hooks) {
                while (hook.getState() == Thread.State.NEW) {
                    Thread.sleep(1);
                }
                hook.join();
            }
            Check.that(CallContext.current(), new Throwable());
        } catch (InterruptedException e) {
            Check.wrong(e.toString());
        }
        Check.equal(3, handled.get());
        Runtime.getRuntime().halt(Check.summary() ? 0 : 1);
    }
}
