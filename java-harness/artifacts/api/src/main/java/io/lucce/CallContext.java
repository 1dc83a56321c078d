package io.lucce;

import java.util.concurrent.Callable;

/**
 * Numbers of calling contexts.
 *
 * <p>A calling context is the stack of calls that leads to a line of code, the line included. Under
 * the lucce agent every calling context has a number, 64 bits wide. Equal numbers mean equal stack
 * traces (the reverse need not hold: over a run a context may get more than one number), and a
 * number stays valid until the Java virtual machine ends, on every thread. Where classes have the
 * agent's hooks taking a number walks no stack, so a program can keep one wherever it would have wanted a stack trace but could not pay
 * for it:
 *
 * <pre>{@code
 * Resource open() {
 *     return new Resource(CallContext.current());          // one long per resource
 * }
 *
 * void reportLeak(Resource resource) {                     // only when there is a leak
 *     for (StackTraceElement frame : CallContext.decode(resource.openedAt)) {
 *         System.err.println("\tat " + frame);
 *     }
 * }
 * }</pre>
 *
 * <p>If the agent is asked for rare events only (leaks, exceptions, samples of allocations) it puts no hooks in, and each
 * number is a walk of the stack, some microseconds; the agent's option {@code tracking=lazy} puts them in.
 *
 * <p>A number can also be decoded after the run, from the log that the agent wrote:
 * {@code lucce decode run.lucce 'lucce:0123456789abcdef:0x…'}. It means something in this run's log only, so write it
 * as {@link #toString(long)} does: that names the run, {@code lucce decode} finds it in any text, and it
 * refuses the numbers of other runs.
 *
 * <p>Without the agent this class costs nothing and does nothing: {@link #current()} is 0,
 * {@link #decode(long)} is empty, {@link #event(String, long)} counts nothing, a {@link Tag} does nothing, and a {@link Scope}
 * only runs its task.
 *
 * <p>All methods may be called from any thread at any time.
 */
public final class CallContext {
    /** The agent sets this property before it lets the program begin. */
    private static final boolean ACTIVE = System.getProperty("lucce.version") != null;

    /** What numbers begin with as text: the agent sets this property, too. */
    private static final String PREFIX = ACTIVE ? prefix(System.getProperty("lucce.run")) : "0x";

    /** Whether the agent works without hooks, and asks the virtual machine for each stack. */
    private static final boolean WALKS = ACTIVE && "none".equals(System.getProperty("lucce.hooks"));

    private CallContext() {}

    private static String prefix(String run) {
        return run == null ? "0x" : "lucce:" + run + ":0x";
    }

    /**
     * Returns the number of the calling context of the line that calls this method.
     *
     * <p>The innermost frame of the context is the caller of this method, at the line of the call;
     * this method itself is no part of it. The agent replaces each <em>call</em> of this method
     * while it loads the calling class. A call that it does not see, through reflection, a method
     * handle or a method reference, has the same result, but takes as long as a walk of the stack.
     *
     * @return the number; 0 if there is no agent, or if it does not know how the line was reached
     */
    public static long current() {
        return ACTIVE ? current0() : 0;
    }

    /**
     * Counts an event of the program's own under the calling context of the line that calls this
     * method.
     *
     * <p>Events are counted by context, thread and kind, together with the sum of their values:
     * {@code lucce report --event KIND} shows which contexts have most. The context is the one that
     * {@link #current()} would return, and is found in the same way.
     *
     * <pre>{@code
     * Entry load(Key key) {
     *     CallContext.event("cache miss", key.size());
     *     …
     * }
     * }</pre>
     *
     * @param kind what the events are called, the same text for the same events; of a longer one the
     *     first 100 characters. Few kinds, not one for each event: about a thousand are told apart. A
     *     name of the agent's own events ({@code alloc}, {@code lock}, …) gets the word {@code own} in
     *     front. If it is null nothing is counted
     * @param value what is summed up, such as bytes or nanoseconds; a negative one counts as 0
     */
    public static void event(String kind, long value) {
        if (ACTIVE) {
            event0(kind, value);
        }
    }

    /**
     * Opens a tag: until it is closed, everything that this thread does is counted under it.
     *
     * <p>Tags tell the events of one kind of request from those of another: allocations, locks, the program's own events, all
     * kinds. They are counted apart by the same contexts, so sums over all values of a tag, and over what is under none, are
     * what would have been counted without tags. {@code lucce report --tag endpoint=/search} shows one, {@code --by tag} their
     * sums.
     *
     * <pre>{@code
     * try (CallContext.Tag tag = CallContext.tag("endpoint", "/search")) {
     *     handle(request);
     * }
     * }</pre>
     *
     * <p>Tasks of the JDK's executors and virtual threads have the tags of the code that submits or starts them, unless the
     * agent's option {@code tags=thread} is set. Tags may be nested; within one of the same key the inner value holds. To open and close one takes about a
     * microsecond, events cost what they always cost.
     *
     * @param key what is told apart, such as {@code endpoint}: at most 16 keys, of at most 200 characters
     * @param value which one it is, of at most 200 characters; few values, not one for each request: 256 of a key are told
     *     apart, what comes later is counted under the value {@code (rest)}, and the agent says so. If key or value is null,
     *     or the key is empty, the tag changes nothing
     * @return what closes it; without the agent one that does nothing
     */
    public static Tag tag(String key, String value) {
        if (!ACTIVE) {
            return Tag.NONE;
        }
        long number = tag0(key, value);
        return number == 0 ? Tag.NONE : new Tag(number);
    }

