package java.lang;

import static java.lang.LucceRtEdition.*;
import static java.lang.LucceRtLayout.*;

import java.security.ProtectionDomain;
import jdk.internal.misc.Unsafe;
import jdk.internal.misc.VM;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks of the lazy shadow stack, and the look-up of a frame's context. LucceRtEvents counts events, LucceRtTasks has
 * contexts that continue elsewhere, LucceRtComparison the modes for comparison.
 *
 * <p>A slot is 16 bytes, in memory outside the heap. Its address is relative to BASE. So 0, the first value of a thread's
 * field, is a place that may be written also.
 *
 * <pre>
 * +0   int  site   call site of the slot's frame; 0: none yet; ENTRY: below the first frame
 * +4   int  tag    method of the context `ctx`; 0: none
 * +8   long ctx    memo: the context of the frame that was called from here
 * </pre>
 *
 * <p>These classes are compiled from their texts in several helper variants. The boot variant is defined before any Java
 * code runs, and only moves pointers, because Unsafe must not be used yet. When the VM is ready, the agent redefines all
 * of them at once to the live variant, or a variant that also verifies or records calls. Hence they have no field
 * initializers. Constants that the agent shares (offsets, and the meaning of numbers) are in `shared_layout.rs`. The
 * build generates LucceRtLayout from them, and LucceRtEdition with the properties of a variant.
 *
 * <p>Nothing here allocates, locks or throws. All methods are hidden from stack traces.
 *
 * <p>Data of other threads is read without locks, and processors such as ARM may reorder the reads. Why each read is sound:
 * <pre>
 * METHODS               plain. The agent stores a site's method before the VM gets the class with the site. The site is in that
 *                       class's code, and the VM publishes classes and compiled code: a thread that has the site sees earlier
 *                       stores. There is a model of this (crates/layout/tests/loom).
 * tables of the graph   acquire: their address, their keys, and the targets of anchors; all that was stored before these is read
 *                       after them. A model of the relaxed memory of C++ runs all interleavings (callgraph/tests/loom.rs).
 * shift of versions     plain. It is stored once, before the live variant exists.
 * the event mask        opaque. Its bits are one word, and no other read depends on them. The model shows that the word
 *                       finally has the requests of all threads that switch it.
 * kinds and their types plain. A place gets its type before its text, and never another one. A type without its text is not
 *                       read; for a text without its type the agent is asked. A text is a String, whose fields are final. There
 *                       is a model of this (crates/layout/tests/loom).
 * $lc of a class        plain, one word of 64 bits: a number and a size. Natives look up the number's meaning under a lock.
 * the paper's graph     between two equal readings of UPDATES; its table's address is acquired, since the table is behind it.
 * slots, a thread's record, its index, its place in the stream: written by the thread itself and by natives that it calls. A
 *                       virtual thread takes them to another carrier; its scheduler passes it on.
 * static fields         stored before the live variant is installed, which happens in a safepoint.
 * </pre>
 */
public final class LucceRt {
    /** First slots of stacks for the threads that exist before the VM is initialized. */
    static long bootStacks, bootStacksEnd, bootStackSize;
    /** Set when the first thread starts: then Thread.currentThread works. */
    static boolean threads;

    private LucceRt() {}

    /** Initialized when the live variant first runs, so never too early. */
    static final class Memory {
        static final Unsafe U = Unsafe.getUnsafe();
    }

    // ---- frames ---------------------------------------------------------------------------------
    //
    // Before every call, the caller stores where its callee's slot is. So nothing must be restored when a method returns
    // or throws: the pointer is then stale until the next call.

    /** Returns the slot of a method that was just entered. */
    @Hidden @ForceInline
    public static long enter() {
        if (LIVE) return Thread.currentThread().$fp;
        if (!threads) return 0;
        Thread t = Thread.currentThread();
        if (t == null) return 0;
        if (t.$fp == 0) t.$fp = firstOfBoot();
        return t.$fp;
    }

