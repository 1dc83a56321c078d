package java.lang;

import static java.lang.LucceRt.*;
import static java.lang.LucceRtEdition.*;
import static java.lang.LucceRtLayout.*;

import jdk.internal.access.JavaLangAccess;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.Hidden;

/**
 * What hooks call where something happens that is counted: objects are made, threads wait, files are read. An event's counter
 * is looked up by LucceRt.cell. What is said there of editions holds here, too.
 *
 * <p>The build repeats what stands between `each ELEMENT` and `end` for each type of array: HEADER are the bytes before its
 * elements, SHIFT is the power of two of an element's bytes.
 */
public final class LucceRtEvents {
    /** Texts of the program's kinds of events, and where their types are: see `own_kinds` in the agent. */
    static String[] kinds;
    static long kindTypes;
    /** Bytes of an array's header, of a reference. */
    static int header, headerOfLongs, referenceShift;

    private LucceRtEvents() {}

    // ---- which events are counted: see `gate` in the agent ------------------------------------------

    /** Opaque: a loop that counts nothing looks again, too. Nothing else is read because of it, so no order is asked for. */
    @ForceInline
    static boolean isOpen(int kind) {
        return (Memory.U.getIntOpaque(null, gate() + BASE) & kind) != 0;
    }

    /** No constant for the compiler of this text, which would add it to BASE. */
    @ForceInline
    private static long gate() {
        return -GATE;
    }

    // ---- objects and arrays ---------------------------------------------------------------------------

    @Hidden @ForceInline
    public static void alloc(long p, int site) {
        if (LIVE) count(p, site, 0);
    }

    /** In methods that have not called yet: all that are not told where their slot is. */
    @Hidden @ForceInline
    public static void alloc(int site) {
        if (LIVE) count(enter(), site, 0);
    }

    // each ELEMENT
    @Hidden @ForceInline
    public static void array(ELEMENT[] a, long p, int site) {
        if (LIVE) count(p, site, size(HEADER, a.length, SHIFT));
    }

    @Hidden @ForceInline
    public static void array(ELEMENT[] a, int site) {
        array(a, enter(), site);
    }

    // end
    /**
     * A method that the compiler may have replaced by code of its own has returned {@code a}: its
     * allocation is counted as if its frame, called by the one with slot {@code p}, were there.
     */
    @Hidden @ForceInline
    public static void counted(Object[] a, long p, int site) {
        if (LIVE) count(a, a.getClass(), sizeOf(a), p + SLOT, site, 1);
    }

    @Hidden @ForceInline
    public static void counted(byte[] a, long p, int site) {
        if (LIVE) count(p + SLOT, site, size(header, a.length, 0), 1);
    }

    /** StringUTF16.newBytesFor, for a method whose callers count. */
    @Hidden
    public static byte[] newBytesFor(int length) {
        if (length < 0 || length >= Integer.MAX_VALUE >> 1) return StringUTF16.newBytesFor(length);
        return new byte[length << 1];
    }

    /** Several dimensions at once: the size is that of all arrays made. */
    @Hidden @DontInline
    public static void arrays(Object a, long p, int site) {
        if (LIVE) count(p, site, sizeOfAll(a));
    }

    @ForceInline
    private static long size(int header, int length, int shift) {
        return header + ((long) length << shift) + (OBJECT_ALIGNMENT - 1) & -OBJECT_ALIGNMENT;
    }

    private static long sizeOfAll(Object a) {
        long sum = sizeOf(a);
        if (a instanceof Object[]) {
            Object[] rows = (Object[]) a;
            for (int i = 0; i < rows.length; i++) {
                if (rows[i] != null) sum += sizeOfAll(rows[i]);
            }
        }
        return sum;
    }

    /** Of an array. */
    private static long sizeOf(Object a) {
        // each ELEMENT
        if (a instanceof ELEMENT[]) return size(HEADER, ((ELEMENT[]) a).length, SHIFT);
        // end
        return 0;
    }

