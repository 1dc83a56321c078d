package java.lang;

import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtVariant.*;
import static java.lang.LucceRtVmEntries.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks of stubs of java.lang.foreign.
 *
 * <p>C code calls Java by a stub, from anywhere. Only the VM knows the frames below, natives among them. Asking it costs
 * far more than the call. So a downcall leaves a word in the slot of the next callee, which means: the slot is right,
 * and no native method is in between. The word replaces the memo, because calls on the way to C code (checkExactType)
 * write sites.
 */
public class LucceRtForeign {
    LucceRtForeign() {}

    /** Before the call of a C function, from a frame that traces omit: slot `p` is the slot of the function's Java callee. */
    @Hidden @ForceInline
    public static void downcall(long p) {
        restore(p);
        if (LIVE) Memory.U.putLong(p + CONTEXT + BASE, IN_DOWNCALL);
    }

    /** After the call of a C function. */
    @Hidden @ForceInline
    public static void afterDowncall(long p, int unused) {
        if (LIVE) Memory.U.putLong(p + CONTEXT + BASE, 0);
    }

    /** An exception leaves the frame. */
    @Hidden @DontInline
    public static void unwindDowncall(long p) {
        restore(p);
        afterDowncall(p, 0);
    }

    /** Entry of the method that C code calls, which traces omit. Bit 0 is set if a downcall has left the slot. */
    @Hidden @ForceInline
    public static long enterUpcall() {
        if (!LIVE) return enter();
        Thread t = Thread.currentThread();
        long p = t.$lucceStack;
        if (t.$lucceState == 0 || !ownsSlot(t, p) || Memory.U.getLong(p + CONTEXT + BASE) != IN_DOWNCALL) return enterVm();
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
}
