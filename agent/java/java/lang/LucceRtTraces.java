package java.lang;

import static java.lang.LucceRtAllocations.*;
import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtObjects.*;
import static java.lang.LucceRtProgramEvents.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/** The hooks of exceptions: their traces are arrays that the VM allocates. */
public class LucceRtTraces {
    LucceRtTraces() {}

    /**
     * After Throwable.fillInStackTrace: counts the trace's arrays. The slots are right if an instruction created the
     * exception by calling a constructor; the agent asks the VM once for each such instruction.
     */
    @Hidden @DontInline
    public static void countTrace(Object thrown, long p, int site) {
        if (!LIVE || !isCounted(ALLOC)) return;
        Thread t = Thread.currentThread();
        if (!hasState(t)) return;
        long text = Memory.U.getLong(t.$lucceState + MESSAGE_BYTES);
        Memory.U.putLong(t.$lucceState + MESSAGE_BYTES, 0);
        Object[] trace = (Object[]) Memory.U.getReference(thrown, TraceFields.BACKTRACE);
        if (trace == null) return;
        long bytes = sizeOfTrace(trace);
        long e = instructionLine(t, thrown, trace);
        if (e == 0 || !isCached(e, trace)) {
            int answer = resolveTrace(t.$lucceState, thrown, trace, bytes, text);
            if (answer == TRACE_COUNTED) return;
            if (answer == TRACE_REMEMBER) cacheInstruction(e, trace);
        }
        countByClass(trace, Object[].class, bytes, p, site, 0);
    }

    /**
     * The entry in which this thread keeps whether the innermost instruction of `trace` creates exceptions; in the cache of
     * typed sites, see `typedSite`: [class's number << 32 | MAKER | version and bci, method's number + 1]. 0: none. Errors that
     * the VM itself may throw at a constructor call have none.
     */
    private static long instructionLine(Thread t, Object thrown, Object[] trace) {
        long copies = t.$lucceCounters == 0 ? 0 : Memory.U.getLong(t.$lucceCounters + INDEX_TYPED);
        if (copies == 0 || thrown instanceof LinkageError || thrown instanceof VirtualMachineError
                || thrown instanceof NullPointerException || !hasKnownLayout(trace)) {
            return 0;
        }
        long key = instructionKey(trace);
        return key == 0 ? 0 : typedSiteLine(copies, key);
    }

    /** Whether methods, bcis and classes have the layout of known VMs. */
    private static boolean hasKnownLayout(Object[] trace) {
        return trace.length > 3 && trace[0] instanceof short[] && trace[1] instanceof int[]
                && trace[2] instanceof Object[] && ((Object[]) trace[2])[0] instanceof Class<?>;
    }

    private static long instructionKey(Object[] trace) {
        Class<?> type = (Class<?>) ((Object[]) trace[2])[0];
        int at = ((int[]) trace[1])[0];
        if (at < 0) return 0;
        long word = type.$lucceType;
        if (word == 0) word = resolveClassWord(type);
        return word == 0 ? 0 : word & -1L << CLASS_NUMBER_SHIFT | (MAKER | at) & 0xffffffffL;
    }

    private static boolean isCached(long e, Object[] trace) {
        return Memory.U.getLong(e) == instructionKey(trace) && Memory.U.getLong(e + COPY_VALUE) == methodNumber(trace);
    }

    private static long methodNumber(Object[] trace) {
        return (((short[]) trace[0])[0] & 0xffff) + 1;
    }

    private static void cacheInstruction(long e, Object[] trace) {
        if (e == 0) return;
        Memory.U.putLong(e, 0);
        Memory.U.putLong(e + COPY_VALUE, methodNumber(trace));
        Memory.U.putLong(e, instructionKey(trace));
    }

    /** As publishSite, in a constructor of Throwable before its trace is recorded: {@code text} is its message, if it is a String. */
    @Hidden @DontInline
    public static void keepMessage(Object text, long p, int site) {
        publishSite(p, site);
        if (!LIVE || !isCounted(ALLOC)) return;
        Thread t = Thread.currentThread();
        if (hasState(t)) Memory.U.putLong(t.$lucceState + MESSAGE_BYTES, sizeOfText(text));
    }

    private static long sizeOfText(Object text) {
        if (!(text instanceof String)) return 0;
        long word = String.class.$lucceType;
        if ((int) word == 0) word = resolveObjectWord(String.class, text);
        return ((int) word & -OBJECT_ALIGNMENT) + sizeOf(Memory.U.getReference(text, StringFields.BYTES));
    }

    /** Initialized when the first trace is counted. */
    private static final class TraceFields {
        static final long BACKTRACE = Memory.U.objectFieldOffset(Throwable.class, "backtrace");
    }

    /** The size of a trace: arrays for some frames, and a reference to the arrays for the callers. */
    private static long sizeOfTrace(Object[] chunk) {
        long sum = sizeOf(chunk);
        for (int i = 0; i < chunk.length; i++) {
            Object part = chunk[i];
            if (part instanceof Object[] && isTrace((Object[]) part)) {
                sum += sizeOfTrace((Object[]) part);
            } else if (part instanceof Object[] || part instanceof short[] || part instanceof int[]
                    || part instanceof long[]) {
                sum += sizeOf(part);
            }
        }
        return sum;
    }

    private static boolean isTrace(Object[] part) {
        return part.length > 0 && part[0] instanceof short[];
    }
}
