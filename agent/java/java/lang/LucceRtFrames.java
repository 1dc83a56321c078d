package java.lang;

import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtVariant.*;
import static java.lang.LucceRtVmEntries.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks of frames: which slot a method has, and which call site its slot holds. Other helper classes, by job:
 *
 * <pre>
 * LucceRtVmEntries      methods that the VM or native code enters
 * LucceRtUntracked      calls of code without hooks
 * LucceRtForeign        stubs of java.lang.foreign
 * LucceRtPaths          the counter of an event, by a cache of recent call paths
 * LucceRtContexts       the context of a frame, from the nearest caller with a known one
 * LucceRtCounting       counting of events
 * LucceRtAllocations    objects and arrays, LucceRtObjects objects of other code, LucceRtTraces traces of exceptions
 * LucceRtCalls          entries of methods, LucceRtDurations waits and timed operations, LucceRtIo input and output
 * LucceRtProgramEvents  the program's own events
 * LucceRtTasks          contexts that continue elsewhere
 * LucceRtRequests       methods that receive requests, LucceRtTimes methods whose times are recorded
 * LucceRtNamed          named methods of a JVM without other hooks
 * LucceRtLocks          holders of locks for which threads wait, LucceRtOpen resources that are open
 * LucceRtClasses        classes that the VM does not report
 * LucceRtNatives        the agent's functions
 * LucceRtNoop           in place of the hooks of a class that comes back with them
 * </pre>
 *
 * <p>A slot is 16 bytes, in memory outside the heap. Its address is relative to BASE. So 0, the first value of a thread's
 * field, is a place that may be written also.
 *
 * <pre>
 * +0   int  site   call site of the slot's frame; 0: none yet; ENTRY: below the first frame;
 *                   VM_ENTRY: the VM has entered the frame above, and nobody has needed the caller yet
 * +4   int  tag    method of the context `ctx`; 0: none
 * +8   long ctx    memo: the context of the frame that was called from here
 * </pre>
 *
 * <p>These classes are compiled from their texts in several helper variants. The boot variant is defined before any Java
 * code runs, and only moves pointers, because Unsafe must not be used yet. When the VM is ready, the agent redefines all
 * of them at once to the live variant, or a variant that also verifies or writes a stream. Hence they have no field
 * initializers. Constants that the agent shares (offsets, and the meaning of numbers) are in its `shared_layout.rs`. The
 * build generates LucceRtLayout from them, and LucceRtVariant with the properties of a variant.
 *
 * <p>Nothing here allocates, locks or throws. All methods are hidden from stack traces.
 *
 * <p>Data of other threads is read without locks, and processors such as ARM may reorder the reads. Why each read is sound:
 * <pre>
 * METHODS               plain. The agent stores a site's method before the VM gets the class with the site. The site is in that
 *                       class's code, and the VM publishes classes and compiled code: a thread that has the site sees earlier
 *                       stores. There is a model of this (agent/models).
 * tables of the graph   acquire: their address, their keys, and the targets of anchors; all that was stored before these is read
 *                       after them. A model of the relaxed memory of C++ runs all interleavings (callgraph/tests/loom.rs).
 * shift of versions     plain. It is stored once, before the live variant exists.
 * the event mask        opaque. Its bits are one word, and no other read depends on them. The model shows that the word
 *                       finally has the requests of all threads that switch it.
 * kinds and their types plain. A place gets its type before its text, and never another one. A type without its text is not
 *                       read; for a text without its type the agent is asked. A text is a String, whose fields are final. There
 *                       is a model of this (agent/models).
 * waits for locks       acquire: the word of waits, then a wait's turn and its object. The agent ignores reports of another turn.
 * $lucceType of a class plain, one word of 64 bits: a number and a size. Natives look up the number's meaning under a lock.
 * slots, a thread's record, its index, its place in the stream: written by the thread itself and by natives that it calls. A
 *                       virtual thread takes them to another carrier; its scheduler passes it on.
 * static fields         stored before the live variant is installed, which happens in a safepoint.
 * </pre>
 */
public class LucceRtFrames {
    LucceRtFrames() {}

    /** First slots of stacks for the threads that exist before the VM is initialized. */
    static long bootStacks, bootStacksEnd, bootStackSize;
    /** Set when the first thread starts: then Thread.currentThread works. */
    static boolean threads;

    /** Initialized when the live variant first runs, so never too early. */
    static final class Memory {
        static final Unsafe U = Unsafe.getUnsafe();
        /** BASE, for methods that java.lang.Object has in place of these: see `inherited` of the crate `lucce-instrument`. */
        static final long BASE_ADDRESS = baseAddress();
    }

    /** Not a constant for the Java compiler: the agent replaces it when it makes this class live. */
    @Hidden
    static long baseAddress() {
        return BASE;
    }

    // Before every call, the caller stores where its callee's slot is. So nothing must be restored when a method returns
    // or throws: the pointer is then stale until the next call.

    /** Returns the slot of a method that was just entered. */
    @Hidden @ForceInline
    public static long enter() {
        if (LIVE) return Thread.currentThread().$lucceStack;
        if (!threads) return 0;
        Thread t = Thread.currentThread();
        if (t == null) return 0;
        if (t.$lucceStack == 0) t.$lucceStack = firstOfBoot();
        return t.$lucceStack;
    }

