package java.lang;

import static java.lang.LucceRtContexts.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** The slots' contents in the modes for comparison: `tracking=cct` and `tracking=paper`. */
final class LucceRtComparison {
    /** With PAPER: address of its graph, see `comparison/paper_tracking` in the agent. */
    static long graph;
    /** With PAPER: distance from a slot to its second part. */
    static long beside;

    private LucceRtComparison() {}

    // ---- look-ups at entry, for comparison ------------------------------------------------------------

    /** Method `m` was entered; its slot is `p`. */
    @Hidden
    static void enterFrame(Thread t, long p, int m) {
        if (p >>> SCRATCH_BITS == 0 || t.$lucceState == 0 && !isFromBoot(t, p)) return;
        Unsafe u = Memory.U;
        int s = u.getInt(p - SLOT + BASE);
        int caller = u.getInt(METHODS + ((long) s << INT_BITS));
        // Otherwise the caller is a frame without look-up, such as a native one.
        boolean known = caller != 0 && u.getInt(p - 2 * SLOT + TAG + BASE) == caller;
        if (TREE) {
            if (known) {
                writeMemo(u, p, m, child(u, u.getLong(p - 2 * SLOT + CONTEXT + BASE), s, m));
            } else {
                findNode(p, m);
            }
        } else if (known) {
            enterCallee(u, p, s, caller, m);
        } else {
            enterFrames(p, m);
        }
    }

    /** The context of the frame with slot `p` that contains `site`; 0: unknown. */
    @Hidden
    static long context(Thread t, long p, int site) {
        if (TREE && !ownsSlot(t, p)) return 0;
        Unsafe u = Memory.U;
        int m = u.getInt(METHODS + ((long) site << INT_BITS));
        if (PAPER) return number(u, p, m);
        boolean known = u.getInt(p - SLOT + TAG + BASE) == m;
        return known ? u.getLong(p - SLOT + CONTEXT + BASE) : findNode(p, m);
    }

    /** Only threads from before the start lack a record. Ended threads get none. */
    @Hidden @DontInline
    private static boolean isFromBoot(Thread t, long p) {
        return p - bootStacksEnd < 0 && hasState(t);
    }

    // ---- a calling context tree per thread, for comparison -----------------------------------------
    //
    // A node's number is in place of a context id. Only its own thread can interpret it.

    /** The current thread's node for `callee`, called at `site` in `node`; 0: no room. See `comparison/thread_tree`. */
    @Hidden
    static long child(Unsafe u, long node, int site, int callee) {
        long ts = Thread.currentThread().$lucceState;
        if (ts == 0) return 0;
        long table = u.getLong(ts + STATE_TREE);
        if (table == 0) return addChild(ts, node, site, callee);
        long place = (long) site << METHOD_BITS | callee;
        long slot = (place ^ rotateWord(node)) * MULTIPLIER >>> (int) u.getLong(table + TABLE_SHIFT);
        long mask = u.getLong(table + TABLE_MASK);
        for (; ; slot = slot + 1 & mask) {
            long e = table + TABLE_ENTRIES + (slot << TREE_ENTRY_BITS);
            long k = u.getLong(e);
            if (k == place && u.getInt(e + TREE_PARENT) == (int) node) return u.getInt(e + TREE_CHILD);
            if (k == 0) return addChild(ts, node, site, callee);
        }
    }

    /** The node of the frame of method `m` with slot `p`, from the nearest caller with a known one; 0: unknown. */
    @Hidden @DontInline
    private static long findNode(long p, int m) {
        Unsafe u = Memory.U;
        long a = p;
        int n = m;
        long node;
        for (; ; ) {
            long w = u.getLong(a - SLOT + BASE);
            if ((int) (w >>> TAG_SHIFT) == n) {
                node = u.getLong(a - SLOT + CONTEXT + BASE);
                break;
            }
            int s = (int) w;
            if (s == ENTRY) {
                node = child(u, 0, ENTRY, n);
                writeMemo(u, a, n, node);
                break;
            }
            if (s == LOST) return 0;
            if (s == 0) {
                // The frame was entered before the hooks were live: the VM knows its context.
                Thread t = Thread.currentThread();
                if (!hasState(t) || !repairSlots(t.$lucceState, a - SLOT, p, m)) return 0;
                continue;
            }
            a -= SLOT;
            n = u.getInt(METHODS + ((long) s << INT_BITS));
        }
        while (a != p && node != 0) {
            int s = u.getInt(a + BASE);
            a += SLOT;
            n = a == p ? m : u.getInt(METHODS + ((long) u.getInt(a + BASE) << INT_BITS));
            node = child(u, node, s, n);
            writeMemo(u, a, n, node);
        }
        return node;
    }

    // ---- the paper's scheme, for comparison -----------------------------------------------------------
    //
    // A frame's callId is in its caller's slot, in place of a context id. The second part of the slot has the
    // version, and the id that lucce's graph has for the context (0: not looked up yet). callId LOST_CALL: it does
    // not fit a long; with version 0 also: the caller is unknown.

