package java.lang;

import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtRecording.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** With `calls=on`, frames also report that they are about to call. */
public final class LucceRtFrames extends LucceRtProductFrames {
    private LucceRtFrames() {}

    /** As in the product; java.lang.Object names it. */
    static final class Memory {
        static final Unsafe U = Unsafe.getUnsafe();
        static final long BASE_ADDRESS = baseAddress();
    }

    @Hidden @ForceInline
    public static void publishSite(long p, int site) {
        LucceRtProductFrames.publishSite(p, site);
        if (RECORD) recordStep(STEP_CALL, p, site);
    }

    @Hidden @DontInline
    public static void publishRareSite(long p, int site) {
        publishSite(p, site);
    }

    @Hidden @ForceInline
    public static void publishNative(long p, int site, int nativeSite) {
        LucceRtProductFrames.publishNative(p, site, nativeSite);
        if (RECORD) recordStep(STEP_CALL, p, site);
    }

    @Hidden @DontInline
    public static void publishSwitching(long p, int site) {
        LucceRtProductFrames.publishSwitching(p, site);
        if (!RECORD) return;
        Thread t = Thread.currentThread();
        if (t.$lucceState != 0 && ownsSlot(t, p)) recordStep(STEP_CALL, p, site);
    }
}
