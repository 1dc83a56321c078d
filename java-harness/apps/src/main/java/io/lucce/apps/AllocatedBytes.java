package io.lucce.apps;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The bytes that the VM has allocated for all threads. Before JDK 21 the VM does not say those of ended threads, except of threads
 * from {@link #newThread}.
 */
final class AllocatedBytes {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final Method TOTAL = total();
    /** Of ended threads. */
    private static final AtomicLong ENDED = new AtomicLong();

    private AllocatedBytes() {}

    private static Method total() {
        try {
            return ThreadMXBean.class.getMethod("getTotalThreadAllocatedBytes");
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    static long now() throws ReflectiveOperationException {
        if (TOTAL != null) {
            return (long) TOTAL.invoke(THREADS);
        }
        long all = ENDED.get();
        for (long bytes : THREADS.getThreadAllocatedBytes(THREADS.getAllThreadIds())) {
            all += Math.max(bytes, 0);
        }
        return all;
    }

    static Thread newThread(Runnable work) {
        return new Thread(() -> {
            try {
                work.run();
            } finally {
                if (TOTAL == null) {
                    ENDED.addAndGet(THREADS.getThreadAllocatedBytes(Thread.currentThread().getId()));
                }
            }
        });
    }
}
