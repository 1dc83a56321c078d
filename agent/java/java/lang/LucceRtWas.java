package java.lang;

import jdk.internal.access.JavaLangAccess;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * Replaces old hooks in a class that comes back with them; see `old_hooks` in the crate `lucce-instrument`. All helper
 * variants share this class.
 */
public final class LucceRtWas {
    private LucceRtWas() {}

    // Replaces a call of the program: its slot is unknown, so the agent asks the VM.

    @Hidden
    public static long asked(long p, int site) {
        return LucceRtEvents.asked();
    }

    @Hidden
    public static void asked(String kind, long value, long p, int site) {
        LucceRtEvents.told(kind, value);
    }

    @Hidden @DontInline
    public static void asked(Unsafe u, boolean absolute, long time, long p, int site) {
        long since = System.nanoTime();
        u.park(absolute, time);
        LucceRtEvents.parked(since);
    }

    @Hidden @DontInline
    public static void asked(JavaLangAccess threads, long p, int site) {
        long since = System.nanoTime();
        threads.parkVirtualThread();
        LucceRtEvents.parked(since);
    }

    @Hidden @DontInline
    public static void asked(JavaLangAccess threads, long time, long p, int site) {
        long since = System.nanoTime();
        threads.parkVirtualThread(time);
        LucceRtEvents.parked(since);
    }

    @Hidden
    public static long entered() { return 0; }

    @Hidden
    public static long entered(int id) { return 0; }

    @Hidden
    public static void was(long p) { }

    @Hidden
    public static void was(int site) { }

    @Hidden
    public static void was(long p, int site) { }

    @Hidden
    public static void was(long p, int site, int inner) { }

    @Hidden
    public static void was(long number, long p, int site) { }

    @Hidden
    public static void was(int bytes, long p, int site) { }

    @Hidden
    public static void was(int other, int bytes, long p, int site) { }

    @Hidden
    public static void was(Class<?> type, long p) { }

    @Hidden
    public static void was(Thread t, long p, int site) { }

    @Hidden
    public static void was(Object made, long p, int site) { }

    @Hidden
    public static void was(Object made, int site) { }

    // each ELEMENT
    @Hidden
    public static void was(ELEMENT[] made, long p, int site) { }

    @Hidden
    public static void was(ELEMENT[] made, int site) { }

    // end
}
