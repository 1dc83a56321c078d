package java.lang;

import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/** With `tracking=cct` and `tracking=paper`, tasks are counted, but contexts do not continue elsewhere. */
public final class LucceRtTasks extends LucceRtProductTasks {
    private LucceRtTasks() {}

    @Hidden @DontInline
    public static void beforeSubmit(Object task, long p, int site) {
        if (!TREE && !PAPER) {
            LucceRtProductTasks.beforeSubmit(task, p, site);
            return;
        }
        publishSite(p, site);
        if (task == null) return;
        Thread t = Thread.currentThread();
        if (t.$lucceOrigin == SCHEDULING) {
            t.$lucceOrigin = 0;
            return;
        }
        if (ownsSlot(t, p)) countByType(p, site, THREAD);
    }

    @Hidden @DontInline
    public static void beforeReject(Object task, long p, int site) {
        if (TREE || PAPER) publishSite(p, site);
        else LucceRtProductTasks.beforeReject(task, p, site);
    }

    @Hidden @DontInline
    public static void beforeRun(Object task, long p, int site) {
        if (TREE || PAPER) publishSite(p, site);
        else LucceRtProductTasks.beforeRun(task, p, site);
    }

    @Hidden @ForceInline
    public static void afterRun(long p, int site) {
        if (TREE || PAPER) publishSite(p, site);
        else LucceRtProductTasks.afterRun(p, site);
    }

    @Hidden @DontInline
    public static long createContinuation(long p, int site) {
        return TREE || PAPER ? 0 : LucceRtProductTasks.createContinuation(p, site);
    }

    @Hidden @DontInline
    public static void beforeRestricted(long p, int site) {
        if (TREE || PAPER) publishSite(p, site);
        else LucceRtProductTasks.beforeRestricted(p, site);
    }

    @Hidden @DontInline
    public static void beforeResume(long number, long p, int site) {
        if (TREE || PAPER) publishSite(p, site);
        else LucceRtProductTasks.beforeResume(number, p, site);
    }

    @Hidden @DontInline
    public static long createOperator(long p, int site) {
        return TREE || PAPER ? 0 : LucceRtProductTasks.createOperator(p, site);
    }

    @Hidden @DontInline
    public static void beforeSignal(long number, long p, int site) {
        if (!TREE && !PAPER) LucceRtProductTasks.beforeSignal(number, p, site);
    }

    @Hidden @DontInline
    public static void beginScope(long number, long p, int site) {
        if (!TREE && !PAPER) LucceRtProductTasks.beginScope(number, p, site);
    }

    @Hidden @DontInline
    public static void endScope(long p, int site) {
        if (!TREE && !PAPER) LucceRtProductTasks.endScope(p, site);
    }
}
