package java.lang;

import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtRecording.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** With `calls=on`, allocations and entries are recorded, whether they are counted or not. */
final class LucceRtCounting extends LucceRtProductCounting {
    @ForceInline
    static boolean takesAllocations() {
        return RECORD || LucceRtProductCounting.takesAllocations();
    }

    @Hidden @DontInline
    static void countAllocation(long p, int site, long bytes, int returned) {
        if (RECORD) recordStep(STEP_EVENT, p, site);
        if (RECORD && returned > 0) recordStep(STEP_RETURNED, p, 0);
        LucceRtProductCounting.countAllocation(p, site, bytes, returned);
    }

    @Hidden @ForceInline
    static void countEntry(long p, int site) {
        if (RECORD) recordStep(STEP_ENTERED, p, site);
        LucceRtProductCounting.countEntry(p, site);
    }

    @Hidden @ForceInline
    static void countFirstEntry(long p, int site) {
        if (RECORD) recordStep(STEP_ENTERED, p, site);
        LucceRtProductCounting.countFirstEntry(p, site);
    }
}
