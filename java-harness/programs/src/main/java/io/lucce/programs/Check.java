package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * Compares context numbers with the JVM's own stack traces.
 *
 * <p>The idiom, always on one line, in the very method that is to be checked:
 *
 * <pre>{@code Check.that(CallContext.current(), new Throwable());}</pre>
 *
 * <p>Decoding waits until {@link #done()}, when the graph has grown over the number. No lambdas, no
 * library beyond collections and one method handle: this class is called in the middle of everything.
 */
public final class Check {
    private static final int PENDING_LIMIT = 20_000;
    private static final int DIFFERENCES_SHOWN = 5;
    /** Set for schemes that run out of numbers: having none is no difference, a wrong one is. */
    private static final boolean NONE_ALLOWED = Boolean.getBoolean("lucce.check.none-allowed");

    /** {@code CallContext.current} where no hook replaces the call: the agent asks the JVM for the frames. */
    private static final MethodHandle CURRENT = handle();

    private static List<Place> pending = new ArrayList<>();
    private static final Set<StackTraceElement> innermost = new HashSet<>();
    private static int contexts;
    private static int differences;
    private static int wrongResults;
    private static int traceLimit = -1;
    /**
     * What the agent was told: {@code app} is instrument=app, {@code outer} is exclude=*$*, {@code handles}
     * is include=java.lang.invoke.*+io.lucce.*, {@code generated} is exclude=io.lucce.programs.generated.*.
     */
    private static final String SCOPE = System.getProperty("lucce.scope", "all");

    private Check() {}

    /** {@code whole}: the JVM's trace with all its frames. */
    private static final class Place {
        final long id;
        final StackTraceElement[] trace;
        final StackTraceElement[] whole;
        final Thread thread;
        final String untouched;

        Place(long id, StackTraceElement[] trace, StackTraceElement[] whole, Thread thread, String untouched) {
            this.id = id;
            this.trace = trace;
            this.whole = whole;
            this.thread = thread;
            this.untouched = untouched;
        }
    }

    private static MethodHandle handle() {
        try {
            MethodHandle current = MethodHandles.lookup()
                    .findStatic(CallContext.class, "current", MethodType.methodType(long.class));
            // Whatever the first call loads is loaded now.
            long number = (long) current.invokeExact();
            if (number != 0 || !NONE_ALLOWED) {
                equal(CallContext.isActive(), number != 0);
            }
            return current;
        } catch (Throwable e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** Notes a number and the trace that it must decode to; and its own of both, taken without a hook. */
    public static void that(long id, Throwable here) {
        try {
            note(place((long) CURRENT.invokeExact(), new Throwable(), null));
        } catch (Throwable e) {
            wrong("CallContext.current by a method handle: " + e);
        }
        note(place(id, here, null));
    }

    /** Notes a number and its trace above frames of a class that passes through untouched: those may be missing. */
    public static void thatAbove(String untouched, long id, Throwable here) {
        note(place(id, here, untouched));
    }

    private static Place place(long id, Throwable here, String untouched) {
        StackTraceElement[] trace = here.getStackTrace();
        StackTraceElement[] wanted = inScope(without(untouched, trace));
        return new Place(id, wanted, trace, Thread.currentThread(), untouched);
    }

    private static StackTraceElement[] inScope(StackTraceElement[] frames) {
        if (SCOPE.equals("all")) {
            return frames;
        }
        List<StackTraceElement> others = new ArrayList<>();
        for (StackTraceElement frame : frames) {
            if (!isOutside(frame)) {
                others.add(frame);
            }
        }
        return others.toArray(new StackTraceElement[0]);
    }

    private static boolean isOutside(StackTraceElement frame) {
        switch (SCOPE) {
            case "app":
                return isOfTheJdk(frame);
            case "outer":
                return frame.getClassName().indexOf('$') >= 0;
            case "handles":
                return !frame.getClassName().startsWith("java.lang.invoke.")
                        && !frame.getClassName().startsWith("io.lucce.");
            case "generated":
                return frame.getClassName().startsWith("io.lucce.programs.generated.");
            default:
                return false;
        }
    }

    /** Boot loader and nameless loaders have no name, but the boot loader's classes have a named module. */
    private static boolean isOfTheJdk(StackTraceElement frame) {
        String loader = frame.getClassLoaderName();
        String module = frame.getModuleName();
        return "platform".equals(loader)
                || loader == null && module != null && !module.startsWith("jdk.proxy")
                || frame.getClassName().startsWith("jdk.internal.");
    }

    private static void note(Place place) {
        List<Place> full = null;
        synchronized (Check.class) {
            contexts++;
            if (place.trace.length > 0) {
                innermost.add(place.trace[0]);
            }
            if (CallContext.isActive()) {
                pending.add(place);
                if (pending.size() >= PENDING_LIMIT) {
                    full = pending;
                    pending = new ArrayList<>();
                }
            }
        }
        if (full != null) {
            compareAll(full);
        }
    }

    /** Checks a result of the program itself, which must be the same with and without the agent. */
    public static void equal(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) {
            wrong("expected <" + expected + "> but was <" + actual + ">");
        }
    }

    /** Notes that the program itself went wrong. */
    public static void wrong(String what) {
        synchronized (Check.class) {
            wrongResults++;
        }
        new AssertionError(what).printStackTrace(System.out);
    }

    /** For threads that must not end by an exception. */
    public static void uncaught(Thread thread, Throwable thrown) {
        thrown.printStackTrace(System.out);
        wrong("uncaught on " + thread.getName() + ": " + thrown);
    }

    /** Prints the summary and ends the JVM with 1 if anything differed. */
    public static void done() {
        if (!summary()) {
            System.exit(1);
        }
    }

    /** Prints the summary; for use where {@code System.exit} cannot be called. */
    public static boolean summary() {
        List<Place> rest;
        synchronized (Check.class) {
            rest = pending;
            pending = new ArrayList<>();
        }
        compareAll(rest);
        synchronized (Check.class) {
            if (contexts == 0) {
                System.out.println("FAILED no place was reached");
                return false;
            }
            if (differences > 0 || wrongResults > 0) {
                System.out.println("FAILED " + differences + " of " + contexts
                        + " contexts differ, " + wrongResults + " wrong results");
                return false;
            }
            boolean isActive = CallContext.isActive();
            System.out.println(summaryLine(isActive ? "OK " : "SKIPPED no agent (", isActive ? "" : ")"));
            return true;
        }
    }

    /** Without {@code +}: to link it would make thousands of objects in each program. */
    private static String summaryLine(String begin, String end) {
        StringBuilder line = new StringBuilder(begin).append(contexts).append(" contexts at ");
        return line.append(innermost.size()).append(" places").append(end).toString();
    }

    private static void compareAll(List<Place> places) {
        for (Place place : places) {
            String difference = difference(place);
            if (difference != null) {
                report(place, difference);
            }
        }
    }

    private static String difference(Place place) {
        if (place.id == 0) {
            boolean outside = place.trace.length == 0 && place.whole.length > 0;
            return NONE_ALLOWED || outside ? null : "no number";
        }
        StackTraceElement[] decoded;
        try {
            decoded = without(place.untouched, CallContext.decode(place.id));
        } catch (RuntimeException e) {
            return "not decoded: " + e;
        }
        StackTraceElement[] trace = place.trace;
        if (decoded.length != trace.length
                && !(decoded.length > trace.length && place.whole.length == traceLimit())) {
            return trace.length + " frames expected, " + decoded.length + " decoded" + text(decoded);
        }
        for (int i = 0; i < trace.length; i++) {
            if (!same(trace[i], decoded[i])) {
                return "frame " + i + " differs" + text(decoded);
            }
        }
        return null;
    }

    private static StackTraceElement[] without(String untouched, StackTraceElement[] frames) {
        if (untouched == null) {
            return frames;
        }
        List<StackTraceElement> others = new ArrayList<>();
        for (StackTraceElement frame : frames) {
            if (!frame.getClassName().equals(untouched)) {
                others.add(frame);
            }
        }
        return others.toArray(new StackTraceElement[0]);
    }

    private static boolean same(StackTraceElement a, StackTraceElement b) {
        return a.getLineNumber() == b.getLineNumber()
                && a.getMethodName().equals(b.getMethodName())
                && a.getClassName().equals(b.getClassName())
                && Objects.equals(a.getFileName(), b.getFileName());
    }

    private static synchronized void report(Place place, String difference) {
        differences++;
        if (differences <= DIFFERENCES_SHOWN) {
            System.out.println("DIFFERENT context 0x" + Long.toHexString(place.id) + " on "
                    + place.thread.getName() + ": " + difference + "\n  the JVM says:" + lines(place.trace));
        }
    }

    private static String text(StackTraceElement[] decoded) {
        return "\n  decoded:" + lines(decoded);
    }

    private static String lines(StackTraceElement[] frames) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < frames.length && i < 60; i++) {
            text.append("\n\tat ").append(frames[i]);
        }
        return frames.length > 60 ? text.append("\n\t…").toString() : text.toString();
    }

    /** The depth at which this JVM cuts traces (-XX:MaxJavaStackTraceDepth), 0 if it seems not to. */
    private static synchronized int traceLimit() {
        if (traceLimit < 0) {
            int length = probe(1100).length;
            traceLimit = length < 1100 ? length : 0;
        }
        return traceLimit;
    }

    private static StackTraceElement[] probe(int depth) {
        return depth == 0 ? new Throwable().getStackTrace() : probe(depth - 1);
    }
}
