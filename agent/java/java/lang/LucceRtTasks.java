package java.lang;

import static java.lang.LucceRtContexts.*;
import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtVariant.*;

import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.FutureTask;
import jdk.internal.misc.InnocuousThread;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks for contexts that continue elsewhere: in a started thread, in a task of an executor, in a scope that the
 * program opens. For helper variants see LucceRtFrames.
 */
public class LucceRtTasks {
    LucceRtTasks() {}

    // ---- threads ------------------------------------------------------------------------------------

    /** Called before `child` is started. The child's trace continues here. */
    @Hidden @DontInline
    public static void beforeStart(Thread child, long p, int site) {
        if (LIVE) {
            long number = countByType(p, site, THREAD);
            child.$lucceOrigin = number;
            if (number != 0 && isCounted(FOLLOW) && !(child instanceof InnocuousThread)) handTask(child, number, 0);
        }
        publishSite(p, site);
    }

    /** As beforeStart. A virtual thread has the tags of the code that starts it. */
    @Hidden @DontInline
    public static void beforeVirtualStart(Thread child, long p, int site) {
        if (LIVE && isCounted(TAGS)) child.$lucceTags = tagSet(Thread.currentThread());
        beforeStart(child, p, site);
    }

    /** Called before a thread is started for one task: the thread has the tags of the code that submits the task. */
    @Hidden @DontInline
    public static void beforeTaskStart(Object child, long p, int site) {
        if (LIVE && isCounted(TAGS) && child != null) ((Thread) child).$lucceTags = tagSet(Thread.currentThread());
        publishSite(p, site);
    }

    /** As starts, for code without hooks: the agent asks the VM for the context. */
    @Hidden @DontInline
    public static void beforeStartUntracked(Thread child, long p, int site) {
        if (LIVE && isCounted(THREAD)) {
            Thread t = Thread.currentThread();
            if (hasState(t)) recordHookEvent(t.$lucceState, THREAD, 0, 0, child, 0, 0);
        }
        restore(p);
    }

    // ---- tasks of executors -------------------------------------------------------------------------
    //
    // A task carries the context id of its submitter: in a field, or the agent keeps it.
    // 0: none; SEVERAL: it was submitted in several contexts, so the submitter is unknown. See `stack/tasks` in the agent. A forked
    // task without one is called by its caller; other tasks with neither have an unknown submitter.

    /** Offsets of the fields of tasks. Initialized when the first task is submitted. */
    private static final class Fields {
        static final long FUTURE = Memory.U.objectFieldOffset(FutureTask.class, "$lucceOrigin");
        static final long FORKED = Memory.U.objectFieldOffset(ForkJoinTask.class, "$lucceOrigin");
        static final long FUTURE_TAGS = Memory.U.objectFieldOffset(FutureTask.class, "$lucceTags");
        static final long FORKED_TAGS = Memory.U.objectFieldOffset(ForkJoinTask.class, "$lucceTags");
    }

    // A task also carries the tags of its submitter, if tags are in use: their number and 1. 0: it was not submitted since, so it
    // runs under its thread's tags. SEVERAL_TAGS: under none.

    private static int tagSet(Thread t) {
        return t.$lucceState == 0 ? 0 : (int) Memory.U.getLong(t.$lucceState + TAG_SET);
    }

    private static void storeTags(Object task, long field, int tags) {
        Unsafe u = Memory.U;
        if (u.compareAndSetInt(task, field, 0, tags)) return;
        if (u.getIntVolatile(task, field) != tags) u.putIntVolatile(task, field, SEVERAL_TAGS);
    }

    private static void forgetTags(Object task, long field) {
        int tags = Memory.U.getIntVolatile(task, field);
        if (tags != SEVERAL_TAGS) Memory.U.compareAndSetInt(task, field, tags, 0);
    }

    /** The frame with slot `p` runs a task that carries these tags. */
    @Hidden
    private static void switchTags(Thread t, int tags, long p) {
        if (tags == 0 || !hasState(t) || !ownsSlot(t, p)) return;
        int set = tags == SEVERAL_TAGS ? 0 : tags - 1;
        if (set != tagSet(t)) beginTaggedTask(t.$lucceState, set, p);
    }

    /** The frame with slot `p` has finished its task. */
    @Hidden
    private static void restoreTags(long p) {
        Thread t = Thread.currentThread();
        if (t.$lucceState == 0) return;
        long slot = Memory.U.getLong(t.$lucceState + TAGGED_TASK_SLOT);
        if (slot != 0 && slot - p >= 0) endTaggedTask(t.$lucceState, p);
    }

    /** A method that has run one task ends. */
    @Hidden @DontInline
    public static void endTask(long p) {
        if (LIVE) restoreTags(p);
        restore(p);
    }

