package java.lang;

import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtPaths.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** Counts events: in the counters that the thread's log pages hold, and in the stream. */
class LucceRtCounting {
    /** Opaque: a loop that counts nothing must read it again. No other read depends on it, so it needs no order. */
    @ForceInline
    static boolean isCounted(int kind) {
        return (eventMask() & kind) != 0;
    }

    @ForceInline
    private static int eventMask() {
        return Memory.U.getIntOpaque(null, maskOffset() + BASE);
    }

    /** Not a constant for the Java compiler, which would add it to BASE. */
    @ForceInline
    private static long maskOffset() {
        return -EVENT_MASK;
    }

    /** Whether allocations are worth a look at their object. */
    @ForceInline
    static boolean takesAllocations() {
        return isCounted(ALLOC);
    }

    /**
     * Counts an allocation. {@code returned}: number of frames that have returned, on whose behalf the event is counted.
     *
     * <p>Not inlined: it would be most of the code of methods that allocate.
     */
    @Hidden @DontInline
    static void countAllocation(long p, int site, long bytes, int returned) {
        int mask = eventMask();
        if ((mask & ALLOC) == 0) return;
        Thread t = Thread.currentThread();
        long counter = findCounter(t, p, site);
        if (counter != 0) countIn(t, counter, bytes, returned, mask);
    }

    @Hidden @ForceInline
    private static void countIn(Thread t, long counter, long bytes, int returned, int mask) {
        Unsafe u = Memory.U;
        addTo(u, counter, bytes);
        if (bytes != 0 && (mask & ALLOC_SIZES) != 0) LucceRtTimes.addSize(t, u.getLong(counter + COUNTER_CONTEXT), bytes);
        if (STREAM) writeToStream(t, 0, u.getLong(counter + COUNTER_CONTEXT), bytes);
        if (VERIFY) verifyContext(t, u.getLong(counter + COUNTER_CONTEXT), returned);
    }

    @ForceInline
    private static void addTo(Unsafe u, long counter, long bytes) {
        u.putLong(counter + COUNTER_COUNT, u.getLong(counter + COUNTER_COUNT) + 1);
        if (bytes != 0) u.putLong(counter + COUNTER_BYTES, u.getLong(counter + COUNTER_BYTES) + bytes);
    }

    /**
     * Counts an allocation in a loop. {@code kept}: what this method last returned for this site and this frame, 0: nothing.
     *
     * <p>A frame's context is the same as long as the frame exists; methods in which it may change do not call this. So
     * the counter depends on the thread's counters alone, which have a number. Their counters stay where they are.
     */
    @Hidden @ForceInline
    static long countKeeping(long p, int site, long bytes, long kept) {
        long state = Thread.currentThread().$lucceState;
        if (STREAM || VERIFY || state == 0 || (eventMask() & (ALLOC | ALLOC_SIZES)) != ALLOC) return countAndKeep(p, site, bytes, kept);
        Unsafe u = Memory.U;
        long counter = kept - u.getLong(state + STATE_KEPT);
        if (counter >>> KEPT_SHIFT != 0) return countAndKeep(p, site, bytes, kept);
        addTo(u, counter << COUNTER_ALIGNMENT_BITS, bytes);
        return kept;
    }

    /** As above, for an event that is more than a count, or whose counter is not kept. */
    @Hidden @DontInline
    private static long countAndKeep(long p, int site, long bytes, long kept) {
        int mask = eventMask();
        if ((mask & ALLOC) == 0) return kept;
        Thread t = Thread.currentThread();
        long counter = t.$lucceState == 0 ? -1 : kept - Memory.U.getLong(t.$lucceState + STATE_KEPT);
        if (counter >>> KEPT_SHIFT == 0) {
            counter <<= COUNTER_ALIGNMENT_BITS;
        } else {
            counter = findCounter(t, p, site);
            if (counter == 0) return 0;
            long number = Memory.U.getLong(t.$lucceState + STATE_KEPT);
            long part = counter >>> COUNTER_ALIGNMENT_BITS;
            kept = number == NOT_KEPT || part >>> KEPT_SHIFT != 0 ? 0 : number + part;
        }
        countIn(t, counter, bytes, 0, mask);
        return kept;
    }

    /** Counts the entry of the method with slot `p`. */
    @Hidden @ForceInline
    static void countEntry(long p, int site) {
        if (LIVE) countByType(p, site, CALL | NAMED_CALL | NAMED_TIME);
    }

    /**
     * As countEntry, in a thread's first method. It is not compared with the VM's trace: while the thread is being mounted,
     * such a request would wait forever.
     */
    @Hidden @ForceInline
    static void countFirstEntry(long p, int site) {
        if (LIVE) countByTypeUnverified(Thread.currentThread(), p, site, CALL | NAMED_CALL | NAMED_TIME);
    }

    /** Counts an event of a kind with one type per site. Returns the context id, 0: unknown. */
    @Hidden
    static long countByType(long p, int site, int kind) {
        Thread t = Thread.currentThread();
        long number = countByTypeUnverified(t, p, site, kind);
        if (VERIFY && number != 0) verifyContext(t, number, 0);
        return number;
    }

    @Hidden
    static long countByTypeUnverified(Thread t, long p, int site, int kind) {
        if (!isCounted(kind)) return 0;
        long counter = findCounter(t, p, site);
        if (counter == 0) return 0;
        Unsafe u = Memory.U;
        u.putLong(counter + EVENT_COUNTER_COUNT, u.getLong(counter + EVENT_COUNTER_COUNT) + 1);
        long number = u.getLong(counter + COUNTER_CONTEXT);
        if (STREAM) writeToStream(t, u.getInt(counter + EVENT_COUNTER_TYPE), number, 0);
        return number;
    }

    /**
     * Writes a counted event to the stream; see module `layout` of the crate `lucce-stream`. Dropped events have no
     * context id.
     */
    @Hidden
    static void writeToStream(Thread t, int type, long number, long value) {
        if (number == 0) return;
        Unsafe u = Memory.U;
        long place = t.$lucceState + STREAM_CURSOR;
        // The stream is full; the clock is not read.
        if (u.getLong(place + PLACE_END) < 0) return;
        long now = System.nanoTime();
        long passed = now - u.getLong(place + PLACE_CLOCK);
        if (isStreamFull(place) || passed >>> TIME_BITS != 0) {
            makeStreamRoom(t.$lucceState, now);
            if (isStreamFull(place)) return;
            passed = now - u.getLong(place + PLACE_CLOCK);
        }
        long at = u.getLong(place + PLACE_NEXT);
        long head = (long) type << TIME_BITS | passed;
        int length = 2 * WORD;
        u.putLong(at + WORD, number);
        if (value != 0) {
            u.putLong(at + 2 * WORD, value);
            head |= HAS_VALUE;
            length = 3 * WORD;
        }
        u.putLongRelease(null, at, head);
        u.putLong(place + PLACE_NEXT, at + length);
    }

    @Hidden @ForceInline
    private static boolean isStreamFull(long place) {
        Unsafe u = Memory.U;
        return u.getLong(place + PLACE_NEXT) + LONGEST > u.getLong(place + PLACE_END);
    }

    /** Compares the context id of every N-th event with the VM's own stack trace. */
    static void verifyContext(Thread t, long number, int returned) {
        long left = t.$lucceState + STATE_VERIFY_COUNTDOWN;
        int n = Memory.U.getInt(left) - 1;
        Memory.U.putInt(left, n);
        if (n <= 0) compareContext(t.$lucceState, number, returned);
    }
}
