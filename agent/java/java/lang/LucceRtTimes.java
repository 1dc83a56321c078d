package java.lang;

import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtPaths.*;
import static java.lang.LucceRtRequests.*;
import static java.lang.LucceRtVariant.*;
import static java.lang.LucceRtVmEntries.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks of methods whose times are recorded, and histograms of array sizes: see `counting/method_times` in the agent.
 *
 * <p>A thread keeps the methods in progress in a block of its own, innermost last: their number, the block's room, and for
 * each [slot, site, start, number of its context]. A method that calls itself stands there once. A frame that ended without
 * a report is forgotten when a frame with its slot, or with a lower one, begins or ends.
 */
public final class LucceRtTimes {
    private LucceRtTimes() {}

    /** Address of the types of events, by a time's index. */
    static long timeTypes;

    /** At the entry of a method: counts its call, and begins its time. */
    @Hidden @DontInline
    public static void beginTime(long p, int site) {
        if (!LIVE) return;
        long number = countByType(p, site, CALL | NAMED_CALL | NAMED_TIME);
        if (number == 0 || !isCounted(NAMED_TIME)) return;
        Thread t = Thread.currentThread();
        if (t.$lucceState == 0 || !ownsSlot(t, p)) {
            dropEvents(1);
            return;
        }
        Unsafe u = Memory.U;
        long block = u.getLong(t.$lucceState + TIMES_BLOCK);
        long open = block == 0 ? 0 : u.getLong(block);
        while (open > 0 && u.getLong(entry(block, open - 1)) - p >= 0) open--;
        for (long i = open - 1; i >= 0; i--) {
            if (u.getInt(entry(block, i) + TIME_SITE) == site) {
                u.putLong(block, open);
                return;
            }
        }
        if (block == 0 || open == u.getLong(block + WORD)) {
            if (block != 0) u.putLong(block, open);
            block = growTimes(t.$lucceState);
            if (block == 0) return;
        }
        long e = entry(block, open);
        u.putLong(e, p);
        u.putInt(e + TIME_SITE, site);
        u.putLong(e + TIME_NUMBER, number);
        u.putLong(block, open + 1);
        u.putLong(e + TIME_START, System.nanoTime());
    }

    private static long entry(long block, long index) {
        return block + 2 * WORD + (index << TIME_BITS_OF_ENTRY);
    }

    /** The method returns. Its caller continues at slot `p`, also if the caller has no hooks. */
    @Hidden @DontInline
    public static void endTime(long p) {
        if (LIVE) closeTime(p, 0);
        endRequest(p);
    }

    /** The method ends by an exception. */
    @Hidden @DontInline
    public static void endTimeThrown(long p) {
        if (LIVE) closeTime(p, THROWN_TIMES);
        endRequest(p);
    }

    /** As endTime, in a method that the VM may have called. */
    @Hidden @DontInline
    public static void endTimeFromVm(long p) {
        endTime(p);
        exitVm(p);
    }

    @Hidden @DontInline
    public static void endTimeThrownFromVm(long p) {
        endTimeThrown(p);
        exitVm(p);
    }

    /** {@code first}: the index of the shortest time of this kind of end. */
    @Hidden
    private static void closeTime(long p, int first) {
        Unsafe u = Memory.U;
        Thread t = Thread.currentThread();
        if (t.$lucceState == 0) return;
        long block = u.getLong(t.$lucceState + TIMES_BLOCK);
        if (block == 0) return;
        long open = u.getLong(block);
        if (open == 0 || u.getLong(entry(block, open - 1)) - p < 0) return;
        long now = System.nanoTime();
        while (open > 0 && u.getLong(entry(block, open - 1)) - p > 0) open--;
        boolean ends = open > 0 && u.getLong(entry(block, open - 1)) == p;
        if (ends) open--;
        u.putLong(block, open);
        if (!ends || !isCounted(NAMED_TIME)) return;
        long e = entry(block, open);
        long passed = now - u.getLong(e + TIME_START);
        addTime(t, u.getLong(e + TIME_NUMBER), first + powerOf(passed), passed);
    }

    @Hidden
    private static void addTime(Thread t, long number, int index, long passed) {
        Unsafe u = Memory.U;
        long counter = findTimeCounter(t, number, index);
        if (counter == 0) return;
        u.putLong(counter + EVENT_COUNTER_COUNT, u.getLong(counter + EVENT_COUNTER_COUNT) + 1);
        u.putLong(counter + EVENT_COUNTER_VALUE, u.getLong(counter + EVENT_COUNTER_VALUE) + passed);
        if (STREAM) writeToStream(t, u.getInt(counter + EVENT_COUNTER_TYPE), number, passed);
        long longest = findTimeCounter(t, number, LONGEST_TIME);
        if (longest != 0 && passed >= u.getLong(longest + EVENT_COUNTER_VALUE)) {
            u.putLong(longest + EVENT_COUNTER_COUNT, 1);
            u.putLong(longest + EVENT_COUNTER_VALUE, passed);
        }
    }

    /** With `alloc=sizes`: counts an array of this size in the context. */
    @Hidden @DontInline
    static void addSize(Thread t, long number, long bytes) {
        long counter = findTimeCounter(t, number, FIRST_SIZE + powerOf(bytes));
        if (counter == 0) return;
        Unsafe u = Memory.U;
        u.putLong(counter + EVENT_COUNTER_COUNT, u.getLong(counter + EVENT_COUNTER_COUNT) + 1);
        u.putLong(counter + EVENT_COUNTER_VALUE, u.getLong(counter + EVENT_COUNTER_VALUE) + bytes);
    }

    /** The thread's counter for times with this index in the context; 0: the log is full. */
    @Hidden
    private static long findTimeCounter(Thread t, long number, int index) {
        Unsafe u = Memory.U;
        // Plain: a type is stored once, after the log has explained it. Without it the agent is asked.
        int type = u.getInt(timeTypes + ((long) index << INT_BITS));
        long counters = t.$lucceCounters;
        long byType = type == 0 || counters == 0 ? 0 : u.getLong(counters + INDEX_BY_TYPE);
        long counter = byType == 0 ? 0 : findInIndex(u, byType, number, type);
        if (counter != 0) return counter;
        counter = addTimeCounter(t.$lucceState, number, index);
        t.$lucceCounters = u.getLong(t.$lucceState + STATE_INDEX);
        return counter;
    }

    /** The position of the highest bit. Methods of Long may have hooks themselves. */
    private static int powerOf(long value) {
        int power = 0;
        for (int step = 32; step != 0; step >>= 1) {
            if (value >>> step != 0) {
                value >>>= step;
                power += step;
            }
        }
        return power;
    }
}
