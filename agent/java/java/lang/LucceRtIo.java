package java.lang;

import static java.lang.LucceRtDurations.*;
import static java.lang.LucceRtLayout.*;

import java.net.DatagramPacket;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks of `events=io`, around calls of natives that read and write; see `kinds::io` in the crate `lucce-instrument`.
 * In a class out of scope, `site` is negative and stands for an operation.
 */
public final class LucceRtIo {
    private LucceRtIo() {}

    @Hidden @DontInline
    public static void beforeOperation(long p, int site) {
        beginOperation(IO, 0, p, site);
    }

    @Hidden @DontInline
    public static void beforeByte(long p, int site) {
        beginOperation(IO, 1, p, site);
    }

    @Hidden @DontInline
    public static void beforeLast(int other, int bytes, long p, int site) {
        beginOperation(IO, bytes, p, site);
    }

    @Hidden @DontInline
    public static void beforeLastButOne(int bytes, int other, long p, int site) {
        beginOperation(IO, bytes, p, site);
    }

    /** The hooked call sends the packet. Reading its length is another call from there, which may have hooks. */
    @Hidden @DontInline
    public static void beforePacket(Object packet, long p, int site) {
        moveToCallee(p, site);
        beginOperation(IO, ((DatagramPacket) packet).getLength(), p, site);
    }

    /** `bytes`: -1 at the end of the file; less if nothing was read. */
    @Hidden @DontInline
    public static void afterRead(int bytes, long p, int site) {
        if (bytes >= -1) endOperation(IO, Math.max(bytes, 0), p, site);
    }

    @Hidden @DontInline
    public static void afterRead(long bytes, long p, int site) {
        if (bytes >= -1) endOperation(IO, Math.max(bytes, 0), p, site);
    }

    @Hidden @DontInline
    public static void afterReadByte(int b, long p, int site) {
        endOperation(IO, b < 0 ? 0 : 1, p, site);
    }

    /** The operation moves no bytes. `answer` below 0: it did nothing. */
    @Hidden @DontInline
    public static void afterOther(int answer, long p, int site) {
        if (answer >= 0) endOperation(IO, 0, p, site);
    }

    @Hidden @DontInline
    public static void afterWrite(long p, int site) {
        endOperation(IO, amountAtStart(), p, site);
    }

    /** The hooked call has received the packet. As in beforePacket, its length is read by another call. */
    @Hidden @DontInline
    public static void afterPacket(Object packet, long p, int site) {
        moveToCallee(p, site);
        endOperation(IO, ((DatagramPacket) packet).getLength(), p, site);
    }
}
