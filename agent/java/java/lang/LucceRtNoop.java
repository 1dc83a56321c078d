package java.lang;

import jdk.internal.access.JavaLangAccess;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * Replaces old hooks in a class that comes back with them; see `neutralize` in the crate `lucce-instrument`. All helper
 * variants share this class.
 */
public final class LucceRtNoop {
    private LucceRtNoop() {}

    // Replaces a call of the program: its slot is unknown, so the agent asks the VM.

    @Hidden
    public static long askVm(long p, int site) {
        return LucceRtProgramEvents.contextFromVm();
    }

    @Hidden
    public static void askVm(String kind, long value, long p, int site) {
        LucceRtProgramEvents.eventFromVm(kind, value);
    }

    @Hidden @DontInline
    public static void askVm(Unsafe u, boolean absolute, long time, long p, int site) {
        long since = System.nanoTime();
        u.park(absolute, time);
        LucceRtDurations.endWait(since);
    }

    @Hidden @DontInline
    public static void askVm(JavaLangAccess threads, long p, int site) {
        long since = System.nanoTime();
        threads.parkVirtualThread();
        LucceRtDurations.endWait(since);
    }

    @Hidden @DontInline
    public static void askVm(JavaLangAccess threads, long time, long p, int site) {
        long since = System.nanoTime();
        threads.parkVirtualThread(time);
        LucceRtDurations.endWait(since);
    }

    @Hidden
    public static long enterNoop() { return 0; }

    @Hidden
    public static long enterNoop(int id) { return 0; }

    @Hidden
    public static long enterNoop(long p, int site) { return 0; }

    @Hidden
    public static long enterNoop(long p, int site, long kept) { return 0; }

    // each ELEMENT
    @Hidden
    public static long enterNoop(ELEMENT[] made, long p, int site, long kept) { return 0; }

    // end
    @Hidden
    public static void noop(long p) { }

    @Hidden
    public static void noop(int site) { }

    @Hidden
    public static void noop(long p, int site) { }

    @Hidden
    public static void noop(long p, int site, int inner) { }

    @Hidden
    public static void noop(long number, long p, int site) { }

    @Hidden
    public static void noop(int bytes, long p, int site) { }

    @Hidden
    public static void noop(int other, int bytes, long p, int site) { }

    @Hidden
    public static void noop(Class<?> type, long p) { }

    @Hidden
    public static void noop(Thread t, long p, int site) { }

    @Hidden
    public static void noop(Object made, long p, int site) { }

    @Hidden
    public static void noop(Object made, int site) { }

    // each ELEMENT
    @Hidden
    public static void noop(ELEMENT[] made, long p, int site) { }

    @Hidden
    public static void noop(ELEMENT[] made, int site) { }

    // end
}
