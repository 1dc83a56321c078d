package io.lucce.programs;

import io.lucce.Allocations;
import io.lucce.CallContext;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Opens tags, and knows what it does under each: prints {@code tags|events|sum|markers} for each set at its end.
 */
public final class Tags {
    private static final Map<String, long[]> expected = new TreeMap<>();
    private static final int MOST_VALUES = 256;

    private Tags() {}

    /** What is counted, and nothing else makes. */
    static final class Marker {}

    /** An event and two objects, under the tags that {@code tags} says. */
    private static void work(String tags, long value) {
        CallContext.event("own", value);
        Object first = new Marker();
        Object second = new Marker[] {new Marker()};
        synchronized (expected) {
            long[] sums = expected.computeIfAbsent(tags, key -> new long[3]);
            sums[0]++;
            sums[1] += value;
            sums[2] += 2;
        }
        Check.that(CallContext.current(), new Throwable());
        if (first == second) throw new AssertionError();
    }

    private static void request(String endpoint, String tenant, int n) {
        try (CallContext.Tag tag = CallContext.tag("endpoint", endpoint)) {
            String outer = "endpoint=" + endpoint;
            work(outer, n);
            try (CallContext.Tag inner = CallContext.tag("tenant", tenant)) {
                work(outer + ", tenant=" + tenant, n);
                try (CallContext.Tag same = CallContext.tag("endpoint", "inner")) {
                    work("endpoint=inner, tenant=" + tenant, 1);
                }
                work(outer + ", tenant=" + tenant, n);
            }
            work(outer, n);
        }
        work("(no tag)", n);
    }

    private static void odd() throws Exception {
        CallContext.Tag outer = CallContext.tag("odd", "outer");
        CallContext.Tag inner = CallContext.tag("odd", "inner");
        work("odd=inner", 1);
        // Another thread closes nothing.
        Thread other = new Thread(inner::close, "other");
        other.start();
        other.join();
        work("odd=inner", 1);
        // With the outer one both are closed.
        outer.close();
        work("(no tag)", 1);
        inner.close();
        outer.close();
        work("(no tag)", 1);
        try (CallContext.Tag none = CallContext.tag(null, "x"); CallContext.Tag no = CallContext.tag("x", null); CallContext.Tag empty = CallContext.tag("", "x")) {
            work("(no tag)", 1);
        }
        // What is left open ends with its thread.
        Thread left = new Thread(() -> {
            CallContext.tag("odd", "left");
            work("odd=left", 1);
        }, "left");
        left.start();
        left.join();
        try (CallContext.Tag text = CallContext.tag("odd", "größer ☃ =\n<b>")) {
            work("odd=größer ☃ =\n<b>", 1);
        }
        try {
            try (CallContext.Tag thrown = CallContext.tag("odd", "thrown")) {
                work("odd=thrown", 1);
                throw new IllegalStateException();
            }
        } catch (IllegalStateException e) {
            work("(no tag)", 1);
        }
    }

    /** More values than are told apart. */
    private static void many() {
        for (int n = 0; n < 2 * MOST_VALUES; n++) {
            try (CallContext.Tag tag = CallContext.tag("id", "v" + n)) {
                work("id=" + (n < MOST_VALUES ? "v" + n : "(rest)"), 1);
            }
        }
        try (CallContext.Tag tag = CallContext.tag("id", "v7")) {
            work("id=v7", 1);
        }
    }

    /** What is counted of a part of the program holds under whatever tags it works. */
    private static void measured() {
        if (Allocations.unavailable().isPresent()) return;
        for (int round = 0; round < 3; round++) {
            Allocations counted = Allocations.of(() -> {
                Object own = new Marker();
                try (CallContext.Tag tag = CallContext.tag("measured", "yes")) {
                    own = new Marker[] {new Marker(), (Marker) own};
                }
                if (own == null || new Marker() == own) throw new AssertionError();
            });
            long markers = counted.places().stream().filter(of -> of.type().endsWith("Marker")).mapToLong(Allocations.Place::objects).sum();
            if (markers != 3) throw new AssertionError(markers + " in " + counted);
            synchronized (expected) {
                expected.computeIfAbsent("(no tag)", key -> new long[3])[2] += 2;
                expected.computeIfAbsent("measured=yes", key -> new long[3])[2] += 1;
            }
        }
    }

    private static List<Thread> threads() throws Exception {
        List<Thread> threads = new ArrayList<>();
        Method virtual = null;
        try {
            virtual = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            // An older JDK.
        }
        for (int i = 0; i < 8; i++) {
            Runnable task = () -> {
                for (int n = 0; n < 20; n++) {
                    request("/a", "t" + n % 3, n);
                    Thread.yield();
                    request("/b", "t" + n % 3, n);
                }
            };
            if (virtual != null && i % 2 == 0) {
                threads.add((Thread) virtual.invoke(null, task));
            } else {
                Thread thread = new Thread(task, "worker-" + i);
                thread.start();
                threads.add(thread);
            }
        }
        return threads;
    }

    public static void main(String[] args) throws Exception {
        for (int n = 0; n < 200; n++) {
            request(n % 2 == 0 ? "/search" : "/order", "t" + n % 3, n);
        }
        odd();
        many();
        measured();
        for (Thread thread : threads()) {
            thread.join();
        }
        try (CallContext.Tag tag = CallContext.tag("endpoint", "/starts")) {
            // A started thread is under none. See TaggedTasks for tasks.
            Thread started = new Thread(() -> work("(no tag)", 1), "started");
            started.start();
            started.join();
            work("endpoint=/starts", 1);
        }
        expected.forEach((tags, sums) -> System.out.println(tags.replace("\n", "\\n") + "|" + sums[0] + "|" + sums[1] + "|" + sums[2]));
        Check.done();
    }
}
