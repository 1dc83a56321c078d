package java.lang;

import static java.lang.LucceRtAllocations.*;
import static java.lang.LucceRtCounting.*;
import static java.lang.LucceRtFrames.*;
import static java.lang.LucceRtLayout.*;
import static java.lang.LucceRtNatives.*;
import static java.lang.LucceRtPaths.*;
import static java.lang.LucceRtProgramEvents.*;
import static java.lang.LucceRtVariant.*;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * The hooks of objects whose class the code does not name.
 *
 * <p>Natives or intrinsics allocate them, or code that traces omit, above all hidden classes, which has no sites: a site
 * below 0. Then the innermost visible frame allocates the object, at its call site: the slot below `p` has it, as `p`
 * would be the slot of the omitted code. The class of such an object has a word in a field of its own, see
 * `counting/object_types` in the agent.
 */
public final class LucceRtObjects {
    private LucceRtObjects() {}

    @Hidden @DontInline
    public static void countObject(Object a, long p, int site) {
        if (LIVE && a != null) countByClass(a, a.getClass(), -1, p, site, 0);
    }

    /** For methods without a call before. */
    @Hidden @DontInline
    private static void countObject(Object a, int site) {
        if (LIVE && a != null) countByClass(a, a.getClass(), -1, enter(), site, 0);
    }

    /**
     * An object that the compilers make by code of their own. Inlined, and no callee gets the object: escape analysis may
     * still remove the allocation.
     */
    @Hidden @ForceInline
    public static void countCreated(Object a, long p, int site) {
        if (LIVE && a != null) countByClass(null, a.getClass(), sizeOf(a), p, site, 0);
    }

    @Hidden @ForceInline
    public static void countCreated(Object a, int site) {
        if (LIVE && a != null) countByClass(null, a.getClass(), sizeOf(a), enter(), site, 0);
    }

    /** An array with all its elements. */
    @Hidden @DontInline
    public static void countObjects(Object a, long p, int site) {
        if (LIVE && a != null) countByClass(a, a.getClass(), sizeOfAll(a), p, site, 0);
    }

    /** A String with its bytes, or an array of Strings or other objects. */
    @Hidden @DontInline
    public static void countTexts(Object a, long p, int site) {
        if (!LIVE || a == null) return;
        countObject(a, p, site);
        if (a instanceof String) {
            countObject(Memory.U.getReference(a, StringFields.BYTES), p, site);
        } else if (a instanceof Object[]) {
            Object[] all = (Object[]) a;
            for (int i = 0; i < all.length; i++) {
                countTexts(all[i], p, site);
            }
        }
    }

    /** For Array.newInstance. */
    @Hidden @DontInline
    public static void countReflected(Object a, long p, int site) {
        if (LIVE && !isForCopy(p)) countObject(a, p, site);
    }

    @Hidden @DontInline
    public static void countReflected(Object a, int site) {
        if (LIVE && !isForCopy(enter())) countObject(a, site);
    }

    /** Whether the frame with slot `p` was called by Arrays.copyOf or copyOfRange: their callers count. */
    private static boolean isForCopy(long p) {
        int caller = methodOfSite(Memory.U.getInt(p - SLOT + BASE));
        return caller != 0 && (caller == methodOfSite(COPY_OF) || caller == methodOfSite(COPY_OF_RANGE));
    }

    private static int methodOfSite(int site) {
        return Memory.U.getInt(METHODS + ((long) site << INT_BITS));
    }

    /** Before a call of `clone`, in visible code or in code that traces omit. */
    @Hidden @DontInline
    public static void beforeClone(Object a, long p, int site) {
        if (site >= 0) publishSite(p, site);
        if (!LIVE || a == null) return;
        Thread t = Thread.currentThread();
        if (!hasState(t)) return;
        Class<?> type = a.getClass();
        long word = type.$lucceType;
        if ((int) word == 0) word = resolveObjectWord(type, a);
        Memory.U.putLong(t.$lucceState + CLONING, (word & CLASS_CLONES) != 0 ? p : -1);
    }

    /**
     * After the call of `clone`: counts the object if the callee was Object.clone itself. Calls in between have used
     * slots above `p`.
     */
    @Hidden @DontInline
    public static void afterClone(Object a, long p, int site) {
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (t.$lucceState == 0 || Memory.U.getLong(t.$lucceState + CLONING) != p) return;
        Memory.U.putLong(t.$lucceState + CLONING, -1);
        countObject(a, p, site);
    }

    /** After a `new` in code that traces omit. */
    @Hidden @DontInline
    public static void countUnseenNew(Class<?> type, long p) {
        if (LIVE) countByClass(null, type, -1, p, UNSEEN, 0);
    }

    /** As counted, if code that traces omit has called. */
    @Hidden @DontInline
    public static void countUnseenCopy(Object a, long p, int site) {
        if (LIVE && a != null) countByClass(a, a.getClass(), sizeOf(a), p, site, 1);
    }

    /** {@code bytes}: of an array; 0 or less: the class's word has the size, or {@code a}. */
    @Hidden @DontInline
    static void countByClass(Object a, Class<?> type, long bytes, long p, int site, int returned) {
        if (!takesAllocations()) return;
        Thread t = Thread.currentThread();
        if (site < 0) {
            p -= SLOT;
            site = callerSite(t, p);
            if (site == 0) return;
        }
        long word = type.$lucceType;
        if ((int) word == 0) word = resolveObjectWord(type, a);
        if (bytes <= 0) bytes = (int) word < 0 ? sizeOf(a) : (int) word & -OBJECT_ALIGNMENT;
        int typed = word == 0 ? 0 : typedSite(t, site, (int) (word >>> CLASS_NUMBER_SHIFT));
        if (typed == 0) {
            dropEvents(1);
        } else {
            countAllocation(p, typed, bytes, returned);
        }
    }

    /** The site in the slot of the innermost frame that traces show; 0: there is none, or the event is dropped. */
    private static int callerSite(Thread t, long p) {
        int s = Memory.U.getInt(p + BASE);
        if (s == 0 && hasState(t) && repairSlots(t.$lucceState, p, p, 0)) s = Memory.U.getInt(p + BASE);
        if (s == VM_ENTRY && hasState(t) && locateVmEntry(t.$lucceState, p, p, 0)) s = Memory.U.getInt(p + BASE);
        if (s == ENTRY) return 0;
        if (!isCallSite(s)) {
            dropEvents(1);
            return 0;
        }
        return s;
    }

    /**
     * The site for objects of a type allocated at `site`; 0: none. The thread caches recent ones: [site << 32 | type,
     * typed site].
     */
    private static int typedSite(Thread t, int site, int type) {
        Unsafe u = Memory.U;
        long key = (long) site << 32 | type;
        long index = t.$lucceCounters;
        long copies = index == 0 ? 0 : u.getLong(index + INDEX_TYPED);
        if (copies == 0) return (int) resolveTypedSite(site, type);
        long e = typedSiteLine(copies, key);
        if (u.getLong(e) == key) return (int) u.getLong(e + COPY_VALUE);
        long typed = resolveTypedSite(site, type);
        u.putLong(e, 0);
        u.putLong(e + COPY_VALUE, typed);
        if (typed != 0) u.putLong(e, key);
        return (int) typed;
    }

    /** The address of the cache entry for this key; low bits of {@code copies} have the cache's size. */
    @ForceInline
    static long typedSiteLine(long copies, long key) {
        long low = (1 << COPY_BITS) - 1;
        return (copies & ~low) + (key * MULTIPLIER >>> -(copies & low) << COPY_BITS);
    }
}