    /**
     * Opens the tag {@code request} for a request that the agent may not see, as a tracing library does.
     *
     * <p>Where {@code requests=auto} has opened a request in this thread, its name stays. Within the tag that this method
     * opens, the agent's own names hold from the framework's entry on. No request is counted.
     *
     * @param name the kind of request, without values: {@code GET /orders/{id}}; limits are those of {@link #tag tag}
     * @return what closes it; without the agent, or within a request that the agent knows, one that does nothing
     */
    public static Tag requestTag(String name) {
        if (!ACTIVE || isRequest0()) {
            return Tag.NONE;
        }
        return tag("request", name);
    }

    /**
     * Says that the program is ready: its start-up is over.
     *
     * <p>With the agent's option {@code delay=ready} counting begins at the first call, or at the first request
     * with {@code requests=auto}. Otherwise it changes nothing.
     */
    public static void ready() {
        if (ACTIVE) {
            ready0();
        }
    }

    /**
     * Marks this moment in the log, as {@code lucce ctl PID mark NAME} does: {@code lucce report --since NAME} shows what was
     * counted later, {@code --until NAME} what was counted before.
     *
     * <p>A mark writes all counters into the log, so it is for phases of a program, not for requests.
     *
     * @param name of at most 200 characters in one line; not {@code start} or {@code end}, which are the run's. If several
     *     marks have it, the last one counts
     */
    public static void mark(String name) {
        if (ACTIVE && name != null) {
            mark0(name);
        }
    }

    /**
     * Returns the stack trace that a number stands for.
     *
     * <p>The trace is what {@link Throwable#getStackTrace()} would have returned for a
     * {@code Throwable} created on the line that took the number: innermost frame first, frames of
     * hidden classes left out, native methods with line number -2. Unlike a {@code Throwable}'s it
     * is never cut off at some depth.
     *
     * @param id a number that {@link #current()} returned in this Java virtual machine, or 0
     * @return the frames, innermost first, in an array of the caller's own; empty if {@code id} is
     *     0, if there is no agent or if it was detached
     * @throws IllegalArgumentException if the agent knows no calling context of this number; the
     *     message names the number
     */
    public static StackTraceElement[] decode(long id) {
        if (!ACTIVE || id == 0) {
            return new StackTraceElement[0];
        }
        StackTraceElement[] frames = decode0(id);
        // A detached agent returns null.
        return frames == null ? new StackTraceElement[0] : frames;
    }

    /**
     * Returns a number as text that names the run, for log files and messages.
     *
     * <p>The text is {@code lucce:RUN:0xNUMBER} with the run's random id, 16 hexadecimal digits that are the same
     * during the whole run: {@code lucce:0123456789abcdef:0x400024000c77cb}. {@code lucce decode} finds it in
     * lines of text, and refuses it if the log is another run's.
     *
     * <pre>{@code
     * logger.warn("connection leaked, opened at " + CallContext.toString(connection.openedAt));
     * }</pre>
     *
     * @param id a number that {@link #current()} returned in this Java virtual machine, or 0
     * @return the text; {@code 0x0} if {@code id} is 0, and only {@code 0x} and the number without the agent
     */
    public static String toString(long id) {
        return id == 0 ? "0x0" : PREFIX + Long.toHexString(id);
    }

    /**
     * Returns the content id of the stack trace that a number stands for: a hash of its frames, which is equal in every run
     * of a program, while the number is not.
     *
     * <p>What {@code lucce} prints beside a number is the same id.
     *
     * @param id a number that {@link #current()} returned in this Java virtual machine, or 0
     * @return 32 hexadecimal digits; empty if {@code id} is 0, if there is no agent or if it was detached
     * @throws IllegalArgumentException if the agent knows no calling context of this number; the
     *     message names the number
     */
    public static String contentId(long id) {
        String content = !ACTIVE || id == 0 ? null : contentId0(id);
        return content == null ? "" : content;
    }

    /**
     * Tells whether the lucce agent is loaded in this Java virtual machine.
     *
     * @return true if {@link #current()} returns numbers and {@link #decode(long)} decodes them
     */
    public static boolean isActive() {
        return ACTIVE;
    }

    /** Exported by the agent's library, as {@link #decode0} is: for calls that were not replaced. */
    private static native long current0();

    /** Exported as {@code Java_io_lucce_CallContext_event0}; for calls that the agent does not see. */
    private static native void event0(String kind, long value);

    /** Exported, too: a number that closes the tag; 0: nothing has changed. */
    private static native long tag0(String key, String value);

    /** Exported, too: whether {@code requests=auto} has a request open in this thread. */
    private static native boolean isRequest0();

    /** Exported, too. */
    private static native void ready0();

    /** Exported, too. */
    private static native void mark0(String name);

