package java.lang;

import static java.lang.LucceRtContexts.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** The counter of an event at a site in a frame: by a cache of recent call paths, or by the thread's index. */
public class LucceRtPaths {
    LucceRtPaths() {}

    /**
     * This thread's counter for events at `site`: [number, count, bytes], or by type
     * [number, type, count, value]; 0: unknown.
     *
     * <p>Most events repeat a recent call path: from a frame with a known context, over the same calls. The thread caches
     * such paths, each in a cache line of its own:
     *
     * <pre>
     *                long the known context; 0: an empty line
     * PATH_SITES     int  the event's site,               int the last call's site, 0: none
     * PATH_CALLERS   int  the site of the call before it, int of the one before that
     * PATH_COUNTER   long the counter's address
     * PATH_CONTEXTS  long contexts of the called frames, the last one first: 3
     * </pre>
     */
    @Hidden @ForceInline
    static long findCounter(Thread t, long p, int site) {
        Unsafe u = Memory.U;
        int m = u.getInt(METHODS + ((long) site << INT_BITS));
        long w = u.getLong(p - SLOT + BASE);
        if (t.$lucceCounters == 0) {
            long c = (int) (w >>> TAG_SHIFT) == m ? u.getLong(p - SLOT + CONTEXT + BASE) : findContext(p, m, 0);
            return findContextCounter(t, c, site);
        }
        // The frames from here to the nearest caller with a known context, at most three.
        long a = p;
        int first = 0, second = 0, third = 0, n = m;
        if ((int) (w >>> TAG_SHIFT) != n) {
            first = (int) w;
            if (!isCallSite(first)) return findContextCounter(t, findContext(p, m, t.$lucceCounters), site);
            a -= SLOT;
            n = u.getInt(METHODS + ((long) first << INT_BITS));
            w = u.getLong(a - SLOT + BASE);
            if ((int) (w >>> TAG_SHIFT) != n) {
                second = (int) w;
                if (!isCallSite(second)) return findContextCounter(t, findContext(p, m, t.$lucceCounters), site);
                a -= SLOT;
                n = u.getInt(METHODS + ((long) second << INT_BITS));
                w = u.getLong(a - SLOT + BASE);
                if ((int) (w >>> TAG_SHIFT) != n) {
                    third = (int) w;
                    if (!isCallSite(third)) return findContextCounter(t, findContext(p, m, t.$lucceCounters), site);
                    a -= SLOT;
                    n = u.getInt(METHODS + ((long) third << INT_BITS));
                    w = u.getLong(a - SLOT + BASE);
                    // Further up the callers: findContext makes it known.
                    if ((int) (w >>> TAG_SHIFT) != n && (!isCallSite((int) w) || findContext(a, n, t.$lucceCounters, 0) == 0)) {
                        return findContextCounter(t, findContext(p, m, t.$lucceCounters), site);
                    }
                }
            }
        }
        long c = u.getLong(a - SLOT + CONTEXT + BASE);
        long sites = (long) first << 32 | site;
        long callers = (long) third << 32 | second;
        long hash = c * MULTIPLIER + sites * SECOND_MULTIPLIER + callers * THIRD_MULTIPLIER;
        long index = t.$lucceCounters;
        long e = u.getLong(index + INDEX_PATHS) + (hash >>> (int) u.getLong(index + INDEX_PATHS_SHIFT) << PATH_BITS);
        if (u.getLong(e) != c || u.getLong(e + PATH_SITES) != sites || u.getLong(e + PATH_CALLERS) != callers) {
            return addPath(t, p, m, site, c, sites, callers);
        }
        if (first != 0) {
            writeMemo(u, p, m, u.getLong(e + PATH_CONTEXTS));
            if (second != 0) {
                writeMemo(u, p - SLOT, u.getInt(METHODS + ((long) first << INT_BITS)), u.getLong(e + (PATH_CONTEXTS + 8)));
                if (third != 0) writeMemo(u, p - 2 * SLOT, u.getInt(METHODS + ((long) second << INT_BITS)), u.getLong(e + (PATH_CONTEXTS + 16)));
            }
        }
        return u.getLong(e + PATH_COUNTER);
    }

    /** Whether a slot's site is a call site. */
    @ForceInline
    static boolean isCallSite(int site) {
        return site != 0 && site != ENTRY && site != LOST && site != VM_ENTRY;
    }