    /** {@code bytes}: below 0, the word of the class says it. */
    @Hidden @DontInline
    private static void count(Object a, Class<?> type, long bytes, long p, int site, int returned) {
        if (!RECORD && !isOpen(ALLOC)) return;
        Thread t = Thread.currentThread();
        if (site < 0) {
            p -= SLOT;
            site = caller(t, p);
            if (site == 0) return;
        }
        long word = type.$lc;
        if ((int) word == 0) word = learn0(type, a);
        if (bytes < 0) bytes = (int) word < 0 ? sizeOf(a) : (int) word & -OBJECT_ALIGNMENT;
        int typed = word == 0 ? 0 : typed(t, site, (int) (word >>> CLASS_NUMBER_SHIFT));
        if (typed == 0) {
            lost(1);
        } else {
            count(p, typed, bytes, returned);
        }
    }

    /** The site in the slot of the innermost frame that traces show; 0: there is none, or what happens is lost. */
    private static int caller(Thread t, long p) {
        int s = Memory.U.getInt(p + BASE);
        if (s == 0 && known(t) && repair(t.$ts, p, p)) s = Memory.U.getInt(p + BASE);
        if (s == ENTRY) return 0;
        if (!isCall(s)) {
            lost(1);
            return 0;
        }
        return s;
    }

    /**
     * The site for objects of a type that are made at `site`; 0: there is none. The thread has a copy of
     * those that it asked for lately: [site << 32 | type, typed site].
     */
    private static int typed(Thread t, int site, int type) {
        Unsafe u = Memory.U;
        long key = (long) site << 32 | type;
        long index = t.$ev;
        long copies = index == 0 ? 0 : u.getLong(index + INDEX_TYPED);
        if (copies == 0) return (int) typed0(site, type);
        long e = typedLine(copies, key);
        if (u.getLong(e) == key) return (int) u.getLong(e + COPY_VALUE);
        long typed = typed0(site, type);
        u.putLong(e, 0);
        u.putLong(e + COPY_VALUE, typed);
        if (typed != 0) u.putLong(e, key);
        return (int) typed;
    }

    /** Where a copy for this key lies; low bits of {@code copies} say how many there are. */
    @ForceInline
    private static long typedLine(long copies, long key) {
        long low = (1 << COPY_BITS) - 1;
        return (copies & ~low) + (key * MULTIPLIER >>> -(copies & low) << COPY_BITS);
    }

    @ForceInline
    private static void count(long p, int site, long bytes) {
        count(p, site, bytes, 0);
    }

    /**
     * {@code returned}: frames that are not there any more, counted on whose behalf.
     *
     * <p>Not inlined: it would be most of the code of methods that allocate.
     */
    @Hidden @DontInline
    private static void count(long p, int site, long bytes, int returned) {
        if (RECORD) tell(TOLD_EVENT, p, site);
        if (RECORD && returned > 0) tell(TOLD_RETURNED, p, 0);
        if (!isOpen(ALLOC)) return;
        Thread t = Thread.currentThread();
        long cell = cell(t, p, site);
        if (cell == 0) return;
        Unsafe u = Memory.U;
        u.putLong(cell + CELL_COUNT, u.getLong(cell + CELL_COUNT) + 1);
        if (bytes != 0) u.putLong(cell + CELL_BYTES, u.getLong(cell + CELL_BYTES) + bytes);
        if (STREAM) stream(t, 0, u.getLong(cell + CELL_NUMBER), bytes);
        if (VERIFY) compare(t, u.getLong(cell + CELL_NUMBER), returned);
    }

    // ---- objects of which the code does not say the class ---------------------------------------------
    //
    // Natives make them, or compiled code in their place; or code that traces do not show, hidden classes
    // above all, which has no sites: a site below 0. Then the innermost frame that they show makes the
    // object, at the site that it calls from: the slot below `p` has it, as `p` is the one that the code
    // would have itself. Such a class has a word in a field of its own, see `types` in the agent.

    @Hidden @DontInline
    public static void made(Object a, long p, int site) {
        if (LIVE && a != null) count(a, a.getClass(), -1, p, site, 0);
    }

    /** In methods that have not called yet. */
    @Hidden @DontInline
    public static void made(Object a, int site) {
        if (LIVE && a != null) count(a, a.getClass(), -1, enter(), site, 0);
    }

    /** An array with all that it holds. */
    @Hidden @DontInline
    public static void madeAll(Object a, long p, int site) {
        if (LIVE && a != null) count(a, a.getClass(), sizeOfAll(a), p, site, 0);
    }