    /** As enter, for modes that look up contexts at entry. */
    @Hidden @ForceInline
    public static long enter(int method) {
        if (!LIVE || !TREE && !PAPER) return enter();
        Thread t = Thread.currentThread();
        long p = t.$fp;
        LucceRtComparison.entered(t, p, method);
        return p;
    }

    /** Before a call: stores the call site, and the callee's slot. */
    @Hidden @ForceInline
    public static void pub(long p, int site) {
        if (LIVE) {
            Memory.U.putLong(p + BASE, site);
            Thread.currentThread().$fp = p + SLOT;
        } else {
            set(p + SLOT);
        }
        if (RECORD) tell(TOLD_CALL, p, site);
    }

    /**
     * As pub, in a method whose first and only call this is: it needs no local variable for its slot.
     */
    @Hidden @ForceInline
    public static void pub(int site) {
        if (LIVE) {
            Thread t = Thread.currentThread();
            long p = t.$fp;
            Memory.U.putLong(p + BASE, site);
            t.$fp = p + SLOT;
        } else {
            set(enter() + SLOT);
        }
    }

    /** For recordings of calls: a method returns. */
    @Hidden @ForceInline
    public static void exit(long p) {
        if (RECORD) tell(TOLD_RETURNED, p, 0);
    }

    /** Before a call by code without hooks: restores the callee's slot to that of the code's entry. */
    @Hidden @ForceInline
    public static void restore(long p) {
        if (LIVE) {
            Thread.currentThread().$fp = p;
        } else {
            set(p);
        }
    }

    /** For the boot variant: frames from before the first thread have no slot. */
    private static void set(long p) {
        if (!threads || p >>> SCRATCH_BITS == 0) return;
        Thread t = Thread.currentThread();
        if (t != null) t.$fp = p;
    }

    /** Before a call of a native method that calls back: the native frame gets the next slot. */
    @Hidden @ForceInline
    public static void pubNative(long p, int site, int nativeSite) {
        if (LIVE) {
            Memory.U.putLong(p + BASE, site);
            Memory.U.putLong(p + SLOT + BASE, nativeSite);
            Thread.currentThread().$fp = p + 2 * SLOT;
        } else {
            set(p + 2 * SLOT);
        }
        if (RECORD) tell(TOLD_CALL, p, site);
    }

    /** As pub, in a method that runs on a carrier while the current thread may be a virtual thread. */
    @Hidden @DontInline
    public static void pubSwitching(long p, int site) {
        if (!LIVE) {
            set(p + SLOT);
            return;
        }
        Memory.U.putLong(p + BASE, site);
        Thread t = Thread.currentThread();
        boolean own = t.$ts != 0 && owns(t, p);
        if (own) t.$fp = p + SLOT;
        if (RECORD && own) tell(TOLD_CALL, p, site);
    }

    /**
     * Entry of VirtualThread.switchToCarrierThread. In some JDKs a virtual thread does some things as its carrier, on its
     * own stack: until the end of switchToVirtualThread its slots are the carrier's.
     */
    @Hidden @DontInline
    public static long toCarrier() {
        if (LIVE) swap(Thread.currentThread(), Thread.currentCarrierThread());
        return 0;
    }

    /** Exit of VirtualThread.switchToVirtualThread. */
    @Hidden @DontInline
    public static void toVirtual(long unused) {
        if (LIVE) swap(Thread.currentThread(), Thread.currentCarrierThread());
    }

    /** Replaces VirtualThread.notifyJvmtiHideFrames. */
    @Hidden @DontInline
    public static void hides(Object thread, boolean hides) {}

    /**
     * Entry of a method that a pinned virtual thread calls in the middle of its unmount (JDK 21). A thread that asks the
     * VM for a stack would wait until no thread is being unmounted, so forever.
     */
    @Hidden @DontInline
    public static long enterPinned() {
        if (LIVE) unmounting(Thread.currentThread(), false);
        return enter();
    }