    /** As the method above, for a call path that the thread has not cached; caches it. */
    @Hidden @DontInline
    static long addPath(Thread t, long p, int m, int site, long c, long sites, long callers) {
        Unsafe u = Memory.U;
        boolean here = sites >>> 32 == 0;
        long counter = findContextCounter(t, here ? c : findContext(p, m, t.$lucceCounters), site);
        if (counter == 0) return 0;
        long index = t.$lucceCounters;
        long hash = c * MULTIPLIER + sites * SECOND_MULTIPLIER + callers * THIRD_MULTIPLIER;
        long e = u.getLong(index + INDEX_PATHS) + (hash >>> (int) u.getLong(index + INDEX_PATHS_SHIFT) << PATH_BITS);
        // Invalid until it is complete: an exception may interrupt the writes.
        u.putLong(e, 0);
        u.putLong(e + PATH_SITES, sites);
        u.putLong(e + PATH_CALLERS, callers);
        u.putLong(e + PATH_COUNTER, counter);
        if (!here) u.putLong(e + PATH_CONTEXTS, u.getLong(p - SLOT + CONTEXT + BASE));
        if ((int) callers != 0) u.putLong(e + (PATH_CONTEXTS + 8), u.getLong(p - 2 * SLOT + CONTEXT + BASE));
        if (callers >>> 32 != 0) u.putLong(e + (PATH_CONTEXTS + 16), u.getLong(p - 3 * SLOT + CONTEXT + BASE));
        u.putLong(e, c);
        return counter;
    }

    /**
     * This thread's counter for events at `site` in the context `c`. An entry of the index is [context, low bits of the
     * site | counter]. A context belongs to one method, whose sites are consecutive, so the low bits distinguish them.
     */
    @Hidden @DontInline
    static long findContextCounter(Thread t, long c, int site) {
        long index = t.$lucceCounters;
        long counter = index == 0 ? 0 : findInIndex(Memory.U, index, c, site);
        return counter != 0 ? counter : addCounter(t, c, site);
    }

    /** The counter in an index for a context and a site, or for a context id and a type; 0: none. */
    @ForceInline
    static long findInIndex(Unsafe u, long index, long c, int low) {
        long slot = firstSlot(u, index, c, low);
        long mask = u.getLong(index + TABLE_MASK);
        for (; ; slot = slot + 1 & mask) {
            long e = index + TABLE_ENTRIES + (slot << INDEX_ENTRY_BITS);
            long found = u.getLong(e);
            if (found == c) {
                long at = u.getLong(e + INDEX_COUNTER);
                if ((int) (at >>> 64 - LOW_SITE_BITS) == (low & (1 << LOW_SITE_BITS) - 1)) {
                    return at << LOW_SITE_BITS >>> LOW_SITE_BITS - COUNTER_ALIGNMENT_BITS;
                }
            }
            if (found == 0) return 0;
        }
    }

    /** Where an index has an entry, or the next one of those that follow without a gap. */
    @ForceInline
    private static long firstSlot(Unsafe u, long index, long c, int low) {
        return (c ^ (long) low << 64 - LOW_SITE_BITS) * MULTIPLIER >>> (int) u.getLong(index + TABLE_SHIFT);
    }

    @Hidden @DontInline
    private static long addCounter(Thread t, long c, int site) {
        if (c == 0) {
            dropEvents(1);
            return 0;
        }
        long counter = addKnownCounter(t, c, site);
        if (counter != 0) return counter;
        if (!hasState(t)) return 0;
        counter = insertCounter(t.$lucceState, c, site);
        t.$lucceCounters = Memory.U.getLong(t.$lucceState + STATE_INDEX);
        return counter;
    }

    /**
     * Adds a counter that the index lacks, without a call of the agent. 0: the agent must add it.
     *
     * <p>The agent marks sites whose counters need nothing else, and makes room: counters of the log, and entries of the
     * index. An exception that interrupts the writes leaves a counter without events.
     */
    @ForceInline
    private static long addKnownCounter(Thread t, long c, int site) {
        Unsafe u = Memory.U;
        long index = t.$lucceCounters;
        long state = t.$lucceState;
        if (index == 0 || state == 0 || u.getLong(state + STATE_INDEX) != index) return 0;
        long room = u.getLong(state + STATE_ROOM);
        long counter = u.getLong(room + ROOM_NEXT);
        if (counter == u.getLong(room + ROOM_END)) return 0;
        // Acquire: pairs with the Release of the mark, before which the log got what explains the site's events.
        long marks = u.getLongAcquire(null, METHODS - ((long) (site >>> WORD_SITES_BITS) + 1) * WORD);
        if ((marks >>> site & 1) == 0) return 0;
        long number = findEvent(u, c, site);
        if (number == 0) return 0;
        u.putLong(room + ROOM_NEXT, counter + COUNTER_SIZE);
        // Release: a reader of the log who sees the number sees the records that explain it.
        u.putLongRelease(null, counter + COUNTER_CONTEXT, number);
        long slot = firstSlot(u, index, c, site);
        long mask = u.getLong(index + TABLE_MASK);
        long e = index + TABLE_ENTRIES + (slot << INDEX_ENTRY_BITS);
        while (u.getLong(e) != 0) {
            slot = slot + 1 & mask;
            e = index + TABLE_ENTRIES + (slot << INDEX_ENTRY_BITS);
        }
        u.putLong(e + INDEX_COUNTER, (long) site << 64 - LOW_SITE_BITS | counter >>> COUNTER_ALIGNMENT_BITS);
        u.putLong(e, c);
        return counter;
    }
}
