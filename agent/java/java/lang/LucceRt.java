package java.lang;

import static java.lang.LucceRtEdition.*;
import static java.lang.LucceRtLayout.*;

import java.security.ProtectionDomain;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.FutureTask;
import jdk.internal.access.JavaLangAccess;
import jdk.internal.misc.Unsafe;
import jdk.internal.misc.VM;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * What the hooks call: the lazy shadow stack and the fast path of events.
 *
 * <p>A slot is 16 bytes, in memory outside the heap. Its address is kept relative to BASE: 0, what a thread's field holds at
 * first, is a place that may be written, too.
 *
 * <pre>
 * +0   int  site   where the slot's frame calls from; 0: nowhere yet; ENTRY: below the first frame
 * +4   int  tag    method whose context `ctx` is; 0: none
 * +8   long ctx    the context of the frame that was called from here
 * </pre>
 *
 * <p>Several editions of this class are compiled from this text. The first is defined before any Java
 * code runs and only moves pointers, because Unsafe must not be touched yet. When the VM is ready
 * the agent redefines it to the live edition, or one that also verifies or records calls. Hence no field initialisers.
 * What the agent knows, too (where things lie, and what numbers stand for) is in its `shared_layout.rs`; the build makes
 * constants of it, LucceRtLayout, and others of what an edition has, LucceRtEdition.
 *
 * <p>Nothing here allocates, locks or throws. All methods are hidden from stack traces.
 */
public final class LucceRt {
    /** First slots of stacks for the threads that are there before the VM is initialised. */
    static long bootStacks, bootStacksEnd, bootStackSize;
    /** Set when the first thread starts: from then on there is a current thread to ask for. */
    static boolean threads;
    /** With PAPER: what its graph says, see `paper`. */
    static long graph;
    /** With PAPER: how far beside a slot its second part lies. */
    static long beside;
    /** Texts of the program's kinds of events, and where their types are: see `own_kinds` in the agent. */
    static String[] kinds;
    static long kindTypes;
    /** Bytes of an array's header, of a reference. */
    static int header, headerOfLongs, referenceShift;

    private LucceRt() {}

    /** Initialised when the live edition first runs, so never too early. */
    private static final class Memory {
        static final Unsafe U = Unsafe.getUnsafe();
    }

    // ---- frames ---------------------------------------------------------------------------------
    //
    // The caller says where its callee's slot lies, before every call. So nothing has to be put back
    // when a method returns or throws: what the pointer holds then is stale until the next call.

    /** The slot of a method that was just entered. */
    @Hidden @ForceInline
    public static long enter() {
        if (LIVE) return Thread.currentThread().$fp;
        if (!threads) return 0;
        Thread t = Thread.currentThread();
        if (t == null) return 0;
        if (t.$fp == 0) t.$fp = firstOfBoot();
        return t.$fp;
    }

    /** The same where contexts are looked up at entry. */
    @Hidden @ForceInline
    public static long enter(int method) {
        if (!LIVE || !TREE && !PAPER) return enter();
        Thread t = Thread.currentThread();
        long p = t.$fp;
        entered(t, p, method);
        return p;
    }

    /** Before a call: from where, and where the callee's slot is. */
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
     * The same in a method whose first and only call this is: where its slot is nobody has to keep.
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

    /** Where calls are recorded: a method returns. */
    @Hidden @ForceInline
    public static void exit(long p) {
        if (RECORD) tell(TOLD_RETURNED, p, 0);
    }

    /** Before code without hooks calls: its callee's slot is where it was when that code began. */
    @Hidden @ForceInline
    public static void restore(long p) {
        if (LIVE) {
            Thread.currentThread().$fp = p;
        } else {
            set(p);
        }
    }

    /** For the boot edition: frames from before there was a thread to ask for have no slot. */
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

    /** As pub, in a method that runs on a carrier while the current thread may be a virtual one. */
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
     * Entry of VirtualThread.switchToCarrierThread, which JDKs have in which a virtual thread does some things
     * as its carrier, on its own stack: until the end of switchToVirtualThread its slots are the carrier's.
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

    /** In place of VirtualThread.notifyJvmtiHideFrames. */
    @Hidden @DontInline
    public static void hides(Object thread, boolean hides) {}