    /** Before a call: stores the call site, and the callee's slot. */
    @Hidden @ForceInline
    public static void publishSite(long p, int site) {
        if (LIVE) {
            // Not the form with an address, which is one more method to inline.
            Memory.U.putLong(null, p + BASE, site);
            Thread.currentThread().$lucceStack = p + SLOT;
        } else {
            setStack(p + SLOT);
        }
    }

    /**
     * As publishSite, in a method whose first and only call this is: it needs no local variable for its slot.
     */
    @Hidden @ForceInline
    public static void publishSite(int site) {
        if (LIVE) {
            Thread t = Thread.currentThread();
            long p = t.$lucceStack;
            Memory.U.putLong(null, p + BASE, site);
            t.$lucceStack = p + SLOT;
        } else {
            setStack(enter() + SLOT);
        }
    }

    /** As publishSite, in code that runs rarely: a call is less code for the compilers. */
    @Hidden @DontInline
    public static void publishRareSite(long p, int site) {
        publishSite(p, site);
    }

    @Hidden @DontInline
    public static void publishRareSite(int site) {
        publishSite(site);
    }

    /** Before a call by code without hooks: restores the callee's slot to that of the code's entry. */
    @Hidden @ForceInline
    public static void restore(long p) {
        if (LIVE) {
            Thread.currentThread().$lucceStack = p;
        } else {
            setStack(p);
        }
    }

    /** For the boot variant: frames from before the first thread have no slot. */
    private static void setStack(long p) {
        if (!threads || p >>> SCRATCH_BITS == 0) return;
        Thread t = Thread.currentThread();
        if (t != null) t.$lucceStack = p;
    }

    /** The agent brackets Java code that native code calls. */
    @Hidden
    static long openNativeFrame(int site) {
        long p = enter();
        if (LIVE) {
            Memory.U.putLong(p + BASE, site);
            Thread.currentThread().$lucceStack = p + SLOT;
        }
        return p;
    }

    /** As enter, if native code calls that no Java code has called: the first frame comes now. */
    @Hidden
    static long enterFromNative() {
        long p = enter();
        Thread t = Thread.currentThread();
        if (LIVE && hasState(t)) t.$lucceStack = firstSlot(t);
        return p;
    }

    /** Before a call of a native method that calls back: the native frame gets the next slot. */
    @Hidden @ForceInline
    public static void publishNative(long p, int site, int nativeSite) {
        if (LIVE) {
            Memory.U.putLong(p + BASE, site);
            Memory.U.putLong(p + SLOT + BASE, nativeSite);
            Thread.currentThread().$lucceStack = p + 2 * SLOT;
        } else {
            setStack(p + 2 * SLOT);
        }
    }

    /** As publishSite, in a method that runs on a carrier while the current thread may be a virtual thread. */
    @Hidden @DontInline
    public static void publishSwitching(long p, int site) {
        if (!LIVE) {
            setStack(p + SLOT);
            return;
        }
        Memory.U.putLong(p + BASE, site);
        Thread t = Thread.currentThread();
        if (t.$lucceState != 0 && ownsSlot(t, p)) t.$lucceStack = p + SLOT;
    }

    /**
     * Entry of VirtualThread.switchToCarrierThread. In some JDKs a virtual thread does some things as its carrier, on its
     * own stack: until the end of switchToVirtualThread its slots are the carrier's.
     */
    @Hidden @DontInline
    public static long toCarrier() {
        if (LIVE) swapStacks(Thread.currentThread(), Thread.currentCarrierThread());
        return 0;
    }

    /** Exit of VirtualThread.switchToVirtualThread. */
    @Hidden @DontInline
    public static void toVirtual(long unused) {
        if (LIVE) swapStacks(Thread.currentThread(), Thread.currentCarrierThread());
    }

    /** Replaces VirtualThread.notifyJvmtiHideFrames. */
    @Hidden @DontInline
    public static void hideFrames(Object thread, boolean hides) {}

    /**
     * Entry of a method that a pinned virtual thread calls in the middle of its unmount (JDK 21). A thread that asks the
     * VM for a stack would wait until no thread is being unmounted, so forever.
     */
    @Hidden @DontInline
    public static long enterPinned() {
        if (LIVE) setUnmounting(Thread.currentThread(), false);
        return enter();
    }

    @Hidden @DontInline
    public static void exitPinned(long p) {
        if (LIVE) setUnmounting(Thread.currentThread(), true);
    }

    private static void swapStacks(Thread a, Thread b) {
        long p = a.$lucceStack, state = a.$lucceState, index = a.$lucceCounters;
        a.$lucceStack = b.$lucceStack;
        a.$lucceState = b.$lucceState;
        a.$lucceCounters = b.$lucceCounters;
        b.$lucceStack = p;
        b.$lucceState = state;
        b.$lucceCounters = index;
    }

    /** Whether slot `p` is one of the thread's. */
    @ForceInline
    static boolean ownsSlot(Thread t, long p) {
        long ts = t.$lucceState;
        if (ts == 0) return true;
        return p - Memory.U.getLong(ts + STATE_START) >= 0 && p - Memory.U.getLong(ts + STATE_END) < 0;
    }

    /** Whether the agent has a record of the thread. Threads from before the start get their record here. */
    static boolean hasState(Thread t) {
        if (t.$lucceState == 0) addThread(t, t.$lucceStack);
        return t.$lucceState != 0;
    }

    /** Takes a reserved stack: no native method may be called before the VM is initialized. */
    private static synchronized long firstOfBoot() {
        long p = bootStacks;
        if (p == bootStacksEnd) return 0;
        bootStacks = p + bootStackSize;
        return p;
    }
}
