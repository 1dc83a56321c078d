package java.lang;

import static java.lang.LucceRtContexts.*;
import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtLocks.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.access.JavaLangAccess;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** The hooks of events with a duration. A site below 0: the class is out of scope; it stands for the operation. */
public final class LucceRtDurations {
    private LucceRtDurations() {}

    // Replace the calls that park a thread, if waits are events.

    @Hidden @DontInline
    public static void park(Unsafe u, boolean absolute, long time, long p, int site) {
        long since = startWait(p, site);
        int owned = startOwnedWait(p, site);
        u.park(absolute, time);
        stopOwnedWait(owned);
        endWait(p, site, since);
    }

    @Hidden @DontInline
    public static void park(JavaLangAccess threads, long p, int site) {
        long since = startWait(p, site);
        int owned = startOwnedWait(p, site);
        threads.parkVirtualThread();
        stopOwnedWait(owned);
        endWait(p, site, since);
    }

    @Hidden @DontInline
    public static void park(JavaLangAccess threads, long time, long p, int site) {
        long since = startWait(p, site);
        int owned = startOwnedWait(p, site);
        threads.parkVirtualThread(time);
        stopOwnedWait(owned);
        endWait(p, site, since);
    }

    @Hidden
    private static long startWait(long p, int site) {
        moveToCallee(p, site);
        return System.nanoTime();
    }

    /** Before a call, in scope or not. */
    @ForceInline
    static void moveToCallee(long p, int site) {
        if (site < 0) {
            restore(p);
        } else {
            publishSite(p, site);
        }
    }

    /** For LucceRtNoop. */
    @Hidden
    static void endWait(long since) {
        endWait(0, -1, since);
    }

    @Hidden
    private static void endWait(long p, int site, long since) {
        if (!LIVE || !isCounted(LOCK)) return;
        long passed = System.nanoTime() - since;
        Thread t = Thread.currentThread();
        if (!hasState(t)) return;
        long number = site < 0 ? 0 : contextId(t, p, site);
        if (number == 0 && site >= 0) return;
        recordHookEvent(t.$lucceState, LOCK, number, 0, t, 0, passed);
        if (VERIFY && site >= 0) verifyContext(t, number, 0);
    }

    /** Begins an event: keeps the time and an amount in the thread's state. Callees begin no event of this kind meanwhile. */
    @Hidden
    static void beginOperation(int kind, long amount, long p, int site) {
        moveToCallee(p, site);
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (!hasState(t)) return;
        Memory.U.putLong(t.$lucceState + OPERATION_START, isCounted(kind) ? System.nanoTime() : 0);
        Memory.U.putLong(t.$lucceState + OPERATION_AMOUNT, amount);
    }

    /** Ends the event. If the call throws, this is not reached, and the event is not counted. */
    @Hidden
    static void endOperation(int kind, long amount, long p, int site) {
        if (!LIVE || !isCounted(kind)) return;
        Thread t = Thread.currentThread();
        if (t.$lucceState == 0) return;
        long since = Memory.U.getLong(t.$lucceState + OPERATION_START);
        if (since == 0) return;
        long passed = System.nanoTime() - since;
        Memory.U.putLong(t.$lucceState + OPERATION_START, 0);
        long number = site < 0 ? 0 : contextId(t, p, site);
        if (number == 0 && site >= 0) return;
        recordHookEvent(t.$lucceState, kind, number, site, null, amount, passed);
        if (VERIFY && site >= 0) verifyContext(t, number, 0);
    }

    /** The amount that was passed when the event began. */
    @Hidden
    static long amountAtStart() {
        Thread t = Thread.currentThread();
        return t.$lucceState == 0 ? 0 : Memory.U.getLong(t.$lucceState + OPERATION_AMOUNT);
    }
}
