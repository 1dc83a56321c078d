package java.lang;

import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/** The hooks of methods that the VM or native code enters, in the middle of another method or first in a thread. */
public class LucceRtVmEntries {
    LucceRtVmEntries() {}

    /** Entry of a method that the VM may call in the middle of another one. */
    @Hidden @DontInline
    public static long enterVm() {
        if (!LIVE) return enter();
        Thread t = Thread.currentThread();
        if (!hasState(t)) return t.$lucceStack;
        return enterFromVm(t.$lucceState, t.$lucceStack);
    }

    /**
     * As enterVm, for a method that mostly ends before somebody needs its context: the VM is asked when a look-up finds
     * the site VM_ENTRY below the method's slot.
     */
    @Hidden @DontInline
    public static long enterVmLater() {
        if (!LIVE) return enter();
        Thread t = Thread.currentThread();
        if (!hasState(t)) return t.$lucceStack;
        long p = deferVmEntry(t.$lucceState, t.$lucceStack);
        // What the VM enters before the method's first call is above it.
        t.$lucceStack = p;
        return p;
    }

    /** Entry of a thread's first method. */
    @Hidden @DontInline
    public static long enterFirst() {
        if (!LIVE) return enter();
        Thread t = Thread.currentThread();
        return hasState(t) ? firstSlot(t) : t.$lucceStack;
    }

    static long firstSlot(Thread t) {
        return Memory.U.getLong(t.$lucceState + STATE_START) + SLOT;
    }

    /**
     * Entry of the method that runs a Java agent at the VM's start. A Java agent that precedes this agent on the command
     * line makes the hooks live: the VM is initialized, and no code of a Java agent has run.
     */
    @Hidden @DontInline
    public static long enterPremain() {
        if (LIVE) return enter();
        onVmInitialized(true);
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
        boolean attached = t.$lucceState != 0;
        if (!hasState(t) || attached && hasCaller()) return t.$lucceStack;
        return firstSlot(t);
    }

    @Hidden @DontInline
    public static void exitVm(long p) {
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        long ts = t.$lucceState;
        if (ts != 0) t.$lucceStack = leaveToVm(ts, p);
    }
}
