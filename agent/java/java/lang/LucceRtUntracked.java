package java.lang;

import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtVariant.*;
import static java.lang.LucceRtVmEntries.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/** The hooks before code without hooks calls: its callees find the slot LOST below theirs. */
public final class LucceRtUntracked {
    private LucceRtUntracked() {}

    /** As exitVm: the next callee is called by code without hooks. */
    @Hidden @DontInline
    public static void exitUntracked(long p) {
        if (!LIVE) return;
        exitVm(p);
        Thread t = Thread.currentThread();
        if (t.$lucceState == 0) return;
        Memory.U.putLong(p - SLOT + BASE, LOST);
        t.$lucceStack = p;
        countUntracked(true);
    }

    /** As publishSite, before a call of a native method that makes the VM call Java repeatedly. */
    @Hidden @DontInline
    public static void publishUntracked(long p, int site) {
        publishSite(p, site);
        if (!LIVE) return;
        Memory.U.putLong(p + SLOT + BASE, LOST);
        Thread.currentThread().$lucceStack = p + 2 * SLOT;
        countUntracked(true);
    }

    /** Loaded classes have new code now. */
    @Hidden @DontInline
    public static void onCodeChanged(long p, int site) {
        if (LIVE) forgetCode();
    }
}
