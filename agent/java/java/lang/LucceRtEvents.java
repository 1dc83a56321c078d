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
 * The hooks of counted events: allocations, waits, I/O. LucceRt.cell looks up an event's counter. For helper variants see
 * LucceRt.
 *
 * <p>The build repeats the text between `each ELEMENT` and `end` for each array type: HEADER is the number of bytes before
 * the elements, SHIFT the power of two of an element's bytes.
 */
public final class LucceRtEvents {
    /** Texts of the program's kinds of events, and the address of their types: see `counting/program_kinds` in the agent. */
    static String[] kinds;
    static long kindTypes;
    /** Bytes of an array's header; {@code referenceShift}: the power of two of a reference's bytes. */
    static int header, headerOfLongs, referenceShift;

    private LucceRtEvents() {}

    // ---- counted kinds: see `memory/event_mask` in the agent ------------------------------------------

    /** Opaque: a loop that counts nothing must read it again. No other read depends on it, so it needs no order. */
    @ForceInline
    static boolean isOpen(int kind) {
        return (Memory.U.getIntOpaque(null, gate() + BASE) & kind) != 0;
    }

    /** Not a constant for the Java compiler, which would add it to BASE. */
    @ForceInline
    private static long gate() {
        return -GATE;
    }

    // ---- objects and arrays ---------------------------------------------------------------------------

    @Hidden @ForceInline
    public static void alloc(long p, int site) {
        if (LIVE) count(p, site, 0);
    }

    /** For methods without a call before: they do not keep their slot. */
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
     * The method that returned {@code a} may be a compiler intrinsic: the allocation is counted as if its frame, called by
     * the frame with slot {@code p}, existed.
     */
    @Hidden @ForceInline
    public static void counted(Object[] a, long p, int site) {
        if (LIVE) count(a, a.getClass(), sizeOf(a), p + SLOT, site, 1);
    }

    @Hidden @ForceInline
    public static void counted(byte[] a, long p, int site) {
        if (LIVE) count(p + SLOT, site, size(header, a.length, 0), 1);
    }

    /** StringUTF16.newBytesFor, for methods whose callers count. */
    @Hidden
    public static byte[] newBytesFor(int length) {
        if (length < 0 || length >= Integer.MAX_VALUE >> 1) return StringUTF16.newBytesFor(length);
        return new byte[length << 1];
    }

    /** A multi-dimensional array: the size of all arrays together. */
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

    /** The size of an array in bytes. */
    private static long sizeOf(Object a) {
        // each ELEMENT
        if (a instanceof ELEMENT[]) return size(HEADER, ((ELEMENT[]) a).length, SHIFT);
        // end
        return 0;
    }

    /** {@code bytes}: below 0, the class's word has the size. */
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

    /** The site in the slot of the innermost frame that traces show; 0: there is none, or the event is dropped. */
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
     * The site for objects of a type allocated at `site`; 0: none. The thread caches recent ones: [site << 32 | type,
     * typed site].
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

    /** The address of the cache entry for this key; low bits of {@code copies} have the cache's size. */
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
     * {@code returned}: number of frames that have returned, on whose behalf the event is counted.
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

    // ---- objects whose class the code does not name ---------------------------------------------------
    //
    // Natives or intrinsics allocate them, or code that traces omit, above all hidden classes, which has no sites: a site
    // below 0. Then the innermost visible frame allocates the object, at its call site: the slot below `p` has it, as `p`
    // would be the slot of the omitted code. The class of such an object has a word in a field of its own, see
    // `counting/object_types` in the agent.

    @Hidden @DontInline
    public static void made(Object a, long p, int site) {
        if (LIVE && a != null) count(a, a.getClass(), -1, p, site, 0);
    }

    /** For methods without a call before. */
    @Hidden @DontInline
    public static void made(Object a, int site) {
        if (LIVE && a != null) count(a, a.getClass(), -1, enter(), site, 0);
    }

    /** An array with all its elements. */
    @Hidden @DontInline
    public static void madeAll(Object a, long p, int site) {
        if (LIVE && a != null) count(a, a.getClass(), sizeOfAll(a), p, site, 0);
    }

    /** A String with its bytes, or an array of Strings or other objects. */
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

    /** For Array.newInstance. */
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

    /** Before a call of `clone`, in visible code or in code that traces omit. */
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

    /**
     * After the call of `clone`: counts the object if the callee was Object.clone itself. Calls in between have used
     * slots above `p`.
     */
    @Hidden @DontInline
    public static void cloned(Object a, long p, int site) {
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (t.$ts == 0 || Memory.U.getLong(t.$ts + CLONING) != p) return;
        Memory.U.putLong(t.$ts + CLONING, -1);
        made(a, p, site);
    }