    /** A text with its bytes, or an array of such texts, or of other objects. */
    @Hidden @DontInline
    public static void madeTexts(Object a, long p, int site) {
        if (!LIVE || a == null) return;
        made(a, p, site);
        if (a instanceof String) {
            made(Memory.U.getReference(a, Texts.BYTES), p, site);
        } else if (a instanceof Object[]) {
            Object[] all = (Object[]) a;
            for (int i = 0; i < all.length; i++) {
                madeTexts(all[i], p, site);
            }
        }
    }

    /** By Array.newInstance. */
    @Hidden @DontInline
    public static void reflected(Object a, long p, int site) {
        if (LIVE && !isForCopy(p)) made(a, p, site);
    }

    @Hidden @DontInline
    public static void reflected(Object a, int site) {
        if (LIVE && !isForCopy(enter())) made(a, site);
    }

    /** Whether the frame with slot `p` was called by Arrays.copyOf or copyOfRange: their callers count. */
    private static boolean isForCopy(long p) {
        int caller = methodOf(Memory.U.getInt(p - SLOT + BASE));
        return caller != 0 && (caller == methodOf(COPY_OF) || caller == methodOf(COPY_OF_RANGE));
    }

    private static int methodOf(int site) {
        return Memory.U.getInt(METHODS + ((long) site << INT_BITS));
    }

    /** Before a call of `clone` of some class, in code that traces show or not. */
    @Hidden @DontInline
    public static void clones(Object a, long p, int site) {
        if (site >= 0) pub(p, site);
        if (!LIVE || a == null) return;
        Thread t = Thread.currentThread();
        if (!known(t)) return;
        Class<?> type = a.getClass();
        long word = type.$lc;
        if ((int) word == 0) word = learn0(type, a);
        Memory.U.putLong(t.$ts + CLONING, (word & CLASS_CLONES) != 0 ? p : -1);
    }

    /** Behind it: whether that was Object.clone itself. Calls in between have noted slots above `p`. */
    @Hidden @DontInline
    public static void cloned(Object a, long p, int site) {
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (t.$ts == 0 || Memory.U.getLong(t.$ts + CLONING) != p) return;
        Memory.U.putLong(t.$ts + CLONING, -1);
        made(a, p, site);
    }

    /** Behind a `new` in code that traces do not show. */
    @Hidden @DontInline
    public static void unseenNew(Class<?> type, long p) {
        if (LIVE) count(null, type, -1, p, UNSEEN, 0);
    }

    /** As counted: code that traces do not show has called. */
    @Hidden @DontInline
    public static void unseenCopy(Object a, long p, int site) {
        if (LIVE && a != null) count(a, a.getClass(), sizeOf(a), p, site, 1);
    }

    // ---- traces of exceptions ------------------------------------------------------------------------------

    /**
     * Behind Throwable.fillInStackTrace: what the VM has noted there. The slots are right if an instruction
     * made the exception by calling a constructor: the agent asks the VM, once for each such instruction. A recording
     * of calls has no entry for what the VM throws, so it has none for traces.
     */
    @Hidden @DontInline
    public static void traced(Object thrown, long p, int site) {
        if (!LIVE || RECORD || !isOpen(ALLOC)) return;
        Thread t = Thread.currentThread();
        if (!known(t)) return;
        long text = Memory.U.getLong(t.$ts + TEXT);
        Memory.U.putLong(t.$ts + TEXT, 0);
        Object[] trace = (Object[]) Memory.U.getReference(thrown, Traces.BACKTRACE);
        if (trace == null) return;
        long bytes = sizeOfTrace(trace);
        long e = maker(t, thrown, trace);
        if (e == 0 || !makes(e, trace)) {
            int answer = traced0(t.$ts, thrown, trace, bytes, text);
            if (answer == TRACE_COUNTED) return;
            if (answer == TRACE_REMEMBER) remember(e, trace);
        }
        count(trace, Object[].class, bytes, p, site, 0);
    }

    /**
     * Where this thread keeps that the innermost instruction of `trace` makes exceptions, or may; among the sites of types,
     * see `typed`: [class's number << 32 | MAKER | version and bci, method's number + 1]. 0: nowhere. The VM itself may throw
     * what is left out at an instruction that calls a constructor.
     */
    private static long maker(Thread t, Object thrown, Object[] trace) {
        long copies = t.$ev == 0 ? 0 : Memory.U.getLong(t.$ev + INDEX_TYPED);
        if (copies == 0 || thrown instanceof LinkageError || thrown instanceof VirtualMachineError
                || thrown instanceof NullPointerException || !isKnown(trace)) {
            return 0;
        }
        long key = key(trace);
        return key == 0 ? 0 : typedLine(copies, key);
    }

