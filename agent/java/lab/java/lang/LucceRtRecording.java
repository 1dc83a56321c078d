package java.lang;

import static java.lang.LucceRtFrames.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/** `calls=on`: passes steps of frames to the agent. */
final class LucceRtRecording {
    private LucceRtRecording() {}

    @Hidden @DontInline
    static void recordStep(int what, long p, int site) {
        Thread t = Thread.currentThread();
        if (t != null && hasState(t)) writeStep(t.$lucceState, what, p, site);
    }

    private static native void writeStep(long ts, int what, long p, int site);
}