    /** After a `new` in code that traces omit. */
    @Hidden @DontInline
    public static void unseenNew(Class<?> type, long p) {
        if (LIVE) count(null, type, -1, p, UNSEEN, 0);
    }

    /** As counted, if code that traces omit has called. */
    @Hidden @DontInline
    public static void unseenCopy(Object a, long p, int site) {
        if (LIVE && a != null) count(a, a.getClass(), sizeOf(a), p, site, 1);
    }

    // ---- traces of exceptions ------------------------------------------------------------------------------

    /**
     * After Throwable.fillInStackTrace: counts the trace's arrays. The slots are right if an instruction created the
     * exception by calling a constructor; the agent asks the VM once for each such instruction. Recordings of calls have
     * no entries for exceptions of the VM, so they omit traces.
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
     * The entry in which this thread keeps whether the innermost instruction of `trace` creates exceptions; in the cache of
     * typed sites, see `typed`: [class's number << 32 | MAKER | version and bci, method's number + 1]. 0: none. Errors that
     * the VM itself may throw at a constructor call have none.
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

    /** Whether methods, bcis and classes have the layout of known VMs. */
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

    /** As pub, in a constructor of Throwable before its trace is recorded: {@code text} is its message, if it is a String. */
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

    /** Initialized when the first trace is counted. */
    private static final class Traces {
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

    // ---- entries of methods, if counted or recorded; `site` stands for the entry ------------------------

    @Hidden @ForceInline
    public static long called(int site) {
        return entered(enter(), site);
    }

    @Hidden @ForceInline
    public static long calledFirst(int site) {
        long p = enterFirst();
        if (RECORD) tell(TOLD_ENTERED, p, site);
        // Not compared with the VM's trace: while the thread is being mounted, such a request would wait forever.
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

    /** Counts an event of the program. */
    @Hidden @DontInline
    public static void event(String kind, long value, long p, int site) {
        if (!LIVE || kind == null || !isOpen(OWN)) return;
        Thread t = Thread.currentThread();
        long number = current(t, p, site);
        if (number == 0) return;
        String[] known = kinds;
        int place = known == null ? -1 : placeOf(kind, known);
        Unsafe u = Memory.U;
        // Plain: see LucceRt. Another thread may be storing the type of a text in a place that has no text yet.
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

    /** Flag of a place without a text. */
    private static final int EMPTY = 1 << 30;

    /**
     * The place of a text in the array, or a free place with EMPTY; below 0: the text is too long. No two places have the
     * same text. String's methods are not used, since they may have hooks.
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

    /** Offsets of a String's fields. Initialized when a kind of events is looked up. */
    private static final class Texts {
        static final long BYTES = Memory.U.objectFieldOffset(String.class, "value");
        static final long CODER = Memory.U.objectFieldOffset(String.class, "coder");
    }

    // ---- waiting: replaces the calls that park a thread, if they are events -------------------------------
    //
    // A site below 0: the class is out of scope.

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

    // For LucceRtWas, which all helper variants share.

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

    // ---- durations: from a hook before a call to a hook after it --------------------------------------------
    //
    // A site below 0 stands for the operation, in a class out of scope.

    /** Begins an event: keeps the time and an amount in the thread's state. Callees begin no event of this kind meanwhile. */
    @Hidden
    static void begins(int kind, long amount, long p, int site) {
        calls(p, site);
        if (!LIVE) return;
        Thread t = Thread.currentThread();
        if (!known(t)) return;
        Memory.U.putLong(t.$ts + SINCE, isOpen(kind) ? System.nanoTime() : 0);
        Memory.U.putLong(t.$ts + AMOUNT, amount);
    }

    /** Ends the event. If the call throws, this is not reached, and the event is not counted. */
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

    /** The amount that was passed when the event began. */
    @Hidden
    static long given() {
        Thread t = Thread.currentThread();
        return t.$ts == 0 ? 0 : Memory.U.getLong(t.$ts + AMOUNT);
    }

    // ---- counting -----------------------------------------------------------------------------------------

    /** Counts an event of a kind with one type per site. Returns the context id, 0: unknown. */
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
     * Writes a counted event to the stream; see module `layout` of the crate `lucce-stream`. Dropped events have no
     * context id.
     */
    @Hidden
    private static void stream(Thread t, int type, long number, long value) {
        if (number == 0) return;
        Unsafe u = Memory.U;
        long place = t.$ts + PLACE;
        // The stream is full; the clock is not read.
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

    /** Compares the context id of every N-th event with the VM's own stack trace. */
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

    /** Reports an event of a kind of the event mask: see `HookEvent` in the agent. */
    static native void happened0(
            long ts, int kind, long number, int site, Object object, long amount, long passed);

    private static native int traced0(long ts, Object thrown, Object trace, long bytes, long text);

    private static native long learn0(Class<?> type, Object made);

    private static native long named0(Class<?> type);

    private static native long typed0(int site, int type);
}
