package java.lang;

import static java.lang.LucceRt.*;
import static java.lang.LucceRtEdition.*;
import static java.lang.LucceRtEvents.countByType;
import static java.lang.LucceRtEvents.happened0;
import static java.lang.LucceRtEvents.isOpen;
import static java.lang.LucceRtLayout.*;

import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.FutureTask;
import jdk.internal.misc.InnocuousThread;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks for contexts that continue elsewhere: in a started thread, in a task of an executor, in a scope that the
 * program opens. For helper variants see LucceRt.
 */
public final class LucceRtTasks {
    private LucceRtTasks() {}

    // ---- threads ------------------------------------------------------------------------------------

    /** Called before `child` is started. The child's trace continues here. */
    @Hidden @DontInline
    public static void starts(Thread child, long p, int site) {
        if (LIVE) {
            long number = countByType(p, site, THREAD);
            child.$cx = number;
            if (number != 0 && isOpen(FOLLOW) && !(child instanceof InnocuousThread)) hands0(child, number, 0);
        }
        pub(p, site);
    }

    /** As starts, for code without hooks: the agent asks the VM for the context. */
    @Hidden @DontInline
    public static void startsOutside(Thread child, long p, int site) {
        if (LIVE && isOpen(THREAD)) {
            Thread t = Thread.currentThread();
            if (known(t)) happened0(t.$ts, THREAD, 0, 0, child, 0, 0);
        }
        restore(p);
    }

    // ---- tasks of executors -------------------------------------------------------------------------
    //
    // A task carries the context id of its submitter: in a field, or the agent keeps it.
    // 0: none; SEVERAL: it was submitted in several contexts, so the submitter is unknown. See `stack/tasks` in the agent.

    /** Offsets of the fields of tasks. Initialized when the first task is submitted. */
    private static final class Fields {
        static final long FUTURE = Memory.U.objectFieldOffset(FutureTask.class, "$cx");
        static final long FORKED = Memory.U.objectFieldOffset(ForkJoinTask.class, "$cx");
    }

    /** A task is submitted to an executor. */
    @Hidden @DontInline
    public static void submitted(Object task, long p, int site) {
        pub(p, site);
        if (!LIVE || task == null) return;
        Thread t = Thread.currentThread();
        if (t.$cx == SCHEDULING) {
            t.$cx = 0;
            return;
        }
        if (!owns(t, p)) return;
        long number = countByType(p, site, THREAD);
        if (TREE || PAPER || number == 0) return;
        boolean isPlain = false;
        if (task instanceof FutureTask) {
            note(task, Fields.FUTURE, number);
        } else if (task instanceof ForkJoinTask) {
            note(task, Fields.FORKED, number);
        } else {
            isPlain = true;
            submitted0(task, number);
        }
        if (isOpen(FOLLOW)) hands0(task, number, isPlain ? 1 : 0);
    }

    /** The executor rejects the task: if it runs later, then for another submission. */
    @Hidden @DontInline
    public static void rejected(Object task, long p, int site) {
        pub(p, site);
        if (!LIVE || TREE || PAPER || task == null) return;
        if (task instanceof FutureTask) {
            forget(task, Fields.FUTURE);
            if (isOpen(FOLLOW)) takesBack0(task);
        } else if (task instanceof ForkJoinTask) {
            forget(task, Fields.FORKED);
            if (isOpen(FOLLOW)) takesBack0(task);
        } else {
            rejected0(task);
        }
    }

    /** Clears the field, unless it has SEVERAL. */
    private static void forget(Object task, long field) {
        long number = Memory.U.getLongVolatile(task, field);
        if (number != SEVERAL) Memory.U.compareAndSetLong(task, field, number, 0);
    }

    private static void note(Object task, long field, long number) {
        Unsafe u = Memory.U;
        if (u.compareAndSetLong(task, field, 0, number)) return;
        if (u.getLongVolatile(task, field) != number) u.putLongVolatile(task, field, SEVERAL);
    }

    /** The frame with slot `p` starts to run a task: its caller becomes the context that submitted the task. */
    @Hidden @DontInline
    public static void runs(Object task, long p, int site) {
        pub(p, site);
        if (!LIVE || TREE || PAPER || task == null) return;
        long number = 0;
        Thread t = Thread.currentThread();
        if (task instanceof FutureTask) {
            // The field stays: a periodic task runs again.
            number = Memory.U.getLongVolatile(task, Fields.FUTURE);
            if (number == 0) return;
            if (isOpen(FOLLOW)) begins0(t.$ts, task, number, p);
        } else if (task instanceof ForkJoinTask) {
            // The field is cleared below: the task may be forked again.
            number = Memory.U.getLongVolatile(task, Fields.FORKED);
            if (number == 0) return;
            // Called before the field shows that the task has begun.
            if (isOpen(FOLLOW)) begins0(t.$ts, task, number, p);
            if (number != SEVERAL && !Memory.U.compareAndSetLong(task, Fields.FORKED, number, 0)) return;
        } else if (isOpen(FOLLOW)) {
            begins0(t.$ts, task, 0, p);
        }
        if (number == SEVERAL || t.$ts == 0 || !owns(t, p)) return;
        int m = Memory.U.getInt(METHODS + ((long) site << INT_BITS));
        long c = handed0(t.$ts, task, number, p, m);
        if (c != 0) remember(Memory.U, p, m, c);
    }

    /** The frame has finished the task. */
    @Hidden @ForceInline
    public static void ran(long p, int site) {
        forget(p);
        if (LIVE && !TREE && !PAPER && isOpen(FOLLOW)) ran0(Thread.currentThread().$ts, p);
        pub(p, site);
    }

    /** The next submission is a virtual thread's own continuation, not a task. */
    @Hidden @DontInline
    public static void schedules(long p, int site) {
        if (LIVE) Thread.currentThread().$cx = SCHEDULING;
        pub(p, site);
    }

    // ---- a context that continues elsewhere ---------------------------------------------------------

    /** The caller of the frame with slot `p` becomes the context with id `number`. */
    @Hidden @DontInline
    public static void scope(long number, long p, int site) {
        if (!LIVE || TREE || PAPER || number == 0) return;
        int m = Memory.U.getInt(METHODS + ((long) site << INT_BITS));
        long c = scope0(number, m);
        if (c != 0) remember(Memory.U, p, m, c);
    }

    /** The frame's caller is its real caller again. */
    @Hidden @DontInline
    public static void scopeEnd(long p, int site) {
        forget(p);
    }

    /** Removes the context that was given to the frame with slot `p`; it is looked up from its caller again. */
    @Hidden @ForceInline
    private static void forget(long p) {
        if (LIVE && !TREE && !PAPER) remember(Memory.U, p, 0, 0);
    }

    // ---- slow paths, in the agent ---------------------------------------------------------------

    private static native void submitted0(Object task, long number);

    private static native void rejected0(Object task);

    /** While allocations are measured (FOLLOW): a thread is started or a task submitted in this context. */
    private static native void hands0(Object task, long number, int isPlain);

    /** While allocations are measured (FOLLOW): a task that shows whether it has run is rejected. */
    private static native void takesBack0(Object task);

    /** While allocations are measured (FOLLOW): the frame with slot `p` starts to run a task. */
    private static native void begins0(long ts, Object task, long number, long p);

    /** While allocations are measured (FOLLOW): the frame has finished the task. */
    private static native void ran0(long ts, long p);

    private static native long handed0(long ts, Object task, long number, long p, int method);

    private static native long scope0(long number, int method);
}
