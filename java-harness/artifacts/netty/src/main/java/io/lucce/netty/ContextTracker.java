package io.lucce.netty;

import io.lucce.CallContext;
import io.lucce.netty.TrackerLists.TrackerList;
import io.netty.util.ResourceLeakHint;
import io.netty.util.ResourceLeakTracker;
import io.netty.util.internal.StringUtil;
import io.netty.util.internal.SystemPropertyUtil;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;

/** Follows one object: where it was made, and the contexts of the last accesses to it. */
final class ContextTracker<T> extends PhantomReference<Object> implements ResourceLeakTracker<T> {
    /** Number of accesses that are kept, as Netty's own option says. */
    private static final int KEPT = Math.max(0, SystemPropertyUtil.getInt("io.netty.leakDetection.targetRecords", 4));
    /** The package whose frames belong to the record, not to the program. */
    private static final String OWN = ContextTracker.class.getPackageName() + ".";
    private static final String NETTY = "io.netty.";
    /** Where the arrays have the creation, behind the accesses. */
    private static final int CREATION = KEPT;

    /** Links of the list; its lock guards them. */
    ContextTracker<?> previous;
    ContextTracker<?> next;
    boolean isListed;

    private final TrackerList list;
    /** Number of accesses. Of two at the same time in several threads, one may be lost. */
    private int count;
    /** The contexts of the last accesses and of the creation: access n is at n % KEPT. 0: unknown. */
    private final long[] contexts = new long[KEPT + 1];
    /** Their hints; null: none had one. */
    private String[] hints;
    /** Stack traces in place of unknown contexts; null: all are known. */
    private Throwable[] traces;

    ContextTracker(T object, ReferenceQueue<Object> collected, TrackerList list, Object hint, long created) {
        super(object, collected);
        this.list = list;
        keep(CREATION, created, hint);
        list.add(this);
        Reference.reachabilityFence(object);
    }

    private static String textOf(Object hint) {
        return hint instanceof ResourceLeakHint ? ((ResourceLeakHint) hint).toHintString() : hint.toString();
    }

    @Override
    public void record() {
        if (KEPT > 0) {
            keep(nextPlace(), CallContext.current(), null);
        }
    }

    @Override
    public void record(Object hint) {
        if (KEPT > 0) {
            keep(nextPlace(), CallContext.current(), hint);
        }
    }

    private int nextPlace() {
        int access = count;
        count = access + 1;
        return Integer.remainderUnsigned(access, KEPT);
    }

    private void keep(int at, long context, Object hint) {
        contexts[at] = context;
        if (hint != null || hints != null) {
            keepHint(at, hint);
        }
        if (context == 0 || traces != null) {
            keepTrace(at, context);
        }
    }

    private void keepHint(int at, Object hint) {
        String[] texts = hints;
        if (texts == null) {
            texts = new String[KEPT + 1];
            hints = texts;
        }
        texts[at] = hint == null ? null : textOf(hint);
    }

    private void keepTrace(int at, long context) {
        Throwable[] unknown = traces;
        if (unknown == null) {
            unknown = new Throwable[KEPT + 1];
            traces = unknown;
        }
        unknown[at] = context == 0 ? new Throwable() : null;
    }

    @Override
    public boolean close(T object) {
        boolean isFirst = end();
        Reference.reachabilityFence(object);
        return isFirst;
    }

    /** Follows the object no longer; returns whether it was followed. */
    boolean end() {
        boolean wasListed = list.remove(this);
        if (wasListed) {
            clear();
        }
        return wasListed;
    }

    /** Equal for leaks with equal records. */
    String key() {
        StringBuilder key = new StringBuilder();
        appendKey(key, CREATION);
        for (int access = lastAccess(); access >= firstAccess(); access--) {
            appendKey(key, access % KEPT);
        }
        return key.toString();
    }

    private void appendKey(StringBuilder key, int at) {
        key.append(contexts[at]).append(hint(at)).append(' ');
        Throwable trace = trace(at);
        if (trace != null) {
            key.append(Arrays.toString(trace.getStackTrace()));
        }
    }

    private String hint(int at) {
        String[] texts = hints;
        return texts == null ? null : texts[at];
    }

    private Throwable trace(int at) {
        Throwable[] unknown = traces;
        return unknown == null ? null : unknown[at];
    }

    /** The frames of a record; none if its number is of an agent that was detached. */
    private StackTraceElement[] frames(int at) {
        Throwable trace = trace(at);
        if (trace != null) {
            return trace.getStackTrace();
        }
        try {
            return CallContext.decode(contexts[at]);
        } catch (IllegalArgumentException unknown) {
            return new StackTraceElement[0];
        }
    }

    private int lastAccess() {
        return count - 1;
    }

    private int firstAccess() {
        return Math.max(0, count - KEPT);
    }

    /** The records in Netty's form, the last one first. */
    String describe(String[] excluded) {
        StringBuilder text = new StringBuilder(4096).append(StringUtil.NEWLINE);
        text.append("Recent access records: ").append(StringUtil.NEWLINE);
        Set<String> seen = new LinkedHashSet<>();
        int number = 1;
        for (int access = lastAccess(); access >= firstAccess(); access--) {
            String record = format(access % KEPT, excluded);
            if (seen.add(record)) {
                text.append('#').append(number++).append(':').append(StringUtil.NEWLINE).append(record);
            }
        }
        text.append("Created at:").append(StringUtil.NEWLINE).append(format(CREATION, excluded));
        int kept = lastAccess() - firstAccess() + 1;
        note(text, kept - seen.size(), "because they were duplicates");
        note(text, firstAccess(), "because only the last " + KEPT + " are kept (io.netty.leakDetection.targetRecords)");
        text.setLength(text.length() - StringUtil.NEWLINE.length());
        return text.toString();
    }

    private static void note(StringBuilder text, int records, String why) {
        if (records > 0) {
            text.append(": ").append(records).append(" leak records were discarded ").append(why).append(StringUtil.NEWLINE);
        }
    }

    /** A record as text. If its number has no frames, it is in the text for {@code lucce decode}. */
    private String format(int at, String[] excluded) {
        StringBuilder text = new StringBuilder(2048);
        String hint = hint(at);
        if (hint != null) {
            text.append("\tHint: ").append(hint).append(StringUtil.NEWLINE);
        }
        StackTraceElement[] frames = frames(at);
        if (frames.length == 0 && contexts[at] != 0) {
            text.append('\t').append(CallContext.toString(contexts[at])).append(StringUtil.NEWLINE);
        }
        for (int frame = firstFrame(frames, at); frame < frames.length; frame++) {
            if (!isExcluded(frames[frame], excluded)) {
                text.append('\t').append(frames[frame]).append(StringUtil.NEWLINE);
            }
        }
        return text.toString();
    }

    /** The first frame of the program. Netty leaves out its own method that records an access. */
    private static int firstFrame(StackTraceElement[] frames, int at) {
        int first = 0;
        while (first < frames.length && isOwn(frames[first].getClassName())) {
            first++;
        }
        boolean isAccess = at != CREATION && first < frames.length;
        return isAccess && frames[first].getClassName().startsWith(NETTY) ? first + 1 : first;
    }

    private static boolean isOwn(String name) {
        return name.startsWith(OWN) && name.indexOf('.', OWN.length()) < 0;
    }

    private static boolean isExcluded(StackTraceElement frame, String[] excluded) {
        for (int at = 0; at + 1 < excluded.length; at += 2) {
            if (excluded[at].equals(frame.getClassName()) && excluded[at + 1].equals(frame.getMethodName())) {
                return true;
            }
        }
        return false;
    }
}