    @Hidden @DontInline
    public static void exitPinned(long p) {
        if (LIVE) unmounting(Thread.currentThread(), true);
    }

    private static void swap(Thread a, Thread b) {
        long p = a.$fp, state = a.$ts, index = a.$ev;
        a.$fp = b.$fp;
        a.$ts = b.$ts;
        a.$ev = b.$ev;
        b.$fp = p;
        b.$ts = state;
        b.$ev = index;
    }

    // ---- VM entries -----------------------------------------------------------------------------

    /** Entry of a method that the VM may call in the middle of another one. */
    @Hidden @DontInline
    public static long enterVm(int method) {
        if (!LIVE) return enter();
        Thread t = Thread.currentThread();
        if (!known(t)) return t.$fp;
        long p = upcall(t.$ts, t.$fp);
        if ((TREE || PAPER) && method != 0) LucceRtComparison.entered(t, p, method);
        if (RECORD) tell(TOLD_THROWN, p, 0);
        return p;
    }

    /** Entry of a thread's first method. */
    @Hidden @DontInline
    public static long enterFirst() {
        if (!LIVE) return enter();
        Thread t = Thread.currentThread();
        return known(t) ? first(t) : t.$fp;
    }

    static long first(Thread t) {
        return Memory.U.getLong(t.$ts + STATE_START) + SLOT;
    }

    /**
     * Entry of the method that runs a Java agent at the VM's start. A Java agent that precedes this agent on the command
     * line makes the hooks live: the VM is initialized, and no code of a Java agent has run.
     */
    @Hidden @DontInline
    public static long enterPremain() {
        if (LIVE) return enter();
        initialized(true);
        // From here on the live variant's methods run; the boot variant's frames call them also.
        return threadSlot();
    }

    /** Entry of methods that the VM calls for native threads that attach, and that Java code calls also. */
    @Hidden @DontInline
    public static long enterThread() {
        return threadSlot();
    }

    /** The caller of this method must be the hook itself: see hasCaller. */
    @Hidden @DontInline
    static long threadSlot() {
        if (!LIVE) return enter();
        Thread t = Thread.currentThread();
        boolean attached = t.$ts != 0;
        if (!known(t) || attached && hasCaller()) return t.$fp;
        return first(t);
    }

    @Hidden @DontInline
    public static void exitVm(long p) {
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        long ts = t.$ts;
        if (ts != 0) t.$fp = upcallEnd(ts, p);
        if (RECORD) tell(TOLD_RETURNED, p, 0);
    }

    /** As exitVm: the next callee is called by code without hooks. */
    @Hidden @DontInline
    public static void exitUnsaid(long p) {
        if (!LIVE) return;
        exitVm(p);
        Thread t = Thread.currentThread();
        if (t.$ts == 0) return;
        Memory.U.putLong(p - SLOT + BASE, LOST);
        t.$fp = p;
        unsaid(true);
    }

    /** As pub, before a call of a native method that makes the VM call Java repeatedly. */
    @Hidden @DontInline
    public static void pubUnsaid(long p, int site) {
        pub(p, site);
        if (!LIVE) return;
        Memory.U.putLong(p + SLOT + BASE, LOST);
        Thread.currentThread().$fp = p + 2 * SLOT;
        unsaid(true);
    }

    /** Loaded classes have new code now. */
    @Hidden @DontInline
    public static void changed(long p, int site) {
        if (LIVE) changed0();
    }

    /** For recordings of calls: as exitVm, if an exception ends the method. */
    @Hidden @DontInline
    public static void unwindVm(long p) {
        if (RECORD) tell(TOLD_THROWN, p, 0);
        exitVm(p);
    }

