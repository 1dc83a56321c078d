package io.lucce;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;

/**
 * What a piece of code allocates: every object, and the stack trace of each place that makes some.
 *
 * <pre>{@code
 * Allocations found = Allocations.of(() -> index.find("word"));
 * assertTrue(found.bytes() <= 1000, found::toString);
 * }</pre>
 *
 * <p>The counts are exact, whatever the compiler does: an object counts where the bytecode makes it. {@link #of of} counts what
 * the code does, and what the threads and tasks do that it starts: threads, tasks of the JDK's executors, parallel streams,
 * virtual threads. The agent's option {@code events=alloc+thread} tells which these are. {@link #ofThread ofThread} counts the
 * calling thread alone. Code that runs for the first time also loads classes and links lambdas, which allocates: run it once
 * before if that is not what you want to know.
 *
 * <p>Without the agent there are no counts: {@link #unavailable()} says why.
 */
public final class Allocations {
    /** The agent sets this property before it lets the program begin. */
    private static final boolean ACTIVE = System.getProperty("lucce.version") != null;

    /** What {@link #begin0} returns while too many measurements go on. */
    private static final long TOO_MANY = -1;

    /** How long what the code has started may run on once the code has ended, in nanoseconds; the property is in milliseconds. */
    private static final long PATIENCE = 1_000_000 * Long.getLong("lucce.patience", 10_000);

    /** Places that {@link #toString()} shows. */
    private static final int SHOWN = 10;

    private final List<Place> places;
    /** What the VM has allocated in the calling thread; negative: it does not count that. */
    private final long heapBytes;

    private Allocations(List<Place> places, long heapBytes) {
        this.places = places;
        this.heapBytes = heapBytes;
    }

    /** The VM's own count of what the current thread allocates. */
    private static final class HeapCount {
        private static final com.sun.management.ThreadMXBean THREADS = find();

        private static com.sun.management.ThreadMXBean find() {
            Object bean = ManagementFactory.getThreadMXBean();
            if (!(bean instanceof com.sun.management.ThreadMXBean)) {
                return null;
            }
            com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) bean;
            try {
                threads.getCurrentThreadAllocatedBytes();
                return threads;
            } catch (NoSuchMethodError e) {
                // JDK 11.
                return null;
            }
        }

