package io.lucce;

import java.util.Optional;

/**
 * What the calling thread allocates, and how long it waits, between two places of its code: for code that cannot be put into one
 * call as {@link Allocations#ofThread} wants it.
 *
 * <pre>{@code
 * ThreadCounts.Measurement measurement = ThreadCounts.begin();
 * handle(request);
 * measurement.end().ifPresent(counts -> request.report(counts.bytes()));
 * }</pre>
 *
 * <p>The counts are exact. What other threads do is not in them, even if the code has started them. A measurement copies the
 * thread's counters, so it takes a time in proportion to the thread's contexts: some hundred microseconds for thousands.
 *
 * <p>Waits are those of the agent's option {@code events=lock}: contended monitors, {@code Object.wait}, parking.
 */
public final class ThreadCounts {
    static {
        if (CallContext.isActive()) {
            // The VM looks for a native method at its first call, which allocates. No mark is 0.
            end0(0);
        }
    }

    private final long objects;
    private final long bytes;
    private final long waits;
    private final long waitNanos;
    private final long lost;

    private ThreadCounts(String counted) {
        String[] words = counted.split(" ");
        objects = Long.parseLong(words[0]);
        bytes = Long.parseLong(words[1]);
        waits = Long.parseLong(words[2]);
        waitNanos = Long.parseLong(words[3]);
        lost = Long.parseLong(words[4]);
    }

    /**
     * Begins to count what the calling thread does.
     *
     * @return what ends it; if allocations cannot be counted in this thread ({@link Allocations#unavailable()}), its result is
     *     empty
     */
    public static Measurement begin() {
        if (!CallContext.isActive()) {
            return Measurement.NONE;
        }
        Measurement measurement = new Measurement();
        // From here on nothing of ours allocates.
        measurement.mark = begin0();
        return measurement;
    }

    /** A measurement that goes on: see {@link ThreadCounts#begin()}. */
    public static final class Measurement {
        private static final Measurement NONE = new Measurement();

        private final Thread owner = Thread.currentThread();
        /** 0: none, or ended. */
        private long mark;

        private Measurement() {}

        /**
         * Ends the measurement.
         *
         * @return what this thread has done since it began; empty if that was not counted, if the measurement has ended
         *     before, or if another thread than the one that began it makes this call
         */
        public synchronized Optional<ThreadCounts> end() {
            long ended = mark;
            mark = 0;
            if (ended == 0) {
                return Optional.empty();
            }
            String counted = end0(ended);
            boolean isOwn = Thread.currentThread() == owner;
            return isOwn && counted != null ? Optional.of(new ThreadCounts(counted)) : Optional.empty();
        }
    }

    /**
     * Returns how many objects were allocated.
     *
     * @return the count, arrays included
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
     * Returns how often the thread has waited.
     *
     * @return the number of waits that have ended
     */
    public long waits() {
        return waits;
    }

    /**
     * Returns how long the thread has waited.
     *
     * @return the sum in nanoseconds
     */
    public long waitNanos() {
        return waitNanos;
    }

    /**
     * Returns how many events were lost meanwhile, in this thread or others.
     *
     * @return the number; above 0 the counts may be too small
     */
    public long lost() {
        return lost;
    }

    /** Exported by the agent's library: a mark; 0 if none can be taken. */
    private static native long begin0();

    /** Objects, bytes, waits, nanoseconds and lost events; null: the mark is not of this thread, or counting has ended. */
    private static native String end0(long mark);
}
