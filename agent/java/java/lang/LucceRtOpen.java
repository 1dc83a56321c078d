package java.lang;

import static java.lang.LucceRtContexts.*;
import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/** The hooks of resources that are opened and closed: see `events/open` in the agent. */
public final class LucceRtOpen {
    private LucceRtOpen() {}

    /** The method with slot `p` has opened the resource. A site below 0: the class is out of scope. */
    @Hidden @DontInline
    public static void openResource(Object resource, long p, int site) {
        if (!LIVE || resource == null || !isCounted(OPEN)) return;
        Thread t = Thread.currentThread();
        if (!hasState(t)) return;
        long number = site < 0 ? 0 : contextId(t, p, site);
        if (number == 0 && site >= 0) return;
        recordHookEvent(t.$lucceState, OPEN, number, site, resource, 0, 0);
        if (VERIFY && site >= 0) verifyContext(t, number, 0);
    }

    /** The method closes the object, if it is a resource. */
    @Hidden @DontInline
    public static void closeResource(Object resource, long p, int site) {
        if (LIVE && resource != null) LucceRtNatives.closeResource(resource);
    }
}
