package java.lang;

import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtObjects.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks of allocations whose type the code names.
 *
 * <p>The build repeats the text between `each ELEMENT` and `end` for each array type: HEADER is the number of bytes before
 * the elements, SHIFT the power of two of an element's bytes.
 */
public final class LucceRtAllocations {
    private LucceRtAllocations() {}

    /** Bytes of an array's header; {@code referenceShift}: the power of two of a reference's bytes. */
    static int header, headerOfLongs, referenceShift;

    @Hidden @ForceInline
    public static void countNew(long p, int site) {
        if (LIVE) countAllocation(p, site, 0, 0);
    }

    /** For methods without a call before: they do not keep their slot. */
    @Hidden @ForceInline
    public static void countNew(int site) {
        if (LIVE) countAllocation(enter(), site, 0, 0);
    }

    /** In a loop; {@code kept}: see countKeeping. */
    @Hidden @ForceInline
    public static long countNew(long p, int site, long kept) {
        return LIVE ? countKeeping(p, site, 0, kept) : 0;
    }

    // each ELEMENT
    @Hidden @ForceInline
    public static long countArray(ELEMENT[] a, long p, int site, long kept) {
        return LIVE ? countKeeping(p, site, arraySize(HEADER, a.length, SHIFT), kept) : 0;
    }

    @Hidden @ForceInline
    public static void countArray(ELEMENT[] a, long p, int site) {
        if (LIVE) countAllocation(p, site, arraySize(HEADER, a.length, SHIFT), 0);
    }

    @Hidden @ForceInline
    public static void countArray(ELEMENT[] a, int site) {
        countArray(a, enter(), site);
    }

    // end
    /**
     * The method that returned {@code a} may be a compiler intrinsic: the allocation is counted as if its frame, called by
     * the frame with slot {@code p}, existed.
     */
    @Hidden @ForceInline
    public static void countCopy(Object[] a, long p, int site) {
        if (LIVE) countByClass(a, a.getClass(), sizeOf(a), p + SLOT, site, 1);
    }

    @Hidden @ForceInline
    public static void countCopy(byte[] a, long p, int site) {
        if (LIVE) countAllocation(p + SLOT, site, arraySize(header, a.length, 0), 1);
    }

    /** StringUTF16.newBytesFor, for methods whose callers count. */
    @Hidden
    public static byte[] newBytesFor(int length) {
        if (length < 0 || length >= Integer.MAX_VALUE >> 1) return StringUTF16.newBytesFor(length);
        return new byte[length << 1];
    }

    /** A multi-dimensional array: the size of all arrays together. */
    @Hidden @DontInline
    public static void countArrays(Object a, long p, int site) {
        if (LIVE) countAllocation(p, site, sizeOfAll(a), 0);
    }

    @ForceInline
    private static long arraySize(int header, int length, int shift) {
        return header + ((long) length << shift) + (OBJECT_ALIGNMENT - 1) & -OBJECT_ALIGNMENT;
    }

    static long sizeOfAll(Object a) {
        long sum = sizeOf(a);
        if (a instanceof Object[]) {
            Object[] rows = (Object[]) a;
            for (int i = 0; i < rows.length; i++) {
                if (rows[i] != null) sum += sizeOfAll(rows[i]);
            }
        }
        return sum;
    }

    /** The size of an array in bytes; 0: the object is no array. */
    @ForceInline
    static long sizeOf(Object a) {
        // each ELEMENT
        if (a instanceof ELEMENT[]) return arraySize(HEADER, ((ELEMENT[]) a).length, SHIFT);
        // end
        return 0;
    }
}