    /** The agent brackets Java code that native code calls. */
    @Hidden
    static long open(int site) {
        long p = enter();
        if (LIVE) {
            Memory.U.putLong(p + BASE, site);
            Thread.currentThread().$fp = p + SLOT;
        }
        return p;
    }

    /** As enter, if native code calls that no Java code has called: the first frame comes now. */
    @Hidden
    static long bottom() {
        long p = enter();
        Thread t = Thread.currentThread();
        if (LIVE && known(t)) t.$fp = first(t);
        return p;
    }

    // ---- C code: java.lang.foreign ----------------------------------------------------------------
    //
    // C code calls Java by a stub, from anywhere. Only the VM knows the frames below, natives among them. Asking it costs
    // far more than the call. So a downcall leaves a word in the slot of the next callee, which means: the slot is right,
    // and no native method is in between. The word replaces the memo, because calls on the way to C code (checkExactType)
    // write sites. The modes for comparison keep other data there, and always ask the VM.

    /** Before the call of a C function, from a frame that traces omit: slot `p` is the slot of the function's Java callee. */
    @Hidden @ForceInline
    public static void downcall(long p) {
        restore(p);
        if (LIVE && !TREE && !PAPER) Memory.U.putLong(p + CONTEXT + BASE, IN_DOWNCALL);
    }

    /** After the call of a C function. */
    @Hidden @ForceInline
    public static void downcalled(long p, int unused) {
        if (LIVE && !TREE && !PAPER) Memory.U.putLong(p + CONTEXT + BASE, 0);
    }

    /** An exception leaves the frame. */
    @Hidden @DontInline
    public static void unwindDowncall(long p) {
        restore(p);
        downcalled(p, 0);
    }

    /** Entry of the method that C code calls, which traces omit. Bit 0 is set if a downcall has left the slot. */
    @Hidden @ForceInline
    public static long enterUpcall() {
        if (!LIVE) return enter();
        if (TREE || PAPER) return enterVm(0);
        Thread t = Thread.currentThread();
        long p = t.$fp;
        if (t.$ts == 0 || !owns(t, p) || Memory.U.getLong(p + CONTEXT + BASE) != IN_DOWNCALL) return enterVm(0);
        // The next callee has this slot, and may itself call C code.
        Memory.U.putLong(p + CONTEXT + BASE, 0);
        return p | 1;
    }

    /** As restore. */
    @Hidden @ForceInline
    public static void restoreUpcall(long p) {
        restore(p & ~1L);
    }

    @Hidden @ForceInline
    public static void exitUpcall(long p) {
        if ((p & 1) == 0) exitVm(p);
        else downcall(p & ~1L);
    }

    // ---- look-up ----------------------------------------------------------------------------------

    /** The id of the context of `site` in the frame with slot `p`; 0: unknown. */
    @Hidden
    public static long current(long p, int site) {
        if (!LIVE) return 0;
        return current(Thread.currentThread(), p, site);
    }

    static long current(Thread t, long p, int site) {
        long cell = cell(t, p, site);
        return cell == 0 ? 0 : Memory.U.getLong(cell + CELL_NUMBER);
    }

    /** The current thread's record if slot `p` is one of its own; 0: none. */
    private static long mine(long p) {
        Thread t = Thread.currentThread();
        return t.$ts != 0 && owns(t, p) ? t.$ts : 0;
    }