    /** Methods, bcis and classes: as the VMs have it that are known. */
    private static boolean isKnown(Object[] trace) {
        return trace.length > 3 && trace[0] instanceof short[] && trace[1] instanceof int[]
                && trace[2] instanceof Object[] && ((Object[]) trace[2])[0] instanceof Class<?>;
    }

    private static long key(Object[] trace) {
        Class<?> type = (Class<?>) ((Object[]) trace[2])[0];
        int at = ((int[]) trace[1])[0];
        if (at < 0) return 0;
        long word = type.$lc;
        if (word == 0) word = named0(type);
        return word == 0 ? 0 : word & -1L << CLASS_NUMBER_SHIFT | (MAKER | at) & 0xffffffffL;
    }

    private static boolean makes(long e, Object[] trace) {
        return Memory.U.getLong(e) == key(trace) && Memory.U.getLong(e + COPY_VALUE) == method(trace);
    }

    private static long method(Object[] trace) {
        return (((short[]) trace[0])[0] & 0xffff) + 1;
    }

    private static void remember(long e, Object[] trace) {
        if (e == 0) return;
        Memory.U.putLong(e, 0);
        Memory.U.putLong(e + COPY_VALUE, method(trace));
        Memory.U.putLong(e, key(trace));
    }

    /** As pub, in a constructor of Throwable, before its trace is noted: {@code text} is its message, if it is a text. */
    @Hidden @DontInline
    public static void describes(Object text, long p, int site) {
        pub(p, site);
        if (!LIVE || !isOpen(ALLOC)) return;
        Thread t = Thread.currentThread();
        if (known(t)) Memory.U.putLong(t.$ts + TEXT, sizeOfText(text));
    }

    private static long sizeOfText(Object text) {
        if (!(text instanceof String)) return 0;
        long word = String.class.$lc;
        if ((int) word == 0) word = learn0(String.class, text);
        return ((int) word & -OBJECT_ALIGNMENT) + sizeOf(Memory.U.getReference(text, Texts.BYTES));
    }

    /** Initialised when the first trace is made. */
    private static final class Traces {
        static final long BACKTRACE = Memory.U.objectFieldOffset(Throwable.class, "backtrace");
    }

    /** A trace has arrays about some frames, and another such trace about the frames below. */
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

    // ---- entries of methods, where they are counted or recorded; `site` stands for the entry ------------

    @Hidden @ForceInline
    public static long called(int site) {
        return entered(enter(), site);
    }

    @Hidden @ForceInline
    public static long calledFirst(int site) {
        long p = enterFirst();
        if (RECORD) tell(TOLD_ENTERED, p, site);
        // Not compared: a VM to which the thread is still being mounted waits for ever if it is asked.
        if (LIVE) countByType(Thread.currentThread(), p, site, CALL);
        return p;
    }

    @Hidden @ForceInline
    public static long calledThread(int site) {
        return entered(threadSlot(), site);
    }

    @Hidden @ForceInline
    public static long calledPremain(int site) {
        return entered(enterPremain(), site);
    }

    @Hidden @ForceInline
    public static long calledVm(int site) {
        return entered(enterVm(0), site);
    }

    @Hidden @ForceInline
    private static long entered(long p, int site) {
        if (RECORD) tell(TOLD_ENTERED, p, site);
        if (LIVE) countByType(p, site, CALL);
        return p;
    }

    // ---- the program's own events -----------------------------------------------------------------------

