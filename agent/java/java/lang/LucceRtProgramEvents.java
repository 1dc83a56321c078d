package java.lang;

import static java.lang.LucceRtContexts.*;
import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtPaths.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/** The hooks of the program's own events. */
public final class LucceRtProgramEvents {
    private LucceRtProgramEvents() {}

    /** Texts of the program's kinds of events, and the address of their types: see `counting/program_kinds` in the agent. */
    static String[] kinds;
    static long kindTypes;

    /** Counts an event of the program. */
    @Hidden @DontInline
    public static void event(String kind, long value, long p, int site) {
        if (!LIVE || kind == null || !isCounted(OWN)) return;
        Thread t = Thread.currentThread();
        long number = contextId(t, p, site);
        if (number == 0) return;
        String[] known = kinds;
        int place = known == null ? -1 : placeOf(kind, known);
        Unsafe u = Memory.U;
        // Plain: see LucceRtFrames. Another thread may be storing the type of a text in a place that has no text yet.
        int type = place < 0 || place >= EMPTY ? 0 : u.getInt(kindTypes + ((long) place << INT_BITS));
        long index = t.$lucceCounters;
        long byType = type == 0 || index == 0 ? 0 : u.getLong(index + INDEX_BY_TYPE);
        long counter = byType == 0 ? 0 : findInIndex(u, byType, number, type);
        if (counter == 0) {
            countNewEvent(t.$lucceState, number, kind, value, known, place < 0 ? place : place & EMPTY - 1);
        } else {
            u.putLong(counter + EVENT_COUNTER_COUNT, u.getLong(counter + EVENT_COUNTER_COUNT) + 1);
            if (value > 0) u.putLong(counter + EVENT_COUNTER_VALUE, u.getLong(counter + EVENT_COUNTER_VALUE) + value);
            if (STREAM) writeToStream(t, type, number, value);
        }
        if (VERIFY) verifyContext(t, number, 0);
    }

    /** Flag of a place without a text. */
    private static final int EMPTY = 1 << 30;

    /**
     * The place of a text in the array, or a free place with EMPTY; below 0: the text is too long. No two places have the
     * same text. String's methods are not used, since they may have hooks.
     */
    private static int placeOf(String text, String[] known) {
        Unsafe u = Memory.U;
        byte[] bytes = (byte[]) u.getReference(text, StringFields.BYTES);
        if (bytes.length > LONGEST_KIND) return -1;
        int hash = bytes.length;
        for (int i = 0; i < bytes.length; i++) hash = 31 * hash + bytes[i];
        int mask = known.length - 1;
        int place = hash * (int) (MULTIPLIER >>> 32) >>> 16 & mask;
        for (; ; place = place + 1 & mask) {
            String at = known[place];
            if (at == null) return place | EMPTY;
            if (at == text || isSame(u, at, text, bytes)) return place;
        }
    }

    private static boolean isSame(Unsafe u, String at, String text, byte[] bytes) {
        byte[] others = (byte[]) u.getReference(at, StringFields.BYTES);
        if (others.length != bytes.length) return false;
        for (int i = 0; i < bytes.length; i++) {
            if (others[i] != bytes[i]) return false;
        }
        return u.getByte(at, StringFields.CODER) == u.getByte(text, StringFields.CODER);
    }

    /** Offsets of a String's fields. Initialized when a kind of events is looked up. */
    static final class StringFields {
        static final long BYTES = Memory.U.objectFieldOffset(String.class, "value");
        static final long CODER = Memory.U.objectFieldOffset(String.class, "coder");
    }

    // For LucceRtNoop.

    @Hidden
    static long contextFromVm() {
        return LIVE ? currentContextFromVm() : 0;
    }

    @Hidden
    static void eventFromVm(String kind, long value) {
        if (!LIVE || kind == null || !isCounted(OWN)) return;
        long number = countEventFromVm(kind, value);
        if (VERIFY && number != 0) verifyContext(Thread.currentThread(), number, 0);
    }

    private static native void countNewEvent(
            long ts, long number, String kind, long value, String[] known, int place);
}
