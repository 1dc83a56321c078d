package java.lang;

import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtVariant.*;
import static java.lang.LucceRtVmEntries.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** `tracking=cct` and `tracking=paper` keep other data in place of the memo, so stubs always ask the VM. */
public final class LucceRtForeign extends LucceRtProductForeign {
    private LucceRtForeign() {}

    @Hidden @ForceInline
    public static void downcall(long p) {
        if (TREE || PAPER) restore(p);
        else LucceRtProductForeign.downcall(p);
    }

    @Hidden @ForceInline
    public static void afterDowncall(long p, int unused) {
        if (!TREE && !PAPER) LucceRtProductForeign.afterDowncall(p, unused);
    }

    @Hidden @DontInline
    public static void unwindDowncall(long p) {
        restore(p);
        afterDowncall(p, 0);
    }

    @Hidden @ForceInline
    public static long enterUpcall() {
        return TREE || PAPER ? enterVm() : LucceRtProductForeign.enterUpcall();
    }
}
