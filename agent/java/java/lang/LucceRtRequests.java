package java.lang;

import static java.lang.LucceRtContexts.*;
import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtVariant.*;
import static java.lang.LucceRtVmEntries.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/** The hooks of methods that receive requests: see `events/request` in the agent. */
public final class LucceRtRequests {
    private LucceRtRequests() {}

    /** At the entry of a method whose requests have one name. */
    @Hidden @DontInline
    public static void beginRequest(long p, int site) {
        beginRequest(null, p, site);
    }

    /** At the entry of a method; `argument`, its first parameter, has what the request's name consists of. */
    @Hidden @DontInline
    public static void beginRequest(Object argument, long p, int site) {
        if (!LIVE || !isCounted(REQUEST)) return;
        Thread t = Thread.currentThread();
        if (!hasState(t) || !ownsSlot(t, p)) return;
        long number = contextId(t, p, site);
        if (number == 0) return;
        if (VERIFY) verifyContext(t, number, 0);
        // The agent calls methods of the argument.
        publishSite(p, site);
        openRequest(t.$lucceState, number, site, argument, p);
        restore(p);
    }

    /** The method ends. Its caller continues at slot `p`, also if the caller has no hooks. */
    @Hidden @DontInline
    public static void endRequest(long p) {
        if (LIVE) {
            Thread t = Thread.currentThread();
            if (t.$lucceState != 0 && Memory.U.getLong(t.$lucceState + REQUEST_SLOT) == p) closeRequest(t.$lucceState);
        }
        restore(p);
    }

    /** As endRequest, in a method that the VM may have called. */
    @Hidden @DontInline
    public static void endRequestFromVm(long p) {
        endRequest(p);
        exitVm(p);
    }
}