    /** A task is submitted to an executor. */
    @Hidden @DontInline
    public static void beforeSubmit(Object task, long p, int site) {
        publishSite(p, site);
        if (!LIVE || task == null) return;
        Thread t = Thread.currentThread();
        if (t.$lucceOrigin == SCHEDULING) {
            t.$lucceOrigin = 0;
            return;
        }
        if (!ownsSlot(t, p)) return;
        boolean isTagged = isCounted(TAGS);
        if (isTagged) {
            int tags = tagSet(t) + 1;
            if (task instanceof FutureTask) {
                storeTags(task, Fields.FUTURE_TAGS, tags);
            } else if (task instanceof ForkJoinTask) {
                storeTags(task, Fields.FORKED_TAGS, tags);
            }
        }
        long number = countByType(p, site, THREAD);
        if (number == 0) {
            if (isTagged && !(task instanceof FutureTask) && !(task instanceof ForkJoinTask) && hasState(t)) {
                submitTask(t.$lucceState, task, 0);
            }
            return;
        }
        boolean isPlain = false;
        if (task instanceof FutureTask) {
            storeOrigin(task, Fields.FUTURE, number);
        } else if (task instanceof ForkJoinTask) {
            storeOrigin(task, Fields.FORKED, number);
        } else {
            isPlain = true;
            submitTask(t.$lucceState, task, number);
        }
        if (isCounted(FOLLOW)) handTask(task, number, isPlain ? 1 : 0);
    }

    /** The executor rejects the task: if it runs later, then for another submission. */
    @Hidden @DontInline
    public static void beforeReject(Object task, long p, int site) {
        publishSite(p, site);
        if (!LIVE || task == null) return;
        if (task instanceof FutureTask) {
            forgetOrigin(task, Fields.FUTURE);
            forgetTags(task, Fields.FUTURE_TAGS);
            if (isCounted(FOLLOW)) takeBackTask(task);
        } else if (task instanceof ForkJoinTask) {
            forgetOrigin(task, Fields.FORKED);
            forgetTags(task, Fields.FORKED_TAGS);
            if (isCounted(FOLLOW)) takeBackTask(task);
        } else if (isCounted(ORIGINS | TAGS)) {
            rejectTask(task);
        }
    }

    /** Clears the field, unless it has SEVERAL. */
    private static void forgetOrigin(Object task, long field) {
        long number = Memory.U.getLongVolatile(task, field);
        if (number != SEVERAL) Memory.U.compareAndSetLong(task, field, number, 0);
    }

    private static void storeOrigin(Object task, long field, long number) {
        Unsafe u = Memory.U;
        if (u.compareAndSetLong(task, field, 0, number)) return;
        if (u.getLongVolatile(task, field) != number) u.putLongVolatile(task, field, SEVERAL);
    }

    /** The frame with slot `p` starts to run a task: its caller becomes the context that submitted the task. */
    @Hidden @DontInline
    public static void beforeRun(Object task, long p, int site) {
        publishSite(p, site);
        if (!LIVE || task == null) return;
        long number = 0;
        Thread t = Thread.currentThread();
        if (task instanceof FutureTask) {
            // The fields stay: a periodic task runs again.
            if (isCounted(TAGS)) switchTags(t, Memory.U.getIntVolatile(task, Fields.FUTURE_TAGS), p);
            number = Memory.U.getLongVolatile(task, Fields.FUTURE);
            if (number != 0) {
                if (isCounted(FOLLOW)) beginTask(t.$lucceState, task, number, p);
            } else if (isCounted(ORIGINS)) {
                number = SEVERAL;
            } else {
                return;
            }
        } else if (task instanceof ForkJoinTask) {
            // The fields are cleared: the task may be forked again.
            if (isCounted(TAGS)) {
                int tags = Memory.U.getIntVolatile(task, Fields.FORKED_TAGS);
                if (tags == SEVERAL_TAGS || tags == 0 || Memory.U.compareAndSetInt(task, Fields.FORKED_TAGS, tags, 0)) switchTags(t, tags, p);
            }
            number = Memory.U.getLongVolatile(task, Fields.FORKED);
            if (number == 0) return;
            // Called before the field shows that the task has begun.
            if (isCounted(FOLLOW)) beginTask(t.$lucceState, task, number, p);
            if (number != SEVERAL && !Memory.U.compareAndSetLong(task, Fields.FORKED, number, 0)) return;
        } else if (!isCounted(ORIGINS | TAGS)) {
            return;
        } else if (isCounted(FOLLOW)) {
            beginTask(t.$lucceState, task, 0, p);
        }
        if (t.$lucceState == 0 || !ownsSlot(t, p)) return;
        int m = Memory.U.getInt(METHODS + ((long) site << INT_BITS));
        long c = taskContext(t.$lucceState, task, number, p, m);
        if (c != 0) writeMemo(Memory.U, p, m, c);
    }

