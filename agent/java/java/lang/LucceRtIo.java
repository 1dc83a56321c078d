package java.lang;

import static java.lang.LucceRtEvents.ends;
import static java.lang.LucceRtEvents.given;
import static java.lang.LucceRtLayout.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * What hooks of `events=io` call, around calls of natives that read and write: see `kinds::io` in the agent's crate `hooks`. A site
 * below 0 is an operation, in a class out of scope.
 */
public final class LucceRtIo {
    private LucceRtIo() {}

    @Hidden @DontInline
    public static void begins(long p, int site) {
        LucceRtEvents.begins(IO, 0, p, site);
    }

    @Hidden @DontInline
    public static void ofByte(long p, int site) {
        LucceRtEvents.begins(IO, 1, p, site);
    }

    @Hidden @DontInline
    public static void ofLast(int other, int bytes, long p, int site) {
        LucceRtEvents.begins(IO, bytes, p, site);
    }

    @Hidden @DontInline
    public static void ofLastButOne(int bytes, int other, long p, int site) {
        LucceRtEvents.begins(IO, bytes, p, site);
    }

    /** -1: the end of it; below: nothing was done. */
    @Hidden @DontInline
    public static void read(int bytes, long p, int site) {
        if (bytes >= -1) ends(IO, Math.max(bytes, 0), p, site);
    }

    @Hidden @DontInline
    public static void read(long bytes, long p, int site) {
        if (bytes >= -1) ends(IO, Math.max(bytes, 0), p, site);
    }

    @Hidden @DontInline
    public static void readByte(int b, long p, int site) {
        ends(IO, b < 0 ? 0 : 1, p, site);
    }

    /** Moved nothing; below 0: nothing was done. */
    @Hidden @DontInline
    public static void passed(int answer, long p, int site) {
        if (answer >= 0) ends(IO, 0, p, site);
    }

    @Hidden @DontInline
    public static void written(long p, int site) {
        ends(IO, given(), p, site);
    }
}
