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
import java.util.LinkedHashSet;
import java.util.Set;

/** Follows one object: where it was made, and the contexts of the last accesses to it. */
final class ContextTracker<T> extends PhantomReference<Object> implements ResourceLeakTracker<T> {
    /** Number of accesses that are kept, as Netty's own option says. */
    private static final int KEPT = Math.max(0, SystemPropertyUtil.getInt("io.netty.leakDetection.targetRecords", 4));
    /** The package whose frames belong to the record, not to the program. */
    private static final String OWN = ContextTracker.class.getPackageName() + ".";

    /** Links of the list; its lock guards them. */
    ContextTracker<?> previous;
    ContextTracker<?> next;
    boolean isListed;

    private final TrackerList list;
    private final long created;
    private final String createdHint;
    /** Number of accesses. Of two at the same time in several threads, one may be lost. */
    private int count;
    /** The contexts of the last accesses: access n is at n % KEPT. */
    private final long[] accesses = new long[KEPT];
    /** Their hints; null: none had one. */
    private String[] hints;

    ContextTracker(T object, ReferenceQueue<Object> collected, TrackerList list, Object hint, long created) {
        super(object, collected);
        this.list = list;
        this.created = created;
        createdHint = hint == null ? null : textOf(hint);
        list.add(this);
        Reference.reachabilityFence(object);
    }

    private static String textOf(Object hint) {
        return hint instanceof ResourceLeakHint own ? own.toHintString() : hint.toString();
    }

    @Override
    public void record() {
        if (KEPT > 0) {
            keep(CallContext.current(), null);
        }
    }

    @Override
    public void record(Object hint) {
        if (KEPT > 0) {
            keep(CallContext.current(), hint == null ? null : textOf(hint));
        }
    }

    private void keep(long context, String hint) {
        int access = count;
        count = access + 1;
        int at = Integer.remainderUnsigned(access, KEPT);
        accesses[at] = context;
        String[] texts = hints;
        if (hint != null && texts == null) {
            texts = new String[KEPT];
            hints = texts;
        }
        if (texts != null) {
            texts[at] = hint;
        }
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
        StringBuilder key = new StringBuilder().append(createdHint).append(' ').append(created);
        for (int access = lastAccess(); access >= firstAccess(); access--) {
            key.append(' ').append(accesses[access % KEPT]).append(hint(access));
        }
        return key.toString();
    }

    private String hint(int access) {
        String[] texts = hints;
        return texts == null ? null : texts[access % KEPT];
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
            // Netty leaves out the method of the object that records, too.
            String record = format(accesses[access % KEPT], hint(access), 1, excluded);
            if (seen.add(record)) {
                text.append('#').append(number++).append(':').append(StringUtil.NEWLINE).append(record);
            }
        }
        text.append("Created at:").append(StringUtil.NEWLINE).append(format(created, createdHint, 0, excluded));
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

    /** A record as text. {@code skipped}: number of frames behind this package's that are left out. */
    private static String format(long context, String hint, int skipped, String[] excluded) {
        StringBuilder text = new StringBuilder(2048);
        if (hint != null) {
            text.append("\tHint: ").append(hint).append(StringUtil.NEWLINE);
        }
        int skip = skipped;
        boolean isInside = false;
        for (StackTraceElement frame : CallContext.decode(context)) {
            if (!isInside && frame.getClassName().startsWith(OWN)) {
                continue;
            }
            isInside = true;
            if (skip > 0) {
                skip--;
            } else if (!isExcluded(frame, excluded)) {
                text.append('\t').append(frame).append(StringUtil.NEWLINE);
            }
        }
        return text.toString();
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