    /** An event of the program's own. */
    @Hidden @DontInline
    public static void event(String kind, long value, long p, int site) {
        if (!LIVE || kind == null || !isOpen(OWN)) return;
        Thread t = Thread.currentThread();
        long number = current(t, p, site);
        if (number == 0) return;
        String[] known = kinds;
        int place = known == null ? -1 : placeOf(kind, known);
        Unsafe u = Memory.U;
        // Plain: see LucceRt. In a place without a text another thread may just be storing the type of another text.
        int type = place < 0 || place >= EMPTY ? 0 : u.getInt(kindTypes + ((long) place << INT_BITS));
        long index = t.$ev;
        long byType = type == 0 || index == 0 ? 0 : u.getLong(index + INDEX_BY_TYPE);
        long cell = byType == 0 ? 0 : find(u, byType, number, type);
        if (cell == 0) {
            event0(t.$ts, number, kind, value, known, place < 0 ? place : place & EMPTY - 1);
        } else {
            u.putLong(cell + EVENT_CELL_COUNT, u.getLong(cell + EVENT_CELL_COUNT) + 1);
            if (value > 0) u.putLong(cell + EVENT_CELL_VALUE, u.getLong(cell + EVENT_CELL_VALUE) + value);
            if (STREAM) stream(t, type, number, value);
        }
        if (VERIFY) compare(t, number, 0);
    }

    /** Says of a place that it has no text yet. */
    private static final int EMPTY = 1 << 30;

    /**
     * Where the array has a text, or room for it, with EMPTY; below 0: it is too long. No two places have the same text. Not by
     * methods of String, which may have hooks.
     */
    private static int placeOf(String text, String[] known) {
        Unsafe u = Memory.U;
        byte[] bytes = (byte[]) u.getReference(text, Texts.BYTES);
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
        byte[] others = (byte[]) u.getReference(at, Texts.BYTES);
        if (others.length != bytes.length) return false;
        for (int i = 0; i < bytes.length; i++) {
            if (others[i] != bytes[i]) return false;
        }
        return u.getByte(at, Texts.CODER) == u.getByte(text, Texts.CODER);
    }

    /** Initialised when a kind of events is looked for: where the parts of a String are. */
    private static final class Texts {
        static final long BYTES = Memory.U.objectFieldOffset(String.class, "value");
        static final long CODER = Memory.U.objectFieldOffset(String.class, "coder");
    }

    // ---- waiting: in place of what parks a thread, where that is an event ---------------------------------
    //
    // A site below 0: in a class out of scope.

    @Hidden @DontInline
    public static void park(Unsafe u, boolean absolute, long time, long p, int site) {
        long since = parks(p, site);
        u.park(absolute, time);
        parked(p, site, since);
    }

    @Hidden @DontInline
    public static void park(JavaLangAccess threads, long p, int site) {
        long since = parks(p, site);
        threads.parkVirtualThread();
        parked(p, site, since);
    }

    @Hidden @DontInline
    public static void park(JavaLangAccess threads, long time, long p, int site) {
        long since = parks(p, site);
        threads.parkVirtualThread(time);
        parked(p, site, since);
    }

    @Hidden
    private static long parks(long p, int site) {
        calls(p, site);
        return System.nanoTime();
    }

    /** Before a call, in scope or not. */
    @ForceInline
    private static void calls(long p, int site) {
        if (site < 0) {
            restore(p);
        } else {
            pub(p, site);
        }
    }

    // For LucceRtWas, which there is one of for all editions.

    @Hidden
    static long asked() {
        return LIVE ? asked0() : 0;
    }

    @Hidden
    static void told(String kind, long value) {
        if (!LIVE || kind == null || !isOpen(OWN)) return;
        long number = told0(kind, value);
        if (VERIFY && number != 0) compare(Thread.currentThread(), number, 0);
    }

    @Hidden
    static void parked(long since) {
        parked(0, -1, since);
    }

    @Hidden
    private static void parked(long p, int site, long since) {
        if (!LIVE || !isOpen(LOCK)) return;
        long passed = System.nanoTime() - since;
        Thread t = Thread.currentThread();
        if (!known(t)) return;
        long number = site < 0 ? 0 : current(t, p, site);
        if (number == 0 && site >= 0) return;
        happened0(t.$ts, LOCK, number, 0, t, 0, passed);
        if (VERIFY && site >= 0) compare(t, number, 0);
    }

    // ---- what takes time: from a hook before a call to one behind it ------------------------------------
    //
    // A site below 0 says what it is, in a class out of scope.

    /** The time and an amount are kept in the thread's state: what is called in between begins nothing of this kind. */
    @Hidden
    static void begins(int kind, long amount, long p, int site) {
        calls(p, site);
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (!known(t)) return;
        Memory.U.putLong(t.$ts + SINCE, isOpen(kind) ? System.nanoTime() : 0);
        Memory.U.putLong(t.$ts + AMOUNT, amount);
    }