    /**
     * This thread's counter for events at `site`: [number, count, bytes], or by type
     * [number, type, count, value]; 0: unknown.
     *
     * <p>Most events repeat a recent call path: from a frame with a known context, over the same calls. The thread caches
     * such paths, each in a cache line of its own:
     *
     * <pre>
     *                long the known context; 0: an empty line
     * WAY_CALL       int  the event's site,               int the last call's site, 0: none
     * WAY_BEFORE     int  the site of the call before it, int of the one before that
     * WAY_CELL       long the counter's address
     * WAY_CONTEXTS   long contexts of the called frames, the last one first: 3
     * </pre>
     */
    @Hidden @ForceInline
    static long cell(Thread t, long p, int site) {
        Unsafe u = Memory.U;
        if (TREE && !owns(t, p)) {
            lost(1);
            return 0;
        }
        int m = u.getInt(METHODS + ((long) site << INT_BITS));
        long w = u.getLong(p - SLOT + BASE);
        if (TREE || PAPER || t.$ev == 0) {
            long c = PAPER ? LucceRtComparison.number(u, p, m) : (int) (w >>> TAG_SHIFT) == m ? u.getLong(p - SLOT + CONTEXT + BASE) : walk(p, m, 0);
            return cellOf(t, c, site);
        }
        // The frames from here to the nearest caller with a known context, at most three.
        long a = p;
        int first = 0, second = 0, third = 0, n = m;
        if ((int) (w >>> TAG_SHIFT) != n) {
            first = (int) w;
            if (!isCall(first)) return cellOf(t, walk(p, m, t.$ev), site);
            a -= SLOT;
            n = u.getInt(METHODS + ((long) first << INT_BITS));
            w = u.getLong(a - SLOT + BASE);
            if ((int) (w >>> TAG_SHIFT) != n) {
                second = (int) w;
                if (!isCall(second)) return cellOf(t, walk(p, m, t.$ev), site);
                a -= SLOT;
                n = u.getInt(METHODS + ((long) second << INT_BITS));
                w = u.getLong(a - SLOT + BASE);
                if ((int) (w >>> TAG_SHIFT) != n) {
                    third = (int) w;
                    if (!isCall(third)) return cellOf(t, walk(p, m, t.$ev), site);
                    a -= SLOT;
                    n = u.getInt(METHODS + ((long) third << INT_BITS));
                    w = u.getLong(a - SLOT + BASE);
                    // Further up the callers: walk makes it known.
                    if ((int) (w >>> TAG_SHIFT) != n && (!isCall((int) w) || walk(a, n, t.$ev, 0) == 0)) {
                        return cellOf(t, walk(p, m, t.$ev), site);
                    }
                }
            }
        }
        long c = u.getLong(a - SLOT + CONTEXT + BASE);
        long way = (long) first << 32 | site;
        long before = (long) third << 32 | second;
        long hash = c * MULTIPLIER + way * SECOND_MULTIPLIER + before * THIRD_MULTIPLIER;
        long index = t.$ev;
        long e = u.getLong(index + INDEX_WAYS) + (hash >>> (int) u.getLong(index + INDEX_WAYS_SHIFT) << WAY_BITS);
        if (u.getLong(e) != c || u.getLong(e + WAY_CALL) != way || u.getLong(e + WAY_BEFORE) != before) {
            return cell(t, p, m, site, c, way, before);
        }
        if (first != 0) {
            remember(u, p, m, u.getLong(e + WAY_CONTEXTS));
            if (second != 0) {
                remember(u, p - SLOT, u.getInt(METHODS + ((long) first << INT_BITS)), u.getLong(e + (WAY_CONTEXTS + 8)));
                if (third != 0) remember(u, p - 2 * SLOT, u.getInt(METHODS + ((long) second << INT_BITS)), u.getLong(e + (WAY_CONTEXTS + 16)));
            }
        }
        return u.getLong(e + WAY_CELL);
    }

    /** Whether a slot's site is a call site. */
    @ForceInline
    static boolean isCall(int site) {
        return site != 0 && site != ENTRY && site != LOST;
    }

