package java.lang;

import static java.lang.LucceRtVariant.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/** Recordings of calls have no entries for exceptions of the VM, so they omit traces. */
public final class LucceRtTraces extends LucceRtProductTraces {
    private LucceRtTraces() {}

    @Hidden @DontInline
    public static void countTrace(Object thrown, long p, int site) {
        if (!RECORD) LucceRtProductTraces.countTrace(thrown, p, site);
    }
}
