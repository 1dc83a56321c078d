package io.lucce.programs;

import io.lucce.CallContext;
import java.util.concurrent.atomic.AtomicInteger;

/** Native threads that attach, call Java without a Java frame below, detach and attach again. */
public final class NativeThreads {
    static final AtomicInteger calls = new AtomicInteger();
    static volatile Object kept;

    public static void main(String[] args) throws Exception {
        if (!NativeLibrary.load()) {
            return;
        }
        for (int i = 0; i < 5; i++) {
            Check.equal(true, NativeLibrary.attach(new Work(), 20, 5));
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(5 * 20 * 5 * 2, calls.get());
        Check.done();
    }

    static final class Work implements Runnable {
        @Override
        public void run() {
            int call = calls.incrementAndGet();
            kept = new byte[40];
            Check.that(CallContext.current(), new Throwable());
            deeper(call % 7);
            NativeLibrary.once(() -> Check.that(CallContext.current(), new Throwable()));
            Check.that(CallContext.current(), new Throwable());
            if (call % 3 == 0) {
                throw new IllegalStateException("swallowed by the native");
            }
        }

        private void deeper(int depth) {
            if (depth == 0) {
                Check.that(CallContext.current(), new Throwable());
                return;
            }
            kept = new byte[depth];
            deeper(depth - 1);
            Check.that(CallContext.current(), new Throwable());
        }
    }
}