    /**
     * Entry of what a pinned virtual thread calls in the middle of being unmounted (JDK 21). Whoever asks the VM
     * for a stack then waits until nobody is being unmounted, and so for ever.
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

    // ---- the same where entries are counted or recorded; `site` stands for the method's entry ------

    @Hidden @ForceInline
    public static long called(int site) {
        return entered(enter(), site);
    }

    @Hidden @ForceInline
    public static long calledFirst(int site) {
        long p = enterFirst();
        if (RECORD) tell(TOLD_ENTERED, p, site);
        // Not compared: a VM to which the thread is still being mounted waits for ever if it is asked.
        if (LIVE) countByType(Thread.currentThread(), p, site, CALL);
        return p;
    }

    @Hidden @ForceInline
    public static long calledThread(int site) {
        return entered(threadSlot(), site);
    }

    @Hidden @ForceInline
    public static long calledVm(int site) {
        return entered(enterVm(0), site);
    }

    @Hidden @ForceInline
    private static long entered(long p, int site) {
        if (RECORD) tell(TOLD_ENTERED, p, site);
        if (LIVE) countByType(p, site, CALL);
        return p;
    }

    // ---- frames that the VM enters by itself ----------------------------------------------------

    /** Entry of a method that the VM may call in the middle of another one. */
    @Hidden @DontInline
    public static long enterVm(int method) {
        if (!LIVE) return enter();
        Thread t = Thread.currentThread();
        if (!known(t)) return t.$fp;
        long p = upcall(t.$ts, t.$fp);
        if ((TREE || PAPER) && method != 0) entered(t, p, method);
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

    private static long first(Thread t) {
        return Memory.U.getLong(t.$ts + STATE_START) + SLOT;
    }

    /** Entry of what the VM calls for native threads that attach themselves, and Java code, too. */
    @Hidden @DontInline
    public static long enterThread() {
        return threadSlot();
    }

    /** Whoever calls this is the hook itself: see hasCaller. */
    @Hidden @DontInline
    private static long threadSlot() {
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

    /** As exitVm: whoever is called next from there is called by code that says nothing. */
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

    /** As pub, before a call of a native method that has the VM call Java again and again. */
    @Hidden @DontInline
    public static void pubUnsaid(long p, int site) {
        pub(p, site);
        if (!LIVE) return;
        Memory.U.putLong(p + SLOT + BASE, LOST);
        Thread.currentThread().$fp = p + 2 * SLOT;
        unsaid(true);
    }

    /** Classes that have been loaded have other code now. */
    @Hidden @DontInline
    public static void changed(long p, int site) {
        if (LIVE) changed0();
    }

    /** Where calls are recorded: as exitVm, and an exception ends the method. */
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

    @Hidden
    static long pointer() {
        return enter();
    }

    /** As pointer, where native code calls that no Java code has called: the first frame comes now. */
    @Hidden
    static long bottom() {
        long p = enter();
        Thread t = Thread.currentThread();
        if (LIVE && known(t)) t.$fp = first(t);
        return p;
    }

    @Hidden
    static void close(long p) {
        restore(p);
    }

    // ---- which events are counted: see `gate` in the agent ------------------------------------------

    /** Opaque: a loop that counts nothing looks again, too. */
    @ForceInline
    private static boolean isOpen(int kind) {
        return (Memory.U.getIntOpaque(null, gate() + BASE) & kind) != 0;
    }

    /** No constant for the compiler of this text, which would add it to BASE. */
    @ForceInline
    private static long gate() {
        return -GATE;
    }

    // ---- events ---------------------------------------------------------------------------------

    @Hidden @ForceInline
    public static void alloc(long p, int site) {
        if (LIVE) count(p, site, 0);
    }

    // In methods that have not called yet.

    @Hidden @ForceInline
    public static void alloc(int site) {
        if (LIVE) count(enter(), site, 0);
    }

    @Hidden @ForceInline
    public static void array(byte[] a, int site) {
        array(a, enter(), site);
    }

    @Hidden @ForceInline
    public static void array(boolean[] a, int site) {
        array(a, enter(), site);
    }

    @Hidden @ForceInline
    public static void array(short[] a, int site) {
        array(a, enter(), site);
    }

    @Hidden @ForceInline
    public static void array(char[] a, int site) {
        array(a, enter(), site);
    }

    @Hidden @ForceInline
    public static void array(int[] a, int site) {
        array(a, enter(), site);
    }

    @Hidden @ForceInline
    public static void array(float[] a, int site) {
        array(a, enter(), site);
    }

    @Hidden @ForceInline
    public static void array(long[] a, int site) {
        array(a, enter(), site);
    }

    @Hidden @ForceInline
    public static void array(double[] a, int site) {
        array(a, enter(), site);
    }

    @Hidden @ForceInline
    public static void array(Object[] a, int site) {
        array(a, enter(), site);
    }

    // In others: `p` is the slot of the frame.

    @Hidden @ForceInline
    public static void array(byte[] a, long p, int site) {
        if (LIVE) count(p, site, size(header, a.length, 0));
    }

    @Hidden @ForceInline
    public static void array(boolean[] a, long p, int site) {
        if (LIVE) count(p, site, size(header, a.length, 0));
    }

    @Hidden @ForceInline
    public static void array(short[] a, long p, int site) {
        if (LIVE) count(p, site, size(header, a.length, 1));
    }

    @Hidden @ForceInline
    public static void array(char[] a, long p, int site) {
        if (LIVE) count(p, site, size(header, a.length, 1));
    }

    @Hidden @ForceInline
    public static void array(int[] a, long p, int site) {
        if (LIVE) count(p, site, size(header, a.length, 2));
    }

    @Hidden @ForceInline
    public static void array(float[] a, long p, int site) {
        if (LIVE) count(p, site, size(header, a.length, 2));
    }

    @Hidden @ForceInline
    public static void array(long[] a, long p, int site) {
        if (LIVE) count(p, site, size(headerOfLongs, a.length, 3));
    }

    @Hidden @ForceInline
    public static void array(double[] a, long p, int site) {
        if (LIVE) count(p, site, size(headerOfLongs, a.length, 3));
    }

    @Hidden @ForceInline
    public static void array(Object[] a, long p, int site) {
        if (LIVE) count(p, site, size(header, a.length, referenceShift));
    }

    /**
     * A method that the compiler may have replaced by code of its own has returned {@code a}: its
     * allocation is counted as if its frame, called by the one with slot {@code p}, were there.
     */
    @Hidden @ForceInline
    public static void counted(Object[] a, long p, int site) {
        if (LIVE) count(a, a.getClass(), sizeOf(a), p + SLOT, site, 1);
    }

    @Hidden @ForceInline
    public static void counted(byte[] a, long p, int site) {
        if (LIVE) count(p + SLOT, site, size(header, a.length, 0), 1);
    }

    /** StringUTF16.newBytesFor, for a method whose callers count. */
    @Hidden
    public static byte[] newBytesFor(int length) {
        if (length < 0 || length >= Integer.MAX_VALUE >> 1) return StringUTF16.newBytesFor(length);
        return new byte[length << 1];
    }

    /** Several dimensions at once: the size is that of all arrays made. */
    @Hidden @DontInline
    public static void arrays(Object a, long p, int site) {
        if (LIVE) count(p, site, sizeOfAll(a));
    }

    @ForceInline
    private static long size(int header, int length, int shift) {
        return header + ((long) length << shift) + (OBJECT_ALIGNMENT - 1) & -OBJECT_ALIGNMENT;
    }

    private static long sizeOfAll(Object a) {
        long sum = sizeOf(a);
        if (a instanceof Object[]) {
            Object[] rows = (Object[]) a;
            for (int i = 0; i < rows.length; i++) {
                if (rows[i] != null) sum += sizeOfAll(rows[i]);
            }
        }
        return sum;
    }

    /** Of an array. */
    private static long sizeOf(Object a) {
        if (a instanceof Object[]) return size(header, ((Object[]) a).length, referenceShift);
        if (a instanceof byte[]) return size(header, ((byte[]) a).length, 0);
        if (a instanceof boolean[]) return size(header, ((boolean[]) a).length, 0);
        if (a instanceof short[]) return size(header, ((short[]) a).length, 1);
        if (a instanceof char[]) return size(header, ((char[]) a).length, 1);
        if (a instanceof int[]) return size(header, ((int[]) a).length, 2);
        if (a instanceof float[]) return size(header, ((float[]) a).length, 2);
        if (a instanceof long[]) return size(headerOfLongs, ((long[]) a).length, 3);
        return size(headerOfLongs, ((double[]) a).length, 3);
    }

    /** The number of the context of `site` in the frame with slot `p`; 0: unknown. */
    @Hidden
    public static long current(long p, int site) {
        if (!LIVE) return 0;
        return current(Thread.currentThread(), p, site);
    }

    private static long current(Thread t, long p, int site) {
        long cell = cell(t, p, site);
        return cell == 0 ? 0 : Memory.U.getLong(cell + CELL_NUMBER);
    }

    /** Counts an event of a kind that a site has but one of; its number, 0: not known. */
    @Hidden
    private static long countByType(long p, int site, int kind) {
        Thread t = Thread.currentThread();
        long number = countByType(t, p, site, kind);
        if (VERIFY && number != 0) compare(t, number, 0);
        return number;
    }

    @Hidden
    private static long countByType(Thread t, long p, int site, int kind) {
        if (!isOpen(kind)) return 0;
        long cell = cell(t, p, site);
        if (cell == 0) return 0;
        Unsafe u = Memory.U;
        u.putLong(cell + EVENT_CELL_COUNT, u.getLong(cell + EVENT_CELL_COUNT) + 1);
        long number = u.getLong(cell + CELL_NUMBER);
        if (STREAM) stream(t, u.getInt(cell + EVENT_CELL_TYPE), number, 0);
        return number;
    }

    /** Before the call by which `child` is started: where its own trace goes on. */
    @Hidden @DontInline
    public static void starts(Thread child, long p, int site) {
        if (LIVE) child.$cx = countByType(p, site, THREAD);
        pub(p, site);
    }

    /** The same in code without hooks: the agent asks the VM where that is. */
    @Hidden @DontInline
    public static void startsOutside(Thread child, long p, int site) {
        if (LIVE && isOpen(THREAD)) {
            Thread t = Thread.currentThread();
            if (known(t)) started0(t.$ts, child);
        }
        restore(p);
    }

    // ---- tasks of executors -------------------------------------------------------------------------
    //
    // A task carries the number of the context that submitted it: in a field, or the agent remembers it.
    // 0: there is none; SEVERAL: it was submitted in several contexts, and which one is meant is not known. See `tasks` in the agent.

    /** Initialised when the first task is submitted: where the fields of tasks are. */
    private static final class Tasks {
        static final long FUTURE = Memory.U.objectFieldOffset(FutureTask.class, "$cx");
        static final long FORKED = Memory.U.objectFieldOffset(ForkJoinTask.class, "$cx");
    }

    /** An executor is given a task. */
    @Hidden @DontInline
    public static void submitted(Object task, long p, int site) {
        pub(p, site);
        if (!LIVE || task == null) return;
        Thread t = Thread.currentThread();
        if (t.$cx == SCHEDULING) {
            t.$cx = 0;
            return;
        }
        if (!owns(t, p)) return;
        long number = countByType(p, site, THREAD);
        if (TREE || PAPER || number == 0) return;
        if (task instanceof FutureTask) {
            note(task, Tasks.FUTURE, number);
        } else if (task instanceof ForkJoinTask) {
            note(task, Tasks.FORKED, number);
        } else {
            submitted0(task, number);
        }
    }

    /** It is not taken, after all: whoever runs the task later does so on somebody else's behalf. */
    @Hidden @DontInline
    public static void rejected(Object task, long p, int site) {
        pub(p, site);
        if (!LIVE || TREE || PAPER || task == null) return;
        if (task instanceof FutureTask) {
            forget(task, Tasks.FUTURE);
        } else if (task instanceof ForkJoinTask) {
            forget(task, Tasks.FORKED);
        } else {
            rejected0(task);
        }
    }

    /** What was noted in several places at once stays so. */
    private static void forget(Object task, long field) {
        long number = Memory.U.getLongVolatile(task, field);
        if (number != SEVERAL) Memory.U.compareAndSetLong(task, field, number, 0);
    }

    private static void note(Object task, long field, long number) {
        Unsafe u = Memory.U;
        if (u.compareAndSetLong(task, field, 0, number)) return;
        if (u.getLongVolatile(task, field) != number) u.putLongVolatile(task, field, SEVERAL);
    }

    /** The frame with slot `p` runs a task: it has been called, as it were, from where that was submitted. */
    @Hidden @DontInline
    public static void runs(Object task, long p, int site) {
        pub(p, site);
        if (!LIVE || TREE || PAPER || task == null) return;
        long number = 0;
        if (task instanceof FutureTask) {
            // A periodic one comes again.
            number = Memory.U.getLongVolatile(task, Tasks.FUTURE);
            if (number == 0) return;
        } else if (task instanceof ForkJoinTask) {
            // It may be forked again.
            number = Memory.U.getLongVolatile(task, Tasks.FORKED);
            if (number == 0) return;
            if (number != SEVERAL && !Memory.U.compareAndSetLong(task, Tasks.FORKED, number, 0)) return;
        }
        Thread t = Thread.currentThread();
        if (number == SEVERAL || t.$ts == 0 || !owns(t, p)) return;
        int m = Memory.U.getInt(METHODS + ((long) site << INT_BITS));
        long c = handed0(t.$ts, task, number, p, m);
        if (c != 0) remember(Memory.U, p, m, c);
    }

    /** It has done with the task. */
    @Hidden @ForceInline
    public static void ran(long p, int site) {
        forget(p);
        pub(p, site);
    }

    /** What is submitted next is a virtual thread's own continuation, and no task. */
    @Hidden @DontInline
    public static void schedules(long p, int site) {
        if (LIVE) Thread.currentThread().$cx = SCHEDULING;
        pub(p, site);
    }

    /** The current thread's record if slot `p` is one of its own; 0: none. */
    private static long mine(long p) {
        Thread t = Thread.currentThread();
        return t.$ts != 0 && owns(t, p) ? t.$ts : 0;
    }

    // ---- a context that goes on elsewhere ---------------------------------------------------------

    /** The frame with slot `p` has been called, as it were, from where `number` was taken. */
    @Hidden @DontInline
    public static void scope(long number, long p, int site) {
        if (!LIVE || TREE || PAPER || number == 0) return;
        int m = Memory.U.getInt(METHODS + ((long) site << INT_BITS));
        long c = scope0(number, m);
        if (c != 0) remember(Memory.U, p, m, c);
    }

    /** From now on it has been called by its caller. */
    @Hidden @DontInline
    public static void scopeEnd(long p, int site) {
        forget(p);
    }

    /** Whatever the frame with slot `p` was given as its context: it is the one that its caller says. */
    @Hidden @ForceInline
    private static void forget(long p) {
        if (LIVE && !TREE && !PAPER) remember(Memory.U, p, 0, 0);
    }

    /** An event of the program's own. */
    @Hidden @DontInline
    public static void event(String kind, long value, long p, int site) {
        if (!LIVE || kind == null || !isOpen(OWN)) return;
        Thread t = Thread.currentThread();
        long number = current(t, p, site);
        if (number == 0) return;
        String[] known = kinds;
        int place = known == null ? -1 : placeOf(kind, known);
        Unsafe u = Memory.U;
        int type = place < 0 ? 0 : u.getInt(kindTypes + ((long) place << INT_BITS));
        long index = t.$ev;
        long byType = type == 0 || index == 0 ? 0 : u.getLong(index + INDEX_BY_TYPE);
        long cell = byType == 0 ? 0 : find(u, byType, number, type);
        if (cell == 0) {
            event0(t.$ts, number, kind, value, known, place);
        } else {
            u.putLong(cell + EVENT_CELL_COUNT, u.getLong(cell + EVENT_CELL_COUNT) + 1);
            if (value > 0) u.putLong(cell + EVENT_CELL_VALUE, u.getLong(cell + EVENT_CELL_VALUE) + value);
            if (STREAM) stream(t, type, number, value);
        }
        if (VERIFY) compare(t, number, 0);
    }

    /**
     * Where the array has a text, or room for it; below 0: it is too long. No two places have the same text. Not by
     * methods of String, which may have hooks.
     */
    private static int placeOf(String text, String[] known) {
        Unsafe u = Memory.U;
        byte[] bytes = (byte[]) u.getReference(text, Texts.BYTES);
        if (bytes.length > LONGEST_KIND) return -1;
        int hash = bytes.length;
        for (int i = 0; i < bytes.length; i++) hash = 31 * hash + bytes[i];
        int mask = known.length - 1;
        int place = hash * (int) (MULTIPLIER >>> 32) >>> 16 & mask;
        for (; ; place = place + 1 & mask) {
            String at = known[place];
            if (at == null || at == text || isSame(u, at, text, bytes)) return place;
        }
    }

    private static boolean isSame(Unsafe u, String at, String text, byte[] bytes) {
        byte[] others = (byte[]) u.getReference(at, Texts.BYTES);
        if (others.length != bytes.length) return false;
        for (int i = 0; i < bytes.length; i++) {
            if (others[i] != bytes[i]) return false;
        }
        return u.getByte(at, Texts.CODER) == u.getByte(text, Texts.CODER);
    }

    /** Initialised when a kind of events is looked for: where the parts of a String are. */
    private static final class Texts {
        static final long BYTES = Memory.U.objectFieldOffset(String.class, "value");
        static final long CODER = Memory.U.objectFieldOffset(String.class, "coder");
    }

    /** In place of hooks of an earlier time, which are in a class that comes back: see `silence` in the agent. */
    public static final class Was {
        // In place of a call of the program: its slot is not known, so the VM is asked.

        @Hidden
        public static long asked(long p, int site) {
            return LucceRt.asked();
        }

        @Hidden
        public static void asked(String kind, long value, long p, int site) {
            LucceRt.told(kind, value);
        }

        @Hidden @DontInline
        public static void asked(Unsafe u, boolean absolute, long time, long p, int site) {
            long since = System.nanoTime();
            u.park(absolute, time);
            LucceRt.parked(since);
        }

        @Hidden @DontInline
        public static void asked(JavaLangAccess threads, long p, int site) {
            long since = System.nanoTime();
            threads.parkVirtualThread();
            LucceRt.parked(since);
        }

        @Hidden @DontInline
        public static void asked(JavaLangAccess threads, long time, long p, int site) {
            long since = System.nanoTime();
            threads.parkVirtualThread(time);
            LucceRt.parked(since);
        }

        @Hidden
        public static long entered() { return 0; }

        @Hidden
        public static long entered(int id) { return 0; }

        @Hidden
        public static void was(long p) { }

        @Hidden
        public static void was(int site) { }

        @Hidden
        public static void was(long p, int site) { }

        @Hidden
        public static void was(long p, int site, int inner) { }

        @Hidden
        public static void was(long number, long p, int site) { }

        @Hidden
        public static void was(int bytes, long p, int site) { }

        @Hidden
        public static void was(int other, int bytes, long p, int site) { }

        @Hidden
        public static void was(Class<?> type, long p) { }

        @Hidden
        public static void was(Thread t, long p, int site) { }

        @Hidden
        public static void was(Object made, long p, int site) { }

        @Hidden
        public static void was(Object made, int site) { }

        @Hidden
        public static void was(Object[] made, long p, int site) { }

        @Hidden
        public static void was(Object[] made, int site) { }

        @Hidden
        public static void was(byte[] made, long p, int site) { }

        @Hidden
        public static void was(byte[] made, int site) { }

        @Hidden
        public static void was(boolean[] made, long p, int site) { }

        @Hidden
        public static void was(boolean[] made, int site) { }

        @Hidden
        public static void was(short[] made, long p, int site) { }

        @Hidden
        public static void was(short[] made, int site) { }

        @Hidden
        public static void was(char[] made, long p, int site) { }

        @Hidden
        public static void was(char[] made, int site) { }

        @Hidden
        public static void was(int[] made, long p, int site) { }

        @Hidden
        public static void was(int[] made, int site) { }

        @Hidden
        public static void was(float[] made, long p, int site) { }

        @Hidden
        public static void was(float[] made, int site) { }

        @Hidden
        public static void was(long[] made, long p, int site) { }

        @Hidden
        public static void was(long[] made, int site) { }

        @Hidden
        public static void was(double[] made, long p, int site) { }

        @Hidden
        public static void was(double[] made, int site) { }
    }

    // In place of what parks a thread, where that is an event. A site below 0: in a class out of scope.

    @Hidden @DontInline
    public static void park(Unsafe u, boolean absolute, long time, long p, int site) {
        long since = parks(p, site);
        u.park(absolute, time);
        parked(p, site, since);
    }

    @Hidden @DontInline
    public static void park(JavaLangAccess threads, long p, int site) {
        long since = parks(p, site);
        threads.parkVirtualThread();
        parked(p, site, since);
    }

    @Hidden @DontInline
    public static void park(JavaLangAccess threads, long time, long p, int site) {
        long since = parks(p, site);
        threads.parkVirtualThread(time);
        parked(p, site, since);
    }

    @Hidden
    private static long parks(long p, int site) {
        calls(p, site);
        return System.nanoTime();
    }

    /** Before a call, in scope or not. */
    @ForceInline
    private static void calls(long p, int site) {
        if (site < 0) {
            restore(p);
        } else {
            pub(p, site);
        }
    }

    // Of Was, which there is one of for all editions.

    @Hidden
    static long asked() {
        return LIVE ? asked0() : 0;
    }

    @Hidden
    static void told(String kind, long value) {
        if (!LIVE || kind == null || !isOpen(OWN)) return;
        long number = told0(kind, value);
        if (VERIFY && number != 0) compare(Thread.currentThread(), number, 0);
    }

    @Hidden
    static void parked(long since) {
        parked(0, -1, since);
    }

    @Hidden
    private static void parked(long p, int site, long since) {
        if (!LIVE || !isOpen(LOCK)) return;
        long passed = System.nanoTime() - since;
        Thread t = Thread.currentThread();
        if (!known(t)) return;
        long number = site < 0 ? 0 : current(t, p, site);
        if (number == 0 && site >= 0) return;
        parked0(t.$ts, number, t, passed);
        if (VERIFY && site >= 0) compare(t, number, 0);
    }

    // ---- reading and writing: around calls of natives, see `io` in the agent --------------------------
    //
    // A site below 0 is an operation, in a class out of scope.

    @Hidden @DontInline
    public static void io(long p, int site) {
        ioBegins(0, p, site);
    }

    @Hidden @DontInline
    public static void ioOfByte(long p, int site) {
        ioBegins(1, p, site);
    }

    @Hidden @DontInline
    public static void ioOfLast(int other, int bytes, long p, int site) {
        ioBegins(bytes, p, site);
    }

    @Hidden @DontInline
    public static void ioOfLastButOne(int bytes, int other, long p, int site) {
        ioBegins(bytes, p, site);
    }

    /** The time and the bytes are kept in the thread's record: natives call none of these in between. */
    @Hidden
    private static void ioBegins(long bytes, long p, int site) {
        calls(p, site);
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (!known(t)) return;
        Memory.U.putLong(t.$ts + IO_SINCE, isOpen(IO) ? System.nanoTime() : 0);
        Memory.U.putLong(t.$ts + IO_BYTES, bytes);
    }

    /** -1: the end of it; below: nothing was done. */
    @Hidden @DontInline
    public static void ioRead(int bytes, long p, int site) {
        if (bytes >= -1) ioEnds(Math.max(bytes, 0), p, site);
    }

    @Hidden @DontInline
    public static void ioRead(long bytes, long p, int site) {
        if (bytes >= -1) ioEnds(Math.max(bytes, 0), p, site);
    }

    @Hidden @DontInline
    public static void ioReadByte(int b, long p, int site) {
        ioEnds(b < 0 ? 0 : 1, p, site);
    }

    /** Moved nothing; below 0: nothing was done. */
    @Hidden @DontInline
    public static void ioPassed(int answer, long p, int site) {
        if (answer >= 0) ioEnds(0, p, site);
    }

    @Hidden @DontInline
    public static void ioWritten(long p, int site) {
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (t.$ts != 0) ioEnds(Memory.U.getLong(t.$ts + IO_BYTES), p, site);
    }

    @Hidden
    private static void ioEnds(long bytes, long p, int site) {
        if (!LIVE || !isOpen(IO)) return;
        Thread t = Thread.currentThread();
        if (t.$ts == 0) return;
        long since = Memory.U.getLong(t.$ts + IO_SINCE);
        if (since == 0) return;
        long passed = System.nanoTime() - since;
        Memory.U.putLong(t.$ts + IO_SINCE, 0);
        long number = site < 0 ? 0 : current(t, p, site);
        if (number == 0 && site >= 0) return;
        io0(t.$ts, number, site, bytes, passed);
        if (VERIFY && site >= 0) compare(t, number, 0);
    }

    // ---- objects of which the code does not say the class ---------------------------------------------
    //
    // Natives make them, or compiled code in their place; or code that traces do not show, hidden classes
    // above all, which has no sites: a site below 0. Then the innermost frame that they show makes the
    // object, at the site that it calls from: the slot below `p` has it, as `p` is the one that the code
    // would have itself. Such a class has a word in a field of its own, see `types` in the agent.

    @Hidden @DontInline
    public static void made(Object a, long p, int site) {
        if (LIVE && a != null) count(a, a.getClass(), -1, p, site, 0);
    }

    /** In methods that have not called yet. */
    @Hidden @DontInline
    public static void made(Object a, int site) {
        if (LIVE && a != null) count(a, a.getClass(), -1, enter(), site, 0);
    }

    /** An array with all that it holds. */
    @Hidden @DontInline
    public static void madeAll(Object a, long p, int site) {
        if (LIVE && a != null) count(a, a.getClass(), sizeOfAll(a), p, site, 0);
    }

    /** A text with its bytes, or an array of such texts. */
    @Hidden @DontInline
    public static void madeTexts(Object a, long p, int site) {
        if (!LIVE || a == null) return;
        made(a, p, site);
        if (a instanceof String) {
            made(Memory.U.getReference(a, Texts.BYTES), p, site);
        } else if (a instanceof Object[]) {
            Object[] texts = (Object[]) a;
            for (int i = 0; i < texts.length; i++) {
                if (texts[i] instanceof String) madeTexts(texts[i], p, site);
            }
        }
    }

    /** By Array.newInstance. */
    @Hidden @DontInline
    public static void reflected(Object a, long p, int site) {
        if (LIVE && !isForCopy(p)) made(a, p, site);
    }

    @Hidden @DontInline
    public static void reflected(Object a, int site) {
        if (LIVE && !isForCopy(enter())) made(a, site);
    }

    /** Whether the frame with slot `p` was called by Arrays.copyOf or copyOfRange: their callers count. */
    private static boolean isForCopy(long p) {
        int caller = methodOf(Memory.U.getInt(p - SLOT + BASE));
        return caller != 0 && (caller == methodOf(COPY_OF) || caller == methodOf(COPY_OF_RANGE));
    }

    private static int methodOf(int site) {
        return Memory.U.getInt(METHODS + ((long) site << INT_BITS));
    }

    /** Before a call of `clone` of some class, in code that traces show or not. */
    @Hidden @DontInline
    public static void clones(Object a, long p, int site) {
        if (site >= 0) pub(p, site);
        if (!LIVE || a == null) return;
        Thread t = Thread.currentThread();
        if (!known(t)) return;
        Class<?> type = a.getClass();
        long word = type.$lc;
        if ((int) word == 0) word = learn0(type, a);
        Memory.U.putLong(t.$ts + CLONING, (word & CLASS_CLONES) != 0 ? p : -1);
    }

    /** Behind it: whether that was Object.clone itself. Calls in between have noted slots above `p`. */
    @Hidden @DontInline
    public static void cloned(Object a, long p, int site) {
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (t.$ts == 0 || Memory.U.getLong(t.$ts + CLONING) != p) return;
        Memory.U.putLong(t.$ts + CLONING, -1);
        made(a, p, site);
    }

    /** Behind a `new` in code that traces do not show. */
    @Hidden @DontInline
    public static void unseenNew(Class<?> type, long p) {
        if (LIVE) count(null, type, -1, p, UNSEEN, 0);
    }

    /** As counted: code that traces do not show has called. */
    @Hidden @DontInline
    public static void unseenCopy(Object a, long p, int site) {
        if (LIVE && a != null) count(a, a.getClass(), sizeOf(a), p, site, 1);
    }

    /**
     * Behind Throwable.fillInStackTrace: what the VM has noted there. The slots are right if an instruction
     * made the exception by calling a constructor: the agent asks the VM, once for each such instruction. A recording
     * of calls has no entry for what the VM throws, so it has none for traces.
     */
    @Hidden @DontInline
    public static void traced(Object thrown, long p, int site) {
        if (!LIVE || RECORD || !isOpen(ALLOC)) return;
        Thread t = Thread.currentThread();
        if (!known(t)) return;
        long text = Memory.U.getLong(t.$ts + TEXT);
        Memory.U.putLong(t.$ts + TEXT, 0);
        Object[] trace = (Object[]) Memory.U.getReference(thrown, Traces.BACKTRACE);
        if (trace == null) return;
        long bytes = sizeOfTrace(trace);
        long e = maker(t, thrown, trace);
        if (e == 0 || !makes(e, trace)) {
            int answer = traced0(t.$ts, thrown, trace, bytes, text);
            if (answer == TRACE_COUNTED) return;
            if (answer == TRACE_REMEMBER) remember(e, trace);
        }
        count(trace, Object[].class, bytes, p, site, 0);
    }

    /**
     * Where this thread keeps that the innermost instruction of `trace` makes exceptions, or may; among the sites of types,
     * see `typed`: [class's number << 32 | MAKER | version and bci, method's number + 1]. 0: nowhere. The VM itself may throw
     * what is left out at an instruction that calls a constructor.
     */
    private static long maker(Thread t, Object thrown, Object[] trace) {
        long copies = t.$ev == 0 ? 0 : Memory.U.getLong(t.$ev + INDEX_TYPED);
        if (copies == 0 || thrown instanceof LinkageError || thrown instanceof VirtualMachineError
                || thrown instanceof NullPointerException || !isKnown(trace)) {
            return 0;
        }
        long key = key(trace);
        return key == 0 ? 0 : typedLine(copies, key);
    }

    /** Methods, bcis and classes: as the VMs have it that are known. */
    private static boolean isKnown(Object[] trace) {
        return trace.length > 3 && trace[0] instanceof short[] && trace[1] instanceof int[]
                && trace[2] instanceof Object[] && ((Object[]) trace[2])[0] instanceof Class<?>;
    }

    private static long key(Object[] trace) {
        Class<?> type = (Class<?>) ((Object[]) trace[2])[0];
        int at = ((int[]) trace[1])[0];
        if (at < 0) return 0;
        long word = type.$lc;
        if (word == 0) word = named0(type);
        return word == 0 ? 0 : word & -1L << CLASS_NUMBER_SHIFT | (MAKER | at) & 0xffffffffL;
    }

    private static boolean makes(long e, Object[] trace) {
        return Memory.U.getLong(e) == key(trace) && Memory.U.getLong(e + COPY_VALUE) == method(trace);
    }

    private static long method(Object[] trace) {
        return (((short[]) trace[0])[0] & 0xffff) + 1;
    }

    private static void remember(long e, Object[] trace) {
        if (e == 0) return;
        Memory.U.putLong(e, 0);
        Memory.U.putLong(e + COPY_VALUE, method(trace));
        Memory.U.putLong(e, key(trace));
    }

    /** As pub, in a constructor of Throwable, before its trace is noted: {@code text} is its message, if it is a text. */
    @Hidden @DontInline
    public static void describes(Object text, long p, int site) {
        pub(p, site);
        if (!LIVE || !isOpen(ALLOC)) return;
        Thread t = Thread.currentThread();
        if (known(t)) Memory.U.putLong(t.$ts + TEXT, sizeOfText(text));
    }

    private static long sizeOfText(Object text) {
        if (!(text instanceof String)) return 0;
        long word = String.class.$lc;
        if ((int) word == 0) word = learn0(String.class, text);
        return ((int) word & -OBJECT_ALIGNMENT) + sizeOf(Memory.U.getReference(text, Texts.BYTES));
    }

    /** Initialised when the first trace is made. */
    private static final class Traces {
        static final long BACKTRACE = Memory.U.objectFieldOffset(Throwable.class, "backtrace");
    }

    /** Arrays of what it has of some frames, and the same of those below. */
    private static long sizeOfTrace(Object[] chunk) {
        long sum = sizeOf(chunk);
        for (int i = 0; i < chunk.length; i++) {
            Object part = chunk[i];
            if (part instanceof Object[] && isTrace((Object[]) part)) {
                sum += sizeOfTrace((Object[]) part);
            } else if (part instanceof Object[] || part instanceof short[] || part instanceof int[]
                    || part instanceof long[]) {
                sum += sizeOf(part);
            }
        }
        return sum;
    }

    private static boolean isTrace(Object[] part) {
        return part.length > 0 && part[0] instanceof short[];
    }

    /** {@code bytes}: below 0, the word of the class says it. */
    @Hidden @DontInline
    private static void count(Object a, Class<?> type, long bytes, long p, int site, int returned) {
        if (!RECORD && !isOpen(ALLOC)) return;
        Thread t = Thread.currentThread();
        if (site < 0) {
            p -= SLOT;
            site = caller(t, p);
            if (site == 0) return;
        }
        long word = type.$lc;
        if ((int) word == 0) word = learn0(type, a);
        if (bytes < 0) bytes = (int) word < 0 ? sizeOf(a) : (int) word & -OBJECT_ALIGNMENT;
        int typed = word == 0 ? 0 : typed(t, site, (int) (word >>> CLASS_NUMBER_SHIFT));
        if (typed == 0) {
            lost(1);
        } else {
            count(p, typed, bytes, returned);
        }
    }

    /** The site in the slot of the innermost frame that traces show; 0: there is none, or what happens is lost. */
    private static int caller(Thread t, long p) {
        int s = Memory.U.getInt(p + BASE);
        if (s == 0 && known(t) && repair(t.$ts, p, p)) s = Memory.U.getInt(p + BASE);
        if (s == ENTRY) return 0;
        if (!isCall(s)) {
            lost(1);
            return 0;
        }
        return s;
    }

    /**
     * The site for objects of a type that are made at `site`; 0: there is none. The thread has a copy of
     * those that it asked for lately: [site << 32 | type, typed site].
     */
    private static int typed(Thread t, int site, int type) {
        Unsafe u = Memory.U;
        long key = (long) site << 32 | type;
        long index = t.$ev;
        long copies = index == 0 ? 0 : u.getLong(index + INDEX_TYPED);
        if (copies == 0) return (int) typed0(site, type);
        long e = typedLine(copies, key);
        if (u.getLong(e) == key) return (int) u.getLong(e + COPY_VALUE);
        long typed = typed0(site, type);
        u.putLong(e, 0);
        u.putLong(e + COPY_VALUE, typed);
        if (typed != 0) u.putLong(e, key);
        return (int) typed;
    }

    /** Where a copy for this key lies; low bits of {@code copies} say how many there are. */
    @ForceInline
    private static long typedLine(long copies, long key) {
        long low = (1 << COPY_BITS) - 1;
        return (copies & ~low) + (key * MULTIPLIER >>> -(copies & low) << COPY_BITS);
    }

    @ForceInline
    private static void count(long p, int site, long bytes) {
        count(p, site, bytes, 0);
    }

    /**
     * {@code returned}: frames that are not there any more, counted on whose behalf.
     *
     * <p>Not inlined: it would be most of the code of methods that allocate.
     */
    @Hidden @DontInline
    private static void count(long p, int site, long bytes, int returned) {
        if (RECORD) tell(TOLD_EVENT, p, site);
        if (RECORD && returned > 0) tell(TOLD_RETURNED, p, 0);
        if (!isOpen(ALLOC)) return;
        Thread t = Thread.currentThread();
        long cell = cell(t, p, site);
        if (cell == 0) return;
        Unsafe u = Memory.U;
        u.putLong(cell + CELL_COUNT, u.getLong(cell + CELL_COUNT) + 1);
        if (bytes != 0) u.putLong(cell + CELL_BYTES, u.getLong(cell + CELL_BYTES) + bytes);
        if (STREAM) stream(t, 0, u.getLong(cell + CELL_NUMBER), bytes);
        if (VERIFY) compare(t, u.getLong(cell + CELL_NUMBER), returned);
    }

    /**
     * An event that was counted: `Entry` and `Place` in the agent's crate `stream` say what is written,
     * and where. What was lost has no number.
     */
    @Hidden
    private static void stream(Thread t, int type, long number, long value) {
        if (number == 0) return;
        Unsafe u = Memory.U;
        long place = t.$ts + PLACE;
        // Full: not even the clock is read.
        if (u.getLong(place + PLACE_END) < 0) return;
        long now = System.nanoTime();
        long passed = now - u.getLong(place + PLACE_CLOCK);
        if (isFull(place) || passed >>> TIME_BITS != 0) {
            room0(t.$ts, now);
            if (isFull(place)) return;
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
    private static boolean isFull(long place) {
        Unsafe u = Memory.U;
        return u.getLong(place + PLACE_NEXT) + LONGEST > u.getLong(place + PLACE_END);
    }

    /** Every so many events the number is compared with the VM's own stack trace. */
    private static void compare(Thread t, long number, int returned) {
        long left = t.$ts + STATE_LEFT;
        int n = Memory.U.getInt(left) - 1;
        Memory.U.putInt(left, n);
        if (n <= 0) verify(t.$ts, number, returned);
    }

    /**
     * This thread's counters for events at `site`: [number, count, bytes], or by type
     * [number, type, count, value]; 0: not known.
     *
     * <p>Most events come the way that another one has come lately: from a frame whose context was known,
     * by the same calls. The thread has copies of such ways, each in a line of its own:
     *
     * <pre>
     *                long the known context; 0: an empty line
     * WAY_CALL       int  the event's site,               int the last call's site, 0: none
     * WAY_BEFORE     int  the site of the call before it, int of the one before that
     * WAY_CELL       long the cell
     * WAY_CONTEXTS   long contexts of the called frames, the last one first: 3
     * </pre>
     */
    @Hidden @ForceInline
    private static long cell(Thread t, long p, int site) {
        Unsafe u = Memory.U;
        if (TREE && !owns(t, p)) {
            lost(1);
            return 0;
        }
        int m = u.getInt(METHODS + ((long) site << INT_BITS));
        long w = u.getLong(p - SLOT + BASE);
        if (TREE || PAPER || t.$ev == 0) {
            long c = PAPER ? number(u, p, m) : (int) (w >>> TAG_SHIFT) == m ? u.getLong(p - SLOT + CONTEXT + BASE) : walk(p, m, 0);
            return cellOf(t, c, site);
        }
        // The frames from here down to the nearest one whose context is known, three at most.
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
                    // Further down: from now on it is known.
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

    /** Whether a slot's site is one that code calls from. */
    @ForceInline
    private static boolean isCall(int site) {
        return site != 0 && site != ENTRY && site != LOST;
    }

    /** The same for a way that the thread has no copy of: from now on it has one. */
    @Hidden @DontInline
    private static long cell(Thread t, long p, int m, int site, long c, long way, long before) {
        Unsafe u = Memory.U;
        boolean here = way >>> 32 == 0;
        long cell = cellOf(t, here ? c : walk(p, m, t.$ev), site);
        if (cell == 0) return 0;
        long index = t.$ev;
        long hash = c * MULTIPLIER + way * SECOND_MULTIPLIER + before * THIRD_MULTIPLIER;
        long e = u.getLong(index + INDEX_WAYS) + (hash >>> (int) u.getLong(index + INDEX_WAYS_SHIFT) << WAY_BITS);
        // Not to be read until all of it is there: an exception may come in between.
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
     * This thread's counters for events at `site` in the context `c`. An entry of the index is
     * [context, low bits of the site | cell]: a context is that of one method, whose sites follow
     * each other, so the low bits tell them apart.
     */
    @Hidden @DontInline
    private static long cellOf(Thread t, long c, int site) {
        long index = t.$ev;
        long cell = index == 0 ? 0 : find(Memory.U, index, c, site);
        return cell != 0 ? cell : insert(t, c, site);
    }

    /** The cell in an index for a context and a site, or a number and a type; 0: none. */
    @ForceInline
    private static long find(Unsafe u, long index, long c, int low) {
        long slot = (c ^ (long) low << 64 - LOW_SITE_BITS) * MULTIPLIER >>> (int) u.getLong(index + TABLE_SHIFT);
        long mask = u.getLong(index + TABLE_MASK);
        for (; ; slot = slot + 1 & mask) {
            long e = index + TABLE_ENTRIES + (slot << INDEX_ENTRY_BITS);
            long found = u.getLong(e);
            if (found == c) {
                long at = u.getLong(e + 8);
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

    /** The context of the frame of method `m` with slot `p`, where an event happens; 0: unknown. */
    @Hidden
    private static long walk(long p, int m, long index) {
        return walk(p, m, index, p);
    }

    /**
     * The context of the frame of method `m` with slot `p`, from the nearest one that is known; 0: unknown.
     * {@code pointer}: the slot of the frame that runs; 0: the VM is not asked, which must know that.
     */
    @Hidden @DontInline
    private static long walk(long p, int m, long index, long pointer) {
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
                c = TREE ? child(u, 0, ENTRY, n) : root(mine(p), n);
                remember(u, a, n, c);
                break;
            }
            if (s == LOST) return 0;
            if (s == 0) {
                // A frame that was entered before the hooks were live: the VM knows where it is.
                Thread t = Thread.currentThread();
                if (pointer == 0 || !known(t) || !repair(t.$ts, a - SLOT, pointer)) return 0;
                // Should an event have happened meanwhile, the thread may have another one.
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
            c = TREE ? child(u, c, s, n) : step(u, c, s, n, copies, shift);
            remember(u, a, n, c);
        }
        return c;
    }

    /** Long.rotateLeft has hooks of its own where entries are counted. */
    @ForceInline
    private static long rotated(long word) {
        return word << ROTATION | word >>> 64 - ROTATION;
    }

    @ForceInline
    private static void remember(Unsafe u, long a, int n, long c) {
        u.putLong(a - SLOT + CONTEXT + BASE, c);
        u.putInt(a - SLOT + TAG + BASE, c == 0 ? 0 : n);
    }

    /**
     * One call further. {@code copies}: the thread's own ones of transitions that it took lately, [key, delta],
     * because the table that all threads share is larger than a processor's caches; 0: none.
     */
    @Hidden @ForceInline
    private static long step(Unsafe u, long c, int site, int callee, long copies, int shift) {
        long place = (long) site << METHOD_BITS | callee;
        long key = c >>> (int) u.getLong(tables(GRAPH_VERSION_SHIFT)) << SITE_BITS + METHOD_BITS | place;
        long e = copies + (key * MULTIPLIER >>> shift << COPY_BITS);
        if (copies != 0 && u.getLong(e) == key) return c + u.getLong(e + COPY_VALUE);
        return step(u, c, site, callee, key, copies == 0 ? 0 : e);
    }

    /** A word of the block. Not a sum of constants, of which the Java compiler would make a new one. */
    @ForceInline
    private static long tables(int offset) {
        return TABLES + offset;
    }

    /** The encoder's fast path, see callgraph's RawTables. */
    @Hidden @DontInline
    private static long step(Unsafe u, long c, int site, int callee, long key, long copy) {
        long table = u.getLongAcquire(null, tables(GRAPH_CALLS));
        long slot = key * MULTIPLIER >>> (int) u.getLong(table + TABLE_SHIFT);
        long mask = u.getLong(table + TABLE_MASK);
        for (; ; slot = slot + 1 & mask) {
            long e = table + TABLE_ENTRIES + (slot << TRANSITION_BITS);
            long k = u.getLongAcquire(null, e + TRANSITION_KEY);
            if (k == key) {
                long delta = u.getLong(e + TRANSITION_DELTA);
                if (delta == ANCHORING) break;
                // The table has just moved, and its memory is gone.
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
            long to = u.getLongAcquire(null, e + ANCHOR_TO);
            if (to == 0) break;
            if (u.getLongAcquire(null, e + ANCHOR_CONTEXT) == c
                    && u.getLongAcquire(null, e + ANCHOR_PLACE) == place
                    && u.getLong(e + ANCHOR_TO) == to) return to;
        }
        return step0(c, site, callee);
    }

    // ---- what is looked up at entry, for comparison ---------------------------------------------------

    /** Method `m` was entered, its slot is `p`. */
    @Hidden
    private static void entered(Thread t, long p, int m) {
        if (p >>> SCRATCH_BITS == 0 || t.$ts == 0 && !attached(t, p)) return;
        Unsafe u = Memory.U;
        int s = u.getInt(p - SLOT + BASE);
        int caller = u.getInt(METHODS + ((long) s << INT_BITS));
        // Otherwise the caller is a frame that looked nothing up: a native one, say.
        boolean known = caller != 0 && u.getInt(p - 2 * SLOT + TAG + BASE) == caller;
        if (TREE) {
            if (known) {
                remember(u, p, m, child(u, u.getLong(p - 2 * SLOT + CONTEXT + BASE), s, m));
            } else {
                walk(p, m, 0);
            }
        } else if (known) {
            update(u, p, s, caller, m);
        } else {
            enteredAll(p, m);
        }
    }

    /** Only threads from before the start have no record yet. Those that have ended get none. */
    @Hidden @DontInline
    private static boolean attached(Thread t, long p) {
        return p - bootStacksEnd < 0 && known(t);
    }

    // ---- a calling context tree per thread, for comparison -----------------------------------------
    //
    // A node's number stands where a context stands otherwise. It means something to its own thread only.

    /** The current thread's node for `callee`, called at `site` in `node`; 0: no room. See `tree`. */
    @Hidden
    private static long child(Unsafe u, long node, int site, int callee) {
        long ts = Thread.currentThread().$ts;
        if (ts == 0) return 0;
        long table = u.getLong(ts + STATE_TREE);
        if (table == 0) return child0(ts, node, site, callee);
        long place = (long) site << METHOD_BITS | callee;
        long slot = (place ^ rotated(node)) * MULTIPLIER >>> (int) u.getLong(table + TABLE_SHIFT);
        long mask = u.getLong(table + TABLE_MASK);
        for (; ; slot = slot + 1 & mask) {
            long e = table + TABLE_ENTRIES + (slot << TREE_ENTRY_BITS);
            long k = u.getLong(e);
            if (k == place && u.getInt(e + TREE_PARENT) == (int) node) return u.getInt(e + TREE_CHILD);
            if (k == 0) return child0(ts, node, site, callee);
        }
    }

    // ---- the paper's scheme, for comparison -----------------------------------------------------------
    //
    // A frame's callId lies in its caller's slot, where a context stands otherwise; beside that slot its
    // version, and the number that our graph has for the context, 0: not asked for yet. callId LOST_CALL: no
    // long holds it; version 0 then: nobody knows who called.

    /** The frame with slot `p` was entered, and so were those below it that had no hook at their entry. */
    @Hidden @DontInline
    private static void enteredAll(long p, int m) {
        Unsafe u = Memory.U;
        long a = p;
        int n = m;
        for (; ; ) {
            long w = u.getLong(a - SLOT + BASE);
            if ((int) (w >>> TAG_SHIFT) == n) break;
            int s = (int) w;
            if (s == ENTRY) {
                update0(a, s, n);
                break;
            }
            if (s == LOST) {
                locals(u, a, n, LOST_CALL, 0);
                break;
            }
            if (s == 0) {
                Thread t = Thread.currentThread();
                if (!known(t) || !repair(t.$ts, a - SLOT, p)) return;
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
            update(u, a, s, caller, n);
        }
    }

    /** Algorithm 1, where it changes nothing; otherwise in the agent, under a lock. See `paper`. */
    @Hidden
    private static void update(Unsafe u, long p, int site, int caller, int callee) {
        long c = u.getLong(p - 2 * SLOT + CONTEXT + BASE);
        long v = u.getLong(p - 2 * SLOT + BASE + beside + BESIDE_VERSION);
        if (v == 0) {
            locals(u, p, callee, LOST_CALL, 0);
            return;
        }
        long g = graph;
        long updates = u.getLongAcquire(null, g + PAPER_UPDATES);
        long nodes = u.getLong(g + PAPER_NODES);
        if ((updates & 1) == 0 && u.getLong(nodes + ((long) caller << NODE_BITS) + NODE_VERSION) == v) {
            long inputs = u.getLong(nodes + ((long) callee << NODE_BITS) + NODE_INPUTS);
            long table = u.getLong(g + PAPER_TABLE);
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
                locals(u, p, callee, (c | av | sum) < 0 ? LOST_CALL : sum, now);
                return;
            }
        }
        update0(p, site, callee);
    }

    /** Of the frame of method `m` with slot `p`. */
    @ForceInline
    private static void locals(Unsafe u, long p, int m, long c, long v) {
        u.putLong(p - SLOT + CONTEXT + BASE, c);
        u.putLong(p - SLOT + BASE + beside + BESIDE_VERSION, v);
        u.putLong(p - SLOT + BASE + beside + BESIDE_NUMBER, 0);
        u.putInt(p - SLOT + TAG + BASE, m);
    }

    /** The graph's number for what the local variables of the frame with slot `p` say; 0: lost. */
    @Hidden
    private static long number(Unsafe u, long p, int m) {
        if (p >>> SCRATCH_BITS == 0) return 0;
        if (u.getInt(p - SLOT + TAG + BASE) != m) {
            enteredAll(p, m);
            if (u.getInt(p - SLOT + TAG + BASE) != m) return 0;
        }
        if (u.getLong(p - SLOT + CONTEXT + BASE) < 0) return 0;
        long c = u.getLong(p - SLOT + BASE + beside + BESIDE_NUMBER);
        return c != 0 ? c : number0(p, m);
    }

    /** Whether slot `p` is one of the thread's. */
    @ForceInline
    private static boolean owns(Thread t, long p) {
        long ts = t.$ts;
        if (ts == 0) return true;
        return p - Memory.U.getLong(ts + STATE_START) >= 0 && p - Memory.U.getLong(ts + STATE_END) < 0;
    }

    // ---- classes that never reach the class file hook -------------------------------------------

    /** Of the flags of `ClassLoader.defineClass0`: the VM tells agents nothing of the class. */
    private static final int HIDDEN_CLASS = 2;

    /** In place of ClassLoader.defineClass0: hidden classes that call must restore the pointer. Others reach the agent. */
    @Hidden
    public static Class<?> defineClass0(
            ClassLoader loader, Class<?> lookup, String name, byte[] b, int off, int len,
            ProtectionDomain pd, boolean initialize, int flags, Object classData) {
        // A Java agent that comes first on the command line runs before the hooks are live.
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

    /** In place of TransformerManager.transform: Java agents are given classes without hooks. See `java_agents`. */
    @Hidden
    public static native byte[] transform(
            Object manager, Module module, ClassLoader loader, String name, Class<?> changed,
            ProtectionDomain domain, byte[] bytes);

    /** For the recording of calls. */
    @Hidden @DontInline
    private static void tell(int what, long p, int site) {
        Thread t = Thread.currentThread();
        if (t != null && known(t)) record(t.$ts, what, p, site);
    }

    /** Whether the agent has a record of the thread. Threads from before the start get theirs here. */
    private static boolean known(Thread t) {
        if (t.$ts == 0) attach(t, t.$fp);
        return t.$ts != 0;
    }

    // ---- slow paths, in the agent ---------------------------------------------------------------

    /** No native method may be called before the VM is initialised: takes one of the stacks laid by. */
    private static synchronized long firstOfBoot() {
        long p = bootStacks;
        if (p == bootStacksEnd) return 0;
        bootStacks = p + bootStackSize;
        return p;
    }

    /** Gives `t` a record, and a stack unless it has one. */
    private static native void attach(Thread t, long pointer);

    /** Whether a Java method has called the one whose hook asks, by two methods of this class. */
    private static native boolean hasCaller();

    private static native long upcall(long ts, long p);

    private static native long upcallEnd(long ts, long q);

    private static native long root(long ts, int method);

    private static native long step0(long c, int site, int callee);

    private static native long child0(long ts, long node, int site, int callee);

    private static native void update0(long p, int site, int callee);

    private static native long number0(long p, int method);

    private static native long insert0(long ts, long c, int site);

    private static native boolean repair(long ts, long slot, long pointer);

    private static native void verify(long ts, long number, int returned);

    private static native void lost(int events);

    /** Code without hooks is about to call. */
    private static native void unsaid(boolean really);

    private static native void changed0();

    private static native void unmounting(Thread virtual, boolean really);

    private static native void submitted0(Object task, long number);

    private static native void rejected0(Object task);

    private static native long handed0(long ts, Object task, long number, long p, int method);

    private static native long scope0(long number, int method);

    private static native void room0(long ts, long now);

    private static native void event0(
            long ts, long number, String kind, long value, String[] known, int place);

    private static native void io0(long ts, long number, int site, long bytes, long passed);

    private static native int traced0(long ts, Object thrown, Object trace, long bytes, long text);

    private static native long named0(Class<?> type);

    private static native long learn0(Class<?> type, Object made);

    private static native long typed0(int site, int type);

    private static native void started0(long ts, Thread child);

    private static native long asked0();

    private static native long told0(String kind, long value);

    private static native void parked0(long ts, long number, Thread t, long passed);

    private static native void record(long ts, int what, long p, int site);

    private static native byte[] hidden(ClassLoader loader, byte[] b, int off, int len);
}