    private static native void untag0(long number);

    /** Exported by the agent's library as {@code Java_io_lucce_CallContext_decode0}. */
    private static native StackTraceElement[] decode0(long id);

    private static native String contentId0(long id);

    /** A tag that is open: see {@link CallContext#tag(String, String)}. */
    public static final class Tag implements AutoCloseable {
        private static final Tag NONE = new Tag(0);

        private final Thread owner = Thread.currentThread();
        private final long number;

        private Tag(long number) {
            this.number = number;
        }

        /**
         * Closes the tag, and tags that were opened within it and are still open. It does nothing if the tag is closed
         * already, or in another thread than the one that opened it.
         */
        @Override
        public void close() {
            if (number != 0 && Thread.currentThread() == owner) {
                untag0(number);
            }
        }
    }

    /**
     * A calling context that goes on in another thread.
     *
     * <p>A task that runs in a thread pool has the pool's frames below it, whichever thread submitted it. Run
     * in a scope, its events and numbers are those of a task that was called from the line where
     * the scope was taken: traces show the task's own frames, then {@link #run run}, then that line
     * and its callers.
     *
     * <pre>{@code
     * void submit(Runnable task) {
     *     executor.execute(Scope.capture().wrap(task));
     * }
     * }</pre>
     *
     * <p>A scope may be used again and again, in any number of threads at a time, and scopes may be
     * nested: the innermost one holds. Without the agent it runs the task and does nothing else.
     */
    public static final class Scope {
        private static final Scope NONE = new Scope(0, 0);

        private final long context;
        /** The tags of the code that took the scope; 0: none. */
        private final int tags;

        private Scope(long context, int tags) {
            this.context = context;
            this.tags = tags;
        }

        /**
         * Takes the calling context of the line that calls this method, and the tags of the thread.
         *
         * <p>Tasks that run in the scope have these tags in place of their thread's, as tasks of the JDK's executors have, unless
         * there are none, or the agent's option {@code tags=thread} is set.
         *
         * @return a scope in which tasks go on from there; without the agent one that changes nothing
         */
        public static Scope capture() {
            return ACTIVE ? of(CallContext.current()).withTags() : NONE;
        }

        /**
         * Returns a scope for a number that was taken before.
         *
         * @param id a number that {@link CallContext#current()} returned in this Java virtual machine;
         *     with 0, or a number that the agent does not know, the scope changes nothing
         * @return a scope in which tasks go on from where the number was taken
         */
        public static Scope of(long id) {
            return ACTIVE && id != 0 ? new Scope(id, 0) : NONE;
        }

        /** The scope, with the tags of the calling thread. */
        private Scope withTags() {
            int open = WALKS || context == 0 ? 0 : tags0();
            return open == 0 ? this : new Scope(context, open);
        }

        /**
         * Runs a task as if it were called from where this scope was taken.
         *
         * @param task what to run; whatever it throws is passed on
         */
        public void run(Runnable task) {
            if (context == 0) {
                task.run();
                return;
            }
            long tag = openTags();
            try {
                begin(context);
                try {
                    task.run();
                } finally {
                    end();
                }
            } finally {
                closeTags(tag);
            }
        }

        /**
         * Runs a task that has a result, as if it were called from where this scope was taken.
         *
         * @param <T> what the task returns
         * @param task what to run
         * @return its result
         * @throws Exception whatever the task throws
         */
        public <T> T call(Callable<? extends T> task) throws Exception {
            if (context == 0) {
                return task.call();
            }
            long tag = openTags();
            try {
                begin(context);
                try {
                    return task.call();
                } finally {
                    end();
                }
            } finally {
                closeTags(tag);
            }
        }

        /**
         * Returns a task that runs in this scope, wherever it is run.
         *
         * @param task what to run
         * @return the task itself without the agent, else one that calls {@link #run run} with it
         */
        public Runnable wrap(Runnable task) {
            return context == 0 ? task : () -> run(task);
        }

        /**
         * Returns a task with a result that runs in this scope, wherever it is run.
         *
         * @param <T> what the task returns
         * @param task what to run
         * @return the task itself without the agent, else one that calls {@link #call call} with it
         */
        public <T> Callable<T> wrap(Callable<T> task) {
            return context == 0 ? task : () -> call(task);
        }

        private long openTags() {
            return tags == 0 ? 0 : openTags0(tags);
        }

        private static void closeTags(long number) {
            if (number != 0) {
                untag0(number);
            }
        }

        /** Exported by the agent's library: the number of the thread's tags; 0: none. */
        private static native int tags0();

        /** Exported, too: what {@link CallContext#untag0} closes; 0: nothing has changed. */
        private static native long openTags0(int tags);

        /** The calling frame goes on from there. Hooks replace calls of it. */
        private static void begin(long id) {
            if (WALKS) {
                begin0(id);
            }
        }

        /** The calling frame has its own callers again. Hooks replace calls of it, too. */
        private static void end() {
            if (WALKS) {
                end0();
            }
        }

        /** Exported by the agent's library. */
        private static native void begin0(long id);

        /** Exported, too. */
        private static native void end0();
    }
}