    /** As the method above, for a call path that the thread has not cached; caches it. */
    @Hidden @DontInline
    static long cell(Thread t, long p, int m, int site, long c, long way, long before) {
        Unsafe u = Memory.U;
        boolean here = way >>> 32 == 0;
        long cell = cellOf(t, here ? c : walk(p, m, t.$ev), site);
        if (cell == 0) return 0;
        long index = t.$ev;
        long hash = c * MULTIPLIER + way * SECOND_MULTIPLIER + before * THIRD_MULTIPLIER;
        long e = u.getLong(index + INDEX_WAYS) + (hash >>> (int) u.getLong(index + INDEX_WAYS_SHIFT) << WAY_BITS);
        // Invalid until it is complete: an exception may interrupt the writes.
        u.putLong(e, 0);
        u.putLong(e + WAY_CALL, way);
        u.putLong(e + WAY_BEFORE, before);
        u.putLong(e + WAY_CELL, cell);
        if (!here) u.putLong(e + WAY_CONTEXTS, u.getLong(p - SLOT + CONTEXT + BASE));
        if ((int) before != 0) u.putLong(e + (WAY_CONTEXTS + 8), u.getLong(p - 2 * SLOT + CONTEXT + BASE));
        if (before >>> 32 != 0) u.putLong(e + (WAY_CONTEXTS + 16), u.getLong(p - 3 * SLOT + CONTEXT + BASE));
        u.putLong(e, c);
        return cell;
    }

    /**
     * This thread's counter for events at `site` in the context `c`. An entry of the index is [context, low bits of the
     * site | counter]. A context belongs to one method, whose sites are consecutive, so the low bits distinguish them.
     */
    @Hidden @DontInline
    private static long cellOf(Thread t, long c, int site) {
        long index = t.$ev;
        long cell = index == 0 ? 0 : find(Memory.U, index, c, site);
        return cell != 0 ? cell : insert(t, c, site);
    }

    /** The counter in an index for a context and a site, or for a context id and a type; 0: none. */
    @ForceInline
    static long find(Unsafe u, long index, long c, int low) {
        long slot = (c ^ (long) low << 64 - LOW_SITE_BITS) * MULTIPLIER >>> (int) u.getLong(index + TABLE_SHIFT);
        long mask = u.getLong(index + TABLE_MASK);
        for (; ; slot = slot + 1 & mask) {
            long e = index + TABLE_ENTRIES + (slot << INDEX_ENTRY_BITS);
            long found = u.getLong(e);
            if (found == c) {
                long at = u.getLong(e + INDEX_CELL);
                if ((int) (at >>> 64 - LOW_SITE_BITS) == (low & (1 << LOW_SITE_BITS) - 1)) {
                    return at << LOW_SITE_BITS >>> LOW_SITE_BITS - CELL_ALIGNMENT_BITS;
                }
            }
            if (found == 0) return 0;
        }
    }

    @Hidden @DontInline
    private static long insert(Thread t, long c, int site) {
        if (c == 0) {
            lost(1);
            return 0;
        }
        if (!known(t)) return 0;
        long cell = insert0(t.$ts, c, site);
        t.$ev = Memory.U.getLong(t.$ts + STATE_INDEX);
        return cell;
    }

    /** The context of the frame of method `m` with slot `p`, in which an event happens; 0: unknown. */
    @Hidden
    static long walk(long p, int m, long index) {
        return walk(p, m, index, p);
    }

