package java.lang;

import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtPaths.*;
import static java.lang.LucceRtTimes.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * With a budget for hooks: of the allocations on a frequent call path, one in 2^level counts, for all of them.
 *
 * <p>A thread's table has a line for each hash of a call path of four sites. The allocations of a line form blocks of
 * 2^level. Of each block one counts, at a random position, so each has the same probability. A block has its level
 * before its first allocation; the thread's sums are therefore unbiased however levels change. The variance of a sum is
 * at most that of independent choices, which counters of their own keep for each context.
 *
 * <p>A line starts at level 0, where all allocations count. Its level grows with the number of counted ones, up to the
 * level that the agent chooses for the process. So rare paths stay exact, unless a frequent one has the same line.
 */
final class LucceRtThinning {
    private LucceRtThinning() {}

    /**
     * Counts an allocation, or leaves it out. Returns the address of its counter if the frame may keep it; 0: it may not.
     * An allocation of a higher level must not be kept: which ones belong to the next block would depend on chance.
     */
    @Hidden @DontInline
    static long countThinned(Thread t, long p, int site, long bytes, int returned, int mask) {
        Unsafe u = Memory.U;
        long index = t.$lucceCounters;
        long table = index == 0 || bytes > LARGEST_THINNED ? 0 : u.getLong(index + INDEX_PATHS_SHIFT) & -1L << SHIFT_BITS;
        if (table == 0) return countExactly(t, p, site, bytes, returned, mask);
        long line = findLine(table, p, site);
        long w = u.getLong(line);
        if ((w & (1 << THINNING_LEFT_BITS) - 1) == 0) return countDue(t, p, site, bytes, returned, mask, table, line);
        u.putLong(line, w - 1);
        return 0;
    }

    @Hidden
    private static long countExactly(Thread t, long p, int site, long bytes, int returned, int mask) {
        long counter = findCounter(t, p, site);
        if (counter != 0) countIn(t, counter, bytes, returned, mask);
        return counter;
    }

    /** The line of the sites of the allocation and of at most three calls. */
    @ForceInline
    private static long findLine(long table, long p, int site) {
        Unsafe u = Memory.U;
        int first = u.getInt(p - SLOT + BASE), second = 0, third = 0;
        if (isCallSite(first)) {
            second = u.getInt(p - 2 * SLOT + BASE);
            if (isCallSite(second)) third = u.getInt(p - 3 * SLOT + BASE);
        }
        long sites = (long) first << 32 | site;
        long callers = (long) third << 32 | second;
        long hash = sites * MULTIPLIER + callers * SECOND_MULTIPLIER;
        return table + THINNING_HEADER + (hash >>> 64 - THINNING_LINES) * WORD;
    }

    /** Counts the chosen allocation of a block, and chooses that of the line's next block. */
    @Hidden @DontInline
    private static long countDue(Thread t, long p, int site, long bytes, int returned, int mask, long table, long line) {
        Unsafe u = Memory.U;
        long w = u.getLong(line);
        int level = (int) (w >>> THINNING_LEFT_BITS) & (1 << THINNING_LEVEL_BITS) - 1;
        // Before anything that may run other code: its allocations may be of the same line.
        long counted = chooseNext(table, line, w);
        boolean reports = (counted & (1 << REPORT_BITS) - 1) == 0;
        long start = reports ? System.nanoTime() : 0;
        long kept = 0;
        if (level == 0) {
            kept = countExactly(t, p, site, bytes, returned, mask);
        } else {
            countBlock(t, p, site, bytes, returned, level);
        }
        if (reports && t.$lucceState != 0) followLoad(t.$lucceState, level, System.nanoTime() - start);
        return kept;
    }

    /** Returns the number of the line's counted allocations. */
    private static long chooseNext(long table, long line, long w) {
        Unsafe u = Memory.U;
        long rest = w >>> THINNING_LEFT_BITS + THINNING_LEVEL_BITS & (1 << THINNING_REST_BITS) - 1;
        int countedShift = THINNING_LEFT_BITS + THINNING_LEVEL_BITS + THINNING_REST_BITS;
        long counted = (w >>> countedShift) + 1;
        // The number would not fit. Half of it is of the same level, and of the same turn of reports.
        if (counted >>> 64 - countedShift != 0) counted >>>= 1;
        int level = u.getIntOpaque(null, levelOffset() + BASE), most = powerOf(counted >>> RARE_EVENT_BITS);
        if (level > most) level = most;
        long position = level == 0 ? 0 : nextRandom(table) >>> 64 - level;
        long after = (1L << level) - 1 - position;
        u.putLong(line, counted << countedShift | after << THINNING_LEFT_BITS + THINNING_LEVEL_BITS
                | (long) level << THINNING_LEFT_BITS | rest + position);
        return counted;
    }

    /** Not a constant for the Java compiler, which would add it to BASE. */
    @ForceInline
    private static long levelOffset() {
        return -THINNING_LEVEL;
    }

    /** Marsaglia's xorshift64*: its high bits are the best. */
    private static long nextRandom(long table) {
        Unsafe u = Memory.U;
        long x = u.getLong(table);
        x ^= x >>> 12;
        x ^= x << 25;
        x ^= x >>> 27;
        u.putLong(table, x);
        return x * RANDOM_MULTIPLIER;
    }

    /** Counts an allocation for its whole block. */
    @Hidden
    private static void countBlock(Thread t, long p, int site, long bytes, int returned, int level) {
        long counter = findCounter(t, p, site);
        if (counter == 0) return;
        Unsafe u = Memory.U;
        long objects = 1L << level;
        // Bytes first: in the log of a killed JVM, objects have at least the bytes of the smallest arrays.
        if (bytes != 0) u.putLong(counter + COUNTER_BYTES, u.getLong(counter + COUNTER_BYTES) + objects * bytes);
        u.putLong(counter + COUNTER_COUNT, u.getLong(counter + COUNTER_COUNT) + objects);
        long number = u.getLong(counter + COUNTER_CONTEXT);
        if (number == 0) return;
        long variances = findTimeCounter(t, number, THINNING_VARIANCE);
        if (variances != 0) {
            long variance = objects * (objects - 1), words = bytes / OBJECT_ALIGNMENT;
            u.putLong(variances + EVENT_COUNTER_COUNT, u.getLong(variances + EVENT_COUNTER_COUNT) + variance);
            if (bytes != 0) u.putLong(variances + EVENT_COUNTER_VALUE, u.getLong(variances + EVENT_COUNTER_VALUE) + variance * words * words);
        }
        if (VERIFY) verifyContext(t, number, returned);
    }
}
