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

/** The context of a frame: from the nearest caller whose context is known, step by step over the calls above it. */
public final class LucceRtContexts {
    private LucceRtContexts() {}

    /** The id of the context of `site` in the frame with slot `p`; 0: unknown. */
    @Hidden
    public static long current(long p, int site) {
        if (!LIVE) return 0;
        return contextId(Thread.currentThread(), p, site);
    }

    static long contextId(Thread t, long p, int site) {
        long counter = findCounter(t, p, site);
        return counter == 0 ? 0 : Memory.U.getLong(counter + COUNTER_CONTEXT);
    }

    /** The current thread's record if slot `p` is one of its own; 0: none. */
    private static long ownState(long p) {
        Thread t = Thread.currentThread();
        return t.$lucceState != 0 && ownsSlot(t, p) ? t.$lucceState : 0;
    }

    /** The context of the frame of method `m` with slot `p`, in which an event happens; 0: unknown. */
    @Hidden
    static long findContext(long p, int m, long index) {
        return findContext(p, m, index, p);
    }

    /**
     * The context of the frame of method `m` with slot `p`, from the nearest known caller; 0: unknown.
     * {@code pointer}: the slot of the running frame, for asking the VM; 0: the VM is not asked.
     */
    @Hidden @DontInline
    static long findContext(long p, int m, long index, long pointer) {
        Unsafe u = Memory.U;
        long a = p;
        int n = m;
        long c;
        for (; ; ) {
            long w = u.getLong(a - SLOT + BASE);
            if ((int) (w >>> TAG_SHIFT) == n) {
                c = u.getLong(a - SLOT + CONTEXT + BASE);
                break;
            }
            int s = (int) w;
            if (s == ENTRY) {
                c = rootContext(ownState(p), n);
                writeMemo(u, a, n, c);
                break;
            }
            if (s == LOST) return 0;
            if (s == VM_ENTRY) {
                // The VM has entered the frame, and nobody has needed the caller yet.
                Thread t = Thread.currentThread();
                if (pointer == 0 || !hasState(t) || !locateVmEntry(t.$lucceState, a - SLOT, pointer, m)) return 0;
                if (index != 0) index = t.$lucceCounters;
                continue;
            }
            if (s == 0) {
                // The frame was entered before the hooks were live: the VM knows its context.
                Thread t = Thread.currentThread();
                if (pointer == 0 || !hasState(t) || !repairSlots(t.$lucceState, a - SLOT, pointer, m)) return 0;
                // If an event happened meanwhile, the thread may have another index.
                if (index != 0) index = t.$lucceCounters;
                continue;
            }
            a -= SLOT;
            n = u.getInt(METHODS + ((long) s << INT_BITS));
        }
        long copies = index == 0 ? 0 : u.getLong(index + INDEX_TRANSITIONS);
        int shift = index == 0 ? 0 : (int) u.getLong(index + INDEX_TRANSITIONS_SHIFT);
        while (a != p && c != 0) {
            int s = u.getInt(a + BASE);
            a += SLOT;
            n = a == p ? m : u.getInt(METHODS + ((long) u.getInt(a + BASE) << INT_BITS));
            c = stepOver(u, c, s, n, copies, shift);
            writeMemo(u, a, n, c);
        }
        return c;
    }

    /** The context of a frame of `callee`, called at `site` of a frame with context `c`. */
    @Hidden
    static long callContext(Thread t, long c, int site, int callee) {
        long index = t.$lucceCounters;
        long copies = index == 0 ? 0 : Memory.U.getLong(index + INDEX_TRANSITIONS);
        int shift = index == 0 ? 0 : (int) Memory.U.getLong(index + INDEX_TRANSITIONS_SHIFT);
        return stepOver(Memory.U, c, site, callee, copies, shift);
    }

    /** Long.rotateLeft has hooks itself if entries are counted. */
    @ForceInline
    static long rotateWord(long word) {
        return word << ROTATION | word >>> 64 - ROTATION;
    }

    @ForceInline
    static void writeMemo(Unsafe u, long a, int n, long c) {
        u.putLong(a - SLOT + CONTEXT + BASE, c);
        u.putInt(a - SLOT + TAG + BASE, c == 0 ? 0 : n);
    }

