package java.lang;

import static java.lang.LucceRtEvents.ends;
import static java.lang.LucceRtEvents.given;
import static java.lang.LucceRtLayout.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks of `events=io`, around calls of natives that read and write; see `kinds::io` in the crate `lucce-instrument`.
 * In a class out of scope, `site` is negative and stands for an operation.
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

    /** `bytes`: -1 at the end of the file; less if nothing was read. */
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

    /** The operation moves no bytes. `answer` below 0: it did nothing. */
    @Hidden @DontInline
    public static void passed(int answer, long p, int site) {
        if (answer >= 0) ends(IO, 0, p, site);
    }

    @Hidden @DontInline
    public static void written(long p, int site) {
        ends(IO, given(), p, site);
    }
}
