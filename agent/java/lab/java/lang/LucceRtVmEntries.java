package java.lang;

import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtRecording.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/** With `calls=on`, methods that the VM enters also report their begin and end. */
public final class LucceRtVmEntries extends LucceRtProductVmEntries {
    private LucceRtVmEntries() {}

    @Hidden @DontInline
    public static long enterVm() {
        long p = LucceRtProductVmEntries.enterVm();
        if (RECORD) recordStep(STEP_THROWN, p, 0);
        return p;
    }

    @Hidden @DontInline
    public static void exitVm(long p) {
        LucceRtProductVmEntries.exitVm(p);
        if (RECORD) recordStep(STEP_RETURNED, p, 0);
    }
}
