package java.lang;

import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtRecording.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** Hooks that only the lab's agent inserts. */
public final class LucceRtLab {
    private LucceRtLab() {}

    /** As LucceRtFrames.enter, for `tracking=cct` and `tracking=paper`: the method's context is looked up. */
    @Hidden @ForceInline
    public static long enter(int method) {
        if (!LIVE || !TREE && !PAPER) return LucceRtFrames.enter();
        Thread t = Thread.currentThread();
        long p = t.$lucceStack;
        LucceRtComparison.enterFrame(t, p, method);
        return p;
    }

    /** As LucceRtVmEntries.enterVm, for the same modes. */
    @Hidden @DontInline
    public static long enterVm(int method) {
        long p = LucceRtVmEntries.enterVm();
        if (!LIVE || !TREE && !PAPER) return p;
        Thread t = Thread.currentThread();
        if (t.$lucceState != 0) LucceRtComparison.enterFrame(t, p, method);
        return p;
    }

    /** For recordings of calls: a method returns. */
    @Hidden @ForceInline
    public static void exit(long p) {
        if (RECORD) recordStep(STEP_RETURNED, p, 0);
    }

    /** For recordings of calls: as exitVm, if an exception ends the method. */
    @Hidden @DontInline
    public static void unwindVm(long p) {
        if (RECORD) recordStep(STEP_THROWN, p, 0);
        LucceRtVmEntries.exitVm(p);
    }
}