        /** Bytes; negative: the VM does not count, or not in virtual threads. Allocates nothing. */
        static long read() {
            return THREADS == null ? -1 : THREADS.getCurrentThreadAllocatedBytes();
        }
    }

    /**
     * Code that may throw.
     *
     * @param <X> what it throws
     */
    @FunctionalInterface
    public interface Body<X extends Throwable> {
        /**
         * Runs the code.
         *
         * @throws X whatever it throws
         */
        void run() throws X;
    }

    /** Objects of one type that were made in one calling context. */
    public static final class Place {
        private final long number;
        private final String type;
        private final long objects;
        private final long bytes;
        /** Where traces end, frames of {@link Allocations} aside: a class and a method of it, or null. */
        private final String[] outermost;

        private Place(long number, String type, long objects, long bytes, String[] outermost) {
            this.number = number;
            this.type = type;
            this.objects = objects;
            this.bytes = bytes;
            this.outermost = outermost;
        }

        /**
         * Returns the number of the calling context.
         *
         * @return the number, as {@link CallContext#current()} would return it
         */
        public long number() {
            return number;
        }

        /**
         * Returns what was made.
         *
         * @return the type as Java writes it
         */
        public String type() {
            return type;
        }

        /**
         * Returns how many objects were made.
         *
         * @return the count
         */
        public long objects() {
            return objects;
        }

        /**
         * Returns what the objects take in the heap.
         *
         * @return the sum in bytes
         */
        public long bytes() {
            return bytes;
        }

        /**
         * Returns the calls that lead to the place.
         *
         * @return the frames, innermost first, as far as the code that was counted; in another thread they go on in the thread
         *     that has submitted the task, or has started the thread
         */
        public List<StackTraceElement> trace() {
            List<StackTraceElement> frames = new ArrayList<>();
            int end = 0;
            for (StackTraceElement frame : trace0(number)) {
                if (frame.getClassName().equals(Allocations.class.getName())) {
                    break;
                }
                frames.add(frame);
                if (outermost != null && is(frame, outermost)) {
                    end = frames.size();
                }
            }
            return end > 0 ? frames.subList(0, end) : frames;
        }

        private boolean comesThrough(String[] method) {
            return trace().stream().anyMatch(frame -> is(frame, method));
        }

        private static boolean is(StackTraceElement frame, String[] method) {
            return frame.getClassName().equals(method[0]) && frame.getMethodName().equals(method[1]);
        }

        /** Returns numbers, type and content id on one line, and the frames as the JVM prints them below. */
        @Override
        public String toString() {
            StringBuilder text = new StringBuilder();
            text.append(of(bytes, "byte")).append("  ").append(String.format(Locale.ROOT, "%,d", objects));
            text.append(" × ").append(type).append("  ").append(CallContext.toString(number));
            text.append("  ").append(CallContext.contentId(number));
            for (StackTraceElement frame : trace()) {
                text.append("\n\tat ").append(frame);
            }
            return text.toString();
        }
    }

    /**
     * Tells why allocations cannot be counted in this thread.
     *
     * @return the reason in words; empty if they can
     */
    public static Optional<String> unavailable() {
        if (!ACTIVE) {
            return Optional.of("the lucce agent is not in this JVM (-agentpath:/path/to/liblucce.so)");
        }
        return Optional.ofNullable(unable0());
    }

    /**
     * Runs code and counts what it allocates, with all that the threads and tasks allocate that it starts.
     *
     * <p>Threads and tasks must have ended when the code ends, as they have where it joins them or asks for their results. If
     * one has not after ten seconds (the property {@code lucce.patience}, in milliseconds), that is an error. So is a task in another thread whose submission the agent does not
     * know, because it could be the code's. Without the agent's option {@code events=thread} that is any object that another
     * thread makes meanwhile.
     *
     * @param <X> what the code throws
     * @param body the code; it runs once, in this thread
     * @return what it has allocated
     * @throws X what the code throws
     * @throws IllegalStateException if that cannot be counted: {@link #unavailable()} says why, or some of it was lost, or
     *     something that the code has started still runs, or may be the code's and is not known to be
     */
    public static <X extends Throwable> Allocations of(Body<X> body) throws X {
        return counted(body, true);
    }

    /**
     * Runs code and counts what it allocates in this thread. What other threads do is not in it, even if the code has started
     * them.
     *
     * @param <X> what the code throws
     * @param body the code; it runs once, in this thread
     * @return what it has allocated
     * @throws X what the code throws
     * @throws IllegalStateException if that cannot be counted: {@link #unavailable()} says why, or some of it was lost
     */
    public static <X extends Throwable> Allocations ofThread(Body<X> body) throws X {
        return counted(body, false);
    }

    private static <X extends Throwable> Allocations counted(Body<X> body, boolean withTasks) throws X {
        if (ACTIVE) {
            // The first call creates the VM's bean.
            HeapCount.read();
        }
        long mark = ACTIVE ? begin0(withTasks) : 0;
        if (mark == TOO_MANY) {
            throw new IllegalStateException("allocations are not counted: too many measurements go on at a time, or have left threads "
                + "and tasks running");
        }
        if (mark == 0) {
            throw new IllegalStateException("allocations are not counted: " + unavailable().orElse("no mark was given"));
        }
        int site = site0(mark);
        String counted;
        String running = "";
        boolean hasEnded = false;
        long heapBefore = HeapCount.read();
        long heapAfter;
        try {
            run(site, body);
            hasEnded = true;
        } finally {
            heapAfter = HeapCount.read();
            // Nothing of ours allocates before this has looked.
            stop0(mark);
            if (site >= 0) {
                running = awaitHanded(mark, hasEnded ? PATIENCE : 0);
            }
            counted = end0(mark, !running.isEmpty());
        }
        if (counted == null) {
            throw new IllegalStateException("allocations were not counted to the end: "
                + unavailable().orElse("the code ended in another thread"));
        }
        if (!running.isEmpty()) {
            throw new IllegalStateException("the counts are not complete: when the code had ended, " + running
                + "; wait for it in the code that is counted");
        }
        return parsed(counted, heapBefore < 0 ? -1 : heapAfter - heapBefore);
    }

    /**
     * Runs the code from a call site of its own. The agent tells measurements that go on at a time by this site, which is in the
     * contexts of all that the code does in whichever thread. The sites' order counts: the first is number 0.
     */
    private static <X extends Throwable> void run(int site, Body<X> body) throws X {
        switch (site) {
            case 0: body.run(); break;
            case 1: body.run(); break;
            case 2: body.run(); break;
            case 3: body.run(); break;
            case 4: body.run(); break;
            case 5: body.run(); break;
            case 6: body.run(); break;
            case 7: body.run(); break;
            case 8: body.run(); break;
            case 9: body.run(); break;
            case 10: body.run(); break;
            case 11: body.run(); break;
            case 12: body.run(); break;
            case 13: body.run(); break;
            case 14: body.run(); break;
            case 15: body.run(); break;
            case 16: body.run(); break;
            case 17: body.run(); break;
            case 18: body.run(); break;
            case 19: body.run(); break;
            case 20: body.run(); break;
            case 21: body.run(); break;
            case 22: body.run(); break;
            case 23: body.run(); break;
            case 24: body.run(); break;
            case 25: body.run(); break;
            case 26: body.run(); break;
            case 27: body.run(); break;
            case 28: body.run(); break;
            case 29: body.run(); break;
            case 30: body.run(); break;
            case 31: body.run(); break;
            case 32: body.run(); break;
            case 33: body.run(); break;
            case 34: body.run(); break;
            case 35: body.run(); break;
            case 36: body.run(); break;
            case 37: body.run(); break;
            case 38: body.run(); break;
            case 39: body.run(); break;
            case 40: body.run(); break;
            case 41: body.run(); break;
            case 42: body.run(); break;
            case 43: body.run(); break;
            case 44: body.run(); break;
            case 45: body.run(); break;
            case 46: body.run(); break;
            case 47: body.run(); break;
            case 48: body.run(); break;
            case 49: body.run(); break;
            case 50: body.run(); break;
            case 51: body.run(); break;
            case 52: body.run(); break;
            case 53: body.run(); break;
            case 54: body.run(); break;
            case 55: body.run(); break;
            case 56: body.run(); break;
            case 57: body.run(); break;
            case 58: body.run(); break;
            case 59: body.run(); break;
            case 60: body.run(); break;
            case 61: body.run(); break;
            case 62: body.run(); break;
            case 63: body.run(); break;
            default: body.run();
        }
    }

    /** Waits until what the code has handed to other threads has ended; says what has not, or is empty. */
    private static String awaitHanded(long mark, long patience) {
        List<Object> running = new ArrayList<>();
        long start = System.nanoTime();
        boolean isLooked = false;
        while (true) {
            Object[] handed = handed0(mark);
            if (handed == null) {
                return "";
            }
            long tasks = Long.parseLong((String) handed[0]);
            running.addAll(Arrays.asList(handed).subList(1, handed.length));
            running.removeIf(Allocations::isDone);
            if (running.isEmpty() && tasks == 0) {
                // What ended just now may have handed on something before.
                if (isLooked) {
                    return "";
                }
                isLooked = true;
                continue;
            }
            isLooked = false;
            if (System.nanoTime() - start >= patience) {
                return described(running, tasks);
            }
            LockSupport.parkNanos(1_000_000);
        }
    }

    private static boolean isDone(Object handed) {
        if (handed instanceof Thread) {
            return !((Thread) handed).isAlive();
        }
        // Not all of such tasks ever say that they are done: the agent knows which ones run.
        if (handed instanceof ForkJoinTask && hasBegun0(handed)) {
            return true;
        }
        return !(handed instanceof Future) || ((Future<?>) handed).isDone();
    }

    private static String described(List<Object> running, long tasks) {
        StringBuilder text = new StringBuilder();
        long threads = 0;
        for (Object handed : running) {
            if (handed instanceof Thread && threads++ == 0) {
                text.append("a thread that it had started still ran (").append(((Thread) handed).getName()).append(')');
            }
        }
        if (threads > 1) {
            text.append(", and ").append(of(threads - 1, "other thread"));
        }
        if (running.size() > threads || tasks > 0) {
            text.append(text.length() == 0 ? "" : ", and ").append("a task that it had submitted had not ended");
        }
        return text.toString();
    }

    /** The first line is how many events were lost, the second why the counts are not complete; then a line for each context. */
    private static Allocations parsed(String counted, long heapBytes) {
        String[] lines = counted.split("\n", -1);
        long lost = Long.parseLong(lines[0]);
        if (lost > 0) {
            throw new IllegalStateException(of(lost, "event") + " lost meanwhile, in this thread or others: the counts are not exact");
        }
        if (!lines[1].isEmpty()) {
            throw new IllegalStateException("the counts are not complete: " + lines[1]
                + "; Allocations.ofThread, or tasks = false, counts one thread alone");
        }
        List<Place> places = new ArrayList<>();
        for (int i = 2; i < lines.length && !lines[i].isEmpty(); i++) {
            String[] words = lines[i].split(" ", 4);
            long number = Long.parseUnsignedLong(words[0], 16);
            long objects = Long.parseLong(words[1]);
            places.add(new Place(number, type(words[3]), objects, Long.parseLong(words[2]), null));
        }
        return sorted(places, heapBytes);
    }

    private static Allocations sorted(List<Place> places, long heapBytes) {
        places.sort(Comparator.comparingLong(Place::bytes).thenComparingLong(Place::objects).reversed()
            .thenComparing(Place::type).thenComparingLong(Place::number));
        return new Allocations(List.copyOf(places), heapBytes);
    }

    /** {@code [Ljava/lang/String;} is {@code java.lang.String[]}; what follows a space stays. */
    static String type(String descriptor) {
        int space = descriptor.indexOf(' ');
        String name = space < 0 ? descriptor : descriptor.substring(0, space);
        String rest = space < 0 ? "" : descriptor.substring(space);
        int dimensions = 0;
        while (name.startsWith("[", dimensions)) {
            dimensions++;
        }
        String element = name.substring(dimensions);
        return elementType(element) + "[]".repeat(dimensions) + rest;
    }

    private static String elementType(String element) {
        switch (element) {
            case "B":
                return "byte";
            case "C":
                return "char";
            case "D":
                return "double";
            case "F":
                return "float";
            case "I":
                return "int";
            case "J":
                return "long";
            case "S":
                return "short";
            case "Z":
                return "boolean";
            default:
                return element.startsWith("L") && element.endsWith(";")
                    ? element.substring(1, element.length() - 1).replace('/', '.')
                    : element;
        }
    }

    /**
     * Returns only what was allocated in calls of one method. Traces end there. {@link #heapBytes()} stays as it is.
     *
     * @param type the method's class
     * @param method its name
     * @return what was made with a frame of that method in the trace
     */
    public Allocations through(Class<?> type, String method) {
        String[] outermost = {type.getName(), method};
        List<Place> kept = new ArrayList<>();
        for (Place place : places) {
            if (place.comesThrough(outermost)) {
                kept.add(new Place(place.number, place.type, place.objects, place.bytes, outermost));
            }
        }
        return new Allocations(List.copyOf(kept), heapBytes);
    }

    /**
     * Returns how many bytes were allocated.
     *
     * @return the sum over all objects
     */
    public long bytes() {
        return places.stream().mapToLong(Place::bytes).sum();
    }

    /**
     * Returns how many bytes reached the heap, by the VM's own count for the calling thread. Objects that the compiler removes are
     * not in it, so the code must be compiled to show the difference: run it often enough before. What other threads allocate is
     * not in it either.
     *
     * @return the bytes; empty if the VM does not count them, as in virtual threads
     */
    public OptionalLong heapBytes() {
        return heapBytes < 0 ? OptionalLong.empty() : OptionalLong.of(heapBytes);
    }

    /**
     * Returns how many objects were allocated, arrays too.
     *
     * @return the count
     */
    public long objects() {
        return places.stream().mapToLong(Place::objects).sum();
    }

    /**
     * Returns where they were made.
     *
     * @return all places, those of most bytes first
     */
    public List<Place> places() {
        return places;
    }

    /** Returns the sums, and the places with most bytes with their traces. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        text.append(of(bytes(), "byte")).append(" in ").append(of(objects(), "object"));
        for (Place place : places.subList(0, Math.min(SHOWN, places.size()))) {
            text.append('\n').append(place);
        }
        if (places.size() > SHOWN) {
            List<Place> rest = places.subList(SHOWN, places.size());
            long bytes = rest.stream().mapToLong(Place::bytes).sum();
            text.append('\n').append(of(bytes, "byte")).append(" at ").append(of(rest.size(), "other place"));
        }
        return text.toString();
    }

    private static String of(long count, String thing) {
        return String.format(Locale.ROOT, "%,d %s%s", count, thing, count == 1 ? "" : "s");
    }

    /** Exported by the agent's library: null, or why allocations are not counted. */
    private static native String unable0();

    /** A mark; 0 if none can be taken, {@link #TOO_MANY}. */
    private static native long begin0(boolean withTasks);

    /** The call site of {@link #run} for the code of a mark; -1: any. */
    private static native int site0(long mark);

    /** The code of a mark has ended: what this thread does from now on does not count. */
    private static native void stop0(long mark);

    /** Whether a {@link ForkJoinTask} that was submitted has begun to run. */
    private static native boolean hasBegun0(Object task);

    /** A text, how many tasks run, or wait and do not tell so; then threads and tasks that were handed to others since the last call. */
    private static native Object[] handed0(long mark);

    /** What was counted since, see {@link #parsed}; null if the mark is of another thread, or counting has ended. */
    private static native String end0(long mark, boolean leftRunning);

    /** The frames of a number, and of what has submitted the task or started the thread. */
    private static native StackTraceElement[] trace0(long number);
}