    /** What has begun is over. What the call throws does not come here, and is not counted. */
    @Hidden
    static void ends(int kind, long amount, long p, int site) {
        if (!LIVE || !isOpen(kind)) return;
        Thread t = Thread.currentThread();
        if (t.$ts == 0) return;
        long since = Memory.U.getLong(t.$ts + SINCE);
        if (since == 0) return;
        long passed = System.nanoTime() - since;
        Memory.U.putLong(t.$ts + SINCE, 0);
        long number = site < 0 ? 0 : current(t, p, site);
        if (number == 0 && site >= 0) return;
        happened0(t.$ts, kind, number, site, null, amount, passed);
        if (VERIFY && site >= 0) compare(t, number, 0);
    }

    /** The amount that was given when it began. */
    @Hidden
    static long given() {
        Thread t = Thread.currentThread();
        return t.$ts == 0 ? 0 : Memory.U.getLong(t.$ts + AMOUNT);
    }

    // ---- counting -----------------------------------------------------------------------------------------

    /** Counts an event of a kind that a site has but one of; its number, 0: not known. */
    @Hidden
    static long countByType(long p, int site, int kind) {
        Thread t = Thread.currentThread();
        long number = countByType(t, p, site, kind);
        if (VERIFY && number != 0) compare(t, number, 0);
        return number;
    }

    @Hidden
    private static long countByType(Thread t, long p, int site, int kind) {
        if (!isOpen(kind)) return 0;
        long cell = cell(t, p, site);
        if (cell == 0) return 0;
        Unsafe u = Memory.U;
        u.putLong(cell + EVENT_CELL_COUNT, u.getLong(cell + EVENT_CELL_COUNT) + 1);
        long number = u.getLong(cell + CELL_NUMBER);
        if (STREAM) stream(t, u.getInt(cell + EVENT_CELL_TYPE), number, 0);
        return number;
    }

    /**
     * An event that was counted: `Entry` and `Place` in the agent's crate `stream` say what is written,
     * and where. What was lost has no number.
     */
    @Hidden
    private static void stream(Thread t, int type, long number, long value) {
        if (number == 0) return;
        Unsafe u = Memory.U;
        long place = t.$ts + PLACE;
        // Full: not even the clock is read.
        if (u.getLong(place + PLACE_END) < 0) return;
        long now = System.nanoTime();
        long passed = now - u.getLong(place + PLACE_CLOCK);
        if (isFull(place) || passed >>> TIME_BITS != 0) {
            room0(t.$ts, now);
            if (isFull(place)) return;
            passed = now - u.getLong(place + PLACE_CLOCK);
        }
        long at = u.getLong(place + PLACE_NEXT);
        long head = (long) type << TIME_BITS | passed;
        int length = 2 * WORD;
        u.putLong(at + WORD, number);
        if (value != 0) {
            u.putLong(at + 2 * WORD, value);
            head |= HAS_VALUE;
            length = 3 * WORD;
        }
        u.putLongRelease(null, at, head);
        u.putLong(place + PLACE_NEXT, at + length);
    }

    @Hidden @ForceInline
    private static boolean isFull(long place) {
        Unsafe u = Memory.U;
        return u.getLong(place + PLACE_NEXT) + LONGEST > u.getLong(place + PLACE_END);
    }

    /** Every so many events the number is compared with the VM's own stack trace. */
    private static void compare(Thread t, long number, int returned) {
        long left = t.$ts + STATE_LEFT;
        int n = Memory.U.getInt(left) - 1;
        Memory.U.putInt(left, n);
        if (n <= 0) verify(t.$ts, number, returned);
    }

    // ---- slow paths, in the agent ---------------------------------------------------------------

    private static native void verify(long ts, long number, int returned);

    private static native void room0(long ts, long now);

    private static native void event0(
            long ts, long number, String kind, long value, String[] known, int place);

    private static native long told0(String kind, long value);

    private static native long asked0();

    /** An event of a kind of the gate: see `Told` in the agent. */
    static native void happened0(
            long ts, int kind, long number, int site, Object object, long amount, long passed);

    private static native int traced0(long ts, Object thrown, Object trace, long bytes, long text);

    private static native long learn0(Class<?> type, Object made);

    private static native long named0(Class<?> type);

    private static native long typed0(int site, int type);
}