    /**
     * Steps over one call. {@code copies}: the thread's cache of recent transitions, [key, delta], because the table that
     * all threads share is larger than a processor's caches; 0: none.
     */
    @Hidden @ForceInline
    private static long stepOver(Unsafe u, long c, int site, int callee, long copies, int shift) {
        long place = (long) site << METHOD_BITS | callee;
        long key = transitionKey(u, c, place);
        long e = copies + (key * MULTIPLIER >>> shift << COPY_BITS);
        if (copies != 0 && u.getLong(e) == key) return c + u.getLong(e + COPY_VALUE);
        return stepInGraph(u, c, site, callee, key, copies == 0 ? 0 : e);
    }

    @ForceInline
    private static long transitionKey(Unsafe u, long c, long place) {
        // Plain: it never changes.
        return c >>> (int) u.getLong(tableAddress(GRAPH_VERSION_SHIFT)) << SITE_BITS + METHOD_BITS | place;
    }

    /** The id of the context of events at `site` of a frame with context `c`; 0: the agent must be asked. */
    @ForceInline
    static long findEvent(Unsafe u, long c, int site) {
        long delta = findTransition(u, GRAPH_EVENTS, transitionKey(u, c, (long) site << METHOD_BITS | EVENT_METHOD));
        return delta == 0 || delta == ANCHORING ? 0 : c + delta;
    }

    /** A word of the block. Not a sum of constants, which the Java compiler would fold to a new constant. */
    @ForceInline
    private static long tableAddress(int offset) {
        return TABLES + offset;
    }

    /**
     * The delta of a transition, see callgraph's `RawTables`; 0: there is none, or its table has just moved, and the old
     * memory was freed. {@code offset}: the table's word in the block.
     */
    @ForceInline
    private static long findTransition(Unsafe u, int offset, long key) {
        // Acquire: pairs with the Release in callgraph's `publish_generation`, before which the table was filled.
        long table = u.getLongAcquire(null, tableAddress(offset));
        long slot = key * MULTIPLIER >>> (int) u.getLong(table + TABLE_SHIFT);
        long mask = u.getLong(table + TABLE_MASK);
        for (; ; slot = slot + 1 & mask) {
            long e = table + TABLE_ENTRIES + (slot << TRANSITION_BITS);
            // Acquire: pairs with the Release of the key; its delta was stored before.
            long k = u.getLongAcquire(null, e + TRANSITION_KEY);
            if (k == key) return u.getLong(e + TRANSITION_DELTA);
            if (k == 0) return 0;
        }
    }

    /** The encoder's fast path, see callgraph's `RawTables`. */
    @Hidden @DontInline
    private static long stepInGraph(Unsafe u, long c, int site, int callee, long key, long copy) {
        long delta = findTransition(u, GRAPH_CALLS, key);
        if (delta == 0) return addTransition(c, site, callee);
        if (delta != ANCHORING) {
            if (copy != 0) {
                u.putLong(copy, key);
                u.putLong(copy + COPY_VALUE, delta);
            }
            return c + delta;
        }
        long place = (long) site << METHOD_BITS | callee;
        long table = u.getLongAcquire(null, tableAddress(GRAPH_ANCHORS));
        long slot = (c ^ rotateWord(place)) * MULTIPLIER >>> (int) u.getLong(table + TABLE_SHIFT);
        long mask = u.getLong(table + TABLE_MASK);
        for (long tried = 0; tried <= mask; tried++, slot = slot + 1 & mask) {
            long e = table + TABLE_ENTRIES + slot * ANCHOR_SIZE;
            // Acquire, all three: later reads come after them, so between two equal readings of `to` the entry is
            // consistent.
            long to = u.getLongAcquire(null, e + ANCHOR_TO);
            if (to == 0) break;
            if (u.getLongAcquire(null, e + ANCHOR_CONTEXT) == c
                    && u.getLongAcquire(null, e + ANCHOR_PLACE) == place
                    && u.getLong(e + ANCHOR_TO) == to) return to;
        }
        return addTransition(c, site, callee);
    }
}