    /** The frame has finished the task. */
    @Hidden @ForceInline
    public static void afterRun(long p, int site) {
        forgetOrigin(p);
        if (LIVE) {
            if (isCounted(FOLLOW)) LucceRtNatives.endTask(Thread.currentThread().$lucceState, p);
            restoreTags(p);
        }
        publishSite(p, site);
    }

    /** The next submission is a virtual thread's own continuation, not a task. */
    @Hidden @DontInline
    public static void beforeSchedule(long p, int site) {
        if (LIVE) Thread.currentThread().$lucceOrigin = SCHEDULING;
        publishSite(p, site);
    }

    // ---- continuations of Kotlin --------------------------------------------------------------------

    // A continuation keeps the context of the frame of its base class's constructor. 0: unknown. RESTRICTED: its consumer calls it.

    /** In the constructor of a continuation, whose frame has slot `p`. Returns what the continuation keeps. */
    @Hidden @DontInline
    public static long createContinuation(long p, int site) {
        if (!LIVE) return 0;
        Thread t = Thread.currentThread();
        if (t.$lucceOrigin == RESTRICTED) {
            t.$lucceOrigin = 0;
            return RESTRICTED;
        }
        return findContext(p, Memory.U.getInt(METHODS + ((long) site << INT_BITS)), t.$lucceCounters);
    }

    /** The next continuation that this thread creates is a generator's. */
    @Hidden @DontInline
    public static void beforeRestricted(long p, int site) {
        if (LIVE) Thread.currentThread().$lucceOrigin = RESTRICTED;
        publishSite(p, site);
    }

    /** The frame with slot `p` is about to run a continuation: its caller becomes that of the suspended call. */
    @Hidden @DontInline
    public static void beforeResume(long number, long p, int site) {
        publishSite(p, site);
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (t.$lucceState == 0 || !ownsSlot(t, p)) return;
        int m = Memory.U.getInt(METHODS + ((long) site << INT_BITS));
        writeMemo(Memory.U, p, m, number == RESTRICTED ? 0 : resumedContext(number, m));
    }

    // ---- operators of Reactor and RxJava ------------------------------------------------------------

    // An object keeps the context of a frame between its code and what made it: see `stack/assembly` in the agent. 0: unknown.

    /** Initialized when the first operator gets a signal. */
    private static final class Assembly {
        static final int SITE = assemblySite();
        /** For objects that keep 0. */
        static final long UNKNOWN = assemblyContext(0, 0);
    }

    /** In the constructor of an operator or a subscriber, whose frame has slot `p`. Returns what the object keeps. */
    @Hidden @DontInline
    public static long createOperator(long p, int site) {
        if (!LIVE) return 0;
        Thread t = Thread.currentThread();
        if (t.$lucceState == 0 || !ownsSlot(t, p)) return 0;
        int m = Memory.U.getInt(METHODS + ((long) site << INT_BITS));
        long c = findContext(p, m, t.$lucceCounters);
        return c == 0 ? 0 : assemblyContext(c, m);
    }

    /**
     * A method of such an object begins, in the frame with slot `p`: its caller becomes what made the object. Not while allocations
     * are measured: they belong to the code that subscribes.
     */
    @Hidden @DontInline
    public static void beforeSignal(long number, long p, int site) {
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (t.$lucceState == 0 || !ownsSlot(t, p)) return;
        int m = Memory.U.getInt(METHODS + ((long) site << INT_BITS));
        long from = number == 0 ? Assembly.UNKNOWN : number;
        writeMemo(Memory.U, p, m, from == 0 || isCounted(FOLLOW) ? 0 : callContext(t, from, Assembly.SITE, m));
    }

    // ---- a context that continues elsewhere ---------------------------------------------------------

    /** The caller of the frame with slot `p` becomes the context with id `number`. */
    @Hidden @DontInline
    public static void beginScope(long number, long p, int site) {
        if (!LIVE || number == 0) return;
        int m = Memory.U.getInt(METHODS + ((long) site << INT_BITS));
        long c = scopeContext(number, m);
        if (c != 0) writeMemo(Memory.U, p, m, c);
    }

    /** The frame's caller is its real caller again. */
    @Hidden @DontInline
    public static void endScope(long p, int site) {
        forgetOrigin(p);
    }

    /** Removes the context that was given to the frame with slot `p`; it is looked up from its caller again. */
    @Hidden @ForceInline
    private static void forgetOrigin(long p) {
        if (LIVE) writeMemo(Memory.U, p, 0, 0);
    }
}