    // The paper's graph is read between two equal readings of UPDATES. Its table's address is acquired, since the table
    // is behind it.

    /** The frame with slot `p` was entered, and before it the frames without a hook at entry. */
    @Hidden @DontInline
    private static void enterFrames(long p, int m) {
        Unsafe u = Memory.U;
        long a = p;
        int n = m;
        for (; ; ) {
            long w = u.getLong(a - SLOT + BASE);
            if ((int) (w >>> TAG_SHIFT) == n) break;
            int s = (int) w;
            if (s == ENTRY) {
                updateGraph(a, s, n);
                break;
            }
            if (s == LOST) {
                storeLocals(u, a, n, LOST_CALL, 0);
                break;
            }
            if (s == 0) {
                Thread t = Thread.currentThread();
                if (!hasState(t) || !repairSlots(t.$lucceState, a - SLOT, p, m)) return;
                continue;
            }
            a -= SLOT;
            n = u.getInt(METHODS + ((long) s << INT_BITS));
        }
        while (a != p) {
            int s = u.getInt(a + BASE);
            a += SLOT;
            int caller = n;
            n = a == p ? m : u.getInt(METHODS + ((long) u.getInt(a + BASE) << INT_BITS));
            enterCallee(u, a, s, caller, n);
        }
    }

    /**
     * Algorithm 1 without changes of the graph; changes are made in the agent, under a lock. See
     * `comparison/paper_tracking`.
     */
    @Hidden
    private static void enterCallee(Unsafe u, long p, int site, int caller, int callee) {
        long c = u.getLong(p - 2 * SLOT + CONTEXT + BASE);
        long v = u.getLong(p - 2 * SLOT + BASE + beside + BESIDE_VERSION);
        if (v == 0) {
            storeLocals(u, p, callee, LOST_CALL, 0);
            return;
        }
        long g = graph;
        long updates = u.getLongAcquire(null, g + PAPER_UPDATES);
        long nodes = u.getLong(g + PAPER_NODES);
        if ((updates & 1) == 0 && u.getLong(nodes + ((long) caller << NODE_BITS) + NODE_VERSION) == v) {
            long inputs = u.getLong(nodes + ((long) callee << NODE_BITS) + NODE_INPUTS);
            // Acquire: pairs with the Release of the address. The table may be newer than `updates`; its size is used
            // before `updates` is read again.
            long table = u.getLongAcquire(null, g + PAPER_TABLE);
            long place = (long) site << METHOD_BITS | callee;
            long slot = place * MULTIPLIER >>> (int) u.getLong(table + TABLE_SHIFT);
            long mask = u.getLong(table + TABLE_MASK);
            for (; ; slot = slot + 1 & mask) {
                long e = table + TABLE_ENTRIES + (slot << EDGE_ENTRY_BITS);
                long k = u.getLong(e);
                if (k == 0) break;
                if (k != place) continue;
                long av = u.getLong(e + EDGE_ADDITION);
                long now = u.getLong(g + PAPER_VERSION);
                boolean same = u.getLong(e + EDGE_INPUTS) == inputs;
                u.loadFence();
                if (!same || u.getLong(g + PAPER_UPDATES) != updates) break;
                long sum = c + av;
                storeLocals(u, p, callee, (c | av | sum) < 0 ? LOST_CALL : sum, now);
                return;
            }
        }
        updateGraph(p, site, callee);
    }

    /** For the frame of method `m` with slot `p`. */
    @ForceInline
    private static void storeLocals(Unsafe u, long p, int m, long c, long v) {
        u.putLong(p - SLOT + CONTEXT + BASE, c);
        u.putLong(p - SLOT + BASE + beside + BESIDE_VERSION, v);
        u.putLong(p - SLOT + BASE + beside + BESIDE_NUMBER, 0);
        u.putInt(p - SLOT + TAG + BASE, m);
    }

    /** The graph's id for the local variables of the frame with slot `p`; 0: lost. */
    @Hidden
    static long number(Unsafe u, long p, int m) {
        if (p >>> SCRATCH_BITS == 0) return 0;
        if (u.getInt(p - SLOT + TAG + BASE) != m) {
            enterFrames(p, m);
            if (u.getInt(p - SLOT + TAG + BASE) != m) return 0;
        }
        if (u.getLong(p - SLOT + CONTEXT + BASE) < 0) return 0;
        long c = u.getLong(p - SLOT + BASE + beside + BESIDE_NUMBER);
        return c != 0 ? c : resolveNumber(p, m);
    }

    // ---- slow paths, in the agent ---------------------------------------------------------------

    private static native long addChild(long ts, long node, int site, int callee);

    private static native void updateGraph(long p, int site, int callee);

    private static native long resolveNumber(long p, int method);
}