    /**
     * The context of the frame of method `m` with slot `p`, from the nearest known caller; 0: unknown.
     * {@code pointer}: the slot of the running frame, for asking the VM; 0: the VM is not asked.
     */
    @Hidden @DontInline
    static long walk(long p, int m, long index, long pointer) {
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
                c = TREE ? LucceRtComparison.child(u, 0, ENTRY, n) : root(mine(p), n);
                remember(u, a, n, c);
                break;
            }
            if (s == LOST) return 0;
            if (s == 0) {
                // The frame was entered before the hooks were live: the VM knows its context.
                Thread t = Thread.currentThread();
                if (pointer == 0 || !known(t) || !repair(t.$ts, a - SLOT, pointer)) return 0;
                // If an event happened meanwhile, the thread may have another index.
                if (index != 0) index = t.$ev;
                continue;
            }
            a -= SLOT;
            n = u.getInt(METHODS + ((long) s << INT_BITS));
        }
        long copies = TREE || index == 0 ? 0 : u.getLong(index + INDEX_TRANSITIONS);
        int shift = TREE || index == 0 ? 0 : (int) u.getLong(index + INDEX_TRANSITIONS_SHIFT);
        while (a != p && c != 0) {
            int s = u.getInt(a + BASE);
            a += SLOT;
            n = a == p ? m : u.getInt(METHODS + ((long) u.getInt(a + BASE) << INT_BITS));
            c = TREE ? LucceRtComparison.child(u, c, s, n) : step(u, c, s, n, copies, shift);
            remember(u, a, n, c);
        }
        return c;
    }

    /** Long.rotateLeft has hooks itself if entries are counted. */
    @ForceInline
    static long rotated(long word) {
        return word << ROTATION | word >>> 64 - ROTATION;
    }

    @ForceInline
    static void remember(Unsafe u, long a, int n, long c) {
        u.putLong(a - SLOT + CONTEXT + BASE, c);
        u.putInt(a - SLOT + TAG + BASE, c == 0 ? 0 : n);
    }

    /**
     * Steps over one call. {@code copies}: the thread's cache of recent transitions, [key, delta], because the table that
     * all threads share is larger than a processor's caches; 0: none.
     */
    @Hidden @ForceInline
    private static long step(Unsafe u, long c, int site, int callee, long copies, int shift) {
        long place = (long) site << METHOD_BITS | callee;
        // Plain: it never changes.
        long key = c >>> (int) u.getLong(tables(GRAPH_VERSION_SHIFT)) << SITE_BITS + METHOD_BITS | place;
        long e = copies + (key * MULTIPLIER >>> shift << COPY_BITS);
        if (copies != 0 && u.getLong(e) == key) return c + u.getLong(e + COPY_VALUE);
        return step(u, c, site, callee, key, copies == 0 ? 0 : e);
    }

    /** A word of the block. Not a sum of constants, which the Java compiler would fold to a new constant. */
    @ForceInline
    private static long tables(int offset) {
        return TABLES + offset;
    }

    /** The encoder's fast path, see callgraph's `RawTables`. */
    @Hidden @DontInline
    private static long step(Unsafe u, long c, int site, int callee, long key, long copy) {
        // Acquire: pairs with the Release in callgraph's `publish_generation`, before which the table was filled.
        long table = u.getLongAcquire(null, tables(GRAPH_CALLS));
        long slot = key * MULTIPLIER >>> (int) u.getLong(table + TABLE_SHIFT);
        long mask = u.getLong(table + TABLE_MASK);
        for (; ; slot = slot + 1 & mask) {
            long e = table + TABLE_ENTRIES + (slot << TRANSITION_BITS);
            // Acquire: pairs with the Release of the key; its delta was stored before.
            long k = u.getLongAcquire(null, e + TRANSITION_KEY);
            if (k == key) {
                long delta = u.getLong(e + TRANSITION_DELTA);
                if (delta == ANCHORING) break;
                // The table has just moved, and its old memory was freed.
                if (delta == 0) return step0(c, site, callee);
                if (copy != 0) {
                    u.putLong(copy, key);
                    u.putLong(copy + COPY_VALUE, delta);
                }
                return c + delta;
            }
            if (k == 0) return step0(c, site, callee);
        }
        long place = (long) site << METHOD_BITS | callee;
        table = u.getLongAcquire(null, tables(GRAPH_ANCHORS));
        slot = (c ^ rotated(place)) * MULTIPLIER >>> (int) u.getLong(table + TABLE_SHIFT);
        mask = u.getLong(table + TABLE_MASK);
        for (long tried = 0; tried <= mask; tried++, slot = slot + 1 & mask) {
            long e = table + TABLE_ENTRIES + (slot << ANCHOR_BITS);
            // Acquire, all three: later reads come after them, so between two equal readings of `to` the entry is
            // consistent.
            long to = u.getLongAcquire(null, e + ANCHOR_TO);
            if (to == 0) break;
            if (u.getLongAcquire(null, e + ANCHOR_CONTEXT) == c
                    && u.getLongAcquire(null, e + ANCHOR_PLACE) == place
                    && u.getLong(e + ANCHOR_TO) == to) return to;
        }
        return step0(c, site, callee);
    }

    /** Whether slot `p` is one of the thread's. */
    @ForceInline
    static boolean owns(Thread t, long p) {
        long ts = t.$ts;
        if (ts == 0) return true;
        return p - Memory.U.getLong(ts + STATE_START) >= 0 && p - Memory.U.getLong(ts + STATE_END) < 0;
    }

    // ---- classes without a class file load hook ---------------------------------------------------

    /** A flag of `ClassLoader.defineClass0`: the VM does not report the class to agents. */
    private static final int HIDDEN_CLASS = 2;

    /**
     * Replaces ClassLoader.defineClass0: hidden classes that call must restore the pointer. Other classes reach the
     * agent.
     */
    @Hidden
    public static Class<?> defineClass0(
            ClassLoader loader, Class<?> lookup, String name, byte[] b, int off, int len,
            ProtectionDomain pd, boolean initialize, int flags, Object classData) {
        // A Java agent that is first on the command line runs before the hooks are live.
        if ((LIVE || VM.isModuleSystemInited()) && (flags & HIDDEN_CLASS) != 0) {
            byte[] hooked = hidden(loader, b, off, len);
            if (hooked != null) {
                b = hooked;
                off = 0;
                len = hooked.length;
            }
        }
        return ClassLoader.defineClass0(loader, lookup, name, b, off, len, pd, initialize, flags, classData);
    }

    /**
     * Replaces TransformerManager.transform: Java agents get classes without hooks. See `classes/java_agents` in the
     * agent.
     */
    @Hidden
    public static native byte[] transform(
            Object manager, Module module, ClassLoader loader, String name, Class<?> changed,
            ProtectionDomain domain, byte[] bytes);

    /** For recordings of calls. */
    @Hidden @DontInline
    static void tell(int what, long p, int site) {
        Thread t = Thread.currentThread();
        if (t != null && known(t)) record(t.$ts, what, p, site);
    }

    /** Whether the agent has a record of the thread. Threads from before the start get their record here. */
    static boolean known(Thread t) {
        if (t.$ts == 0) enlist(t, t.$fp);
        return t.$ts != 0;
    }

    // ---- slow paths, in the agent ---------------------------------------------------------------

    /** Takes a reserved stack: no native method may be called before the VM is initialized. */
    private static synchronized long firstOfBoot() {
        long p = bootStacks;
        if (p == bootStacksEnd) return 0;
        bootStacks = p + bootStackSize;
        return p;
    }

    /** Gives `t` a record, and a stack unless it has one. */
    private static native void enlist(Thread t, long pointer);

    /** Whether a Java method called the method whose hook asks, through two methods of this class. */
    private static native boolean hasCaller();

    /** The VM is initialized; it may not have told the agent yet. */
    private static native void initialized(boolean really);

    private static native long upcall(long ts, long p);

    private static native long upcallEnd(long ts, long q);

    private static native long root(long ts, int method);

    private static native long step0(long c, int site, int callee);

    private static native long insert0(long ts, long c, int site);

    static native boolean repair(long ts, long slot, long pointer);

    static native void lost(int events);

    /** Called before code without hooks calls. */
    private static native void unsaid(boolean really);

    private static native void changed0();

    private static native void unmounting(Thread virtual, boolean really);

    private static native void record(long ts, int what, long p, int site);

    private static native byte[] hidden(ClassLoader loader, byte[] b, int off, int len);
}
