package lucce;

/**
 * What the hooks of the tests call. Each frame gets its depth at entry and must find it again at
 * every hook: then the local variable is right and every way out of a method is covered.
 */
public final class Hooks {
    private static final ThreadLocal<State> STATES = ThreadLocal.withInitial(State::new);
    private static final java.util.concurrent.atomic.LongAdder ENTRIES = new java.util.concurrent.atomic.LongAdder();
    private static final java.util.concurrent.atomic.LongAdder EVENTS = new java.util.concurrent.atomic.LongAdder();
    private static final java.util.concurrent.atomic.LongAdder ERRORS = new java.util.concurrent.atomic.LongAdder();

    private static final class State {
        long depth;
    }

    static {
        if (Boolean.getBoolean("lucce.report")) {
            Runtime.getRuntime().addShutdownHook(new Thread(Hooks::report));
        }
    }

    private Hooks() {}

    private static void report() {
        System.err.println("hooks: entries=" + ENTRIES + " events=" + EVENTS + " errors=" + ERRORS);
    }

    public static long enter() {
        ENTRIES.increment();
        return STATES.get().depth++;
    }

    public static long enter(int method) {
        return enter();
    }

    private static State check(long p) {
        State state = STATES.get();
        // Frames that an exception ended may still be counted: constructors cannot catch it.
        if (state.depth < p + 1) {
            ERRORS.increment();
        }
        state.depth = p + 1;
        return state;
    }

    public static void exit(long p) {
        check(p).depth = p;
    }

    public static void unwind(long p) {
        STATES.get().depth = p;
    }

    public static void mark(long p, int site) {
        check(p);
    }

    public static void markTwo(long p, int site, int inner) {
        check(p);
    }

    public static void before(long p) {
        check(p);
    }

    public static void alloc(long p, int site) {
        check(p);
        EVENTS.increment();
    }

    public static void array(Object array, long p, int site) {
        check(p);
        if (array != null) {
            EVENTS.increment();
        }
    }

    public static long alloc(long p, int site, long kept) {
        alloc(p, site);
        return keep(p, kept);
    }

    public static long array(Object array, long p, int site, long kept) {
        array(array, p, site);
        return keep(p, kept);
    }

    /** A frame keeps 0, and then what a hook of its own has returned. */
    private static long keep(long p, long kept) {
        if (kept != 0 && kept != ~p) {
            ERRORS.increment();
        }
        return ~p;
    }

    public static void number(int returned, long p, int site) {
        check(p);
    }

    public static void number(long returned, long p, int site) {
        check(p);
    }

    public static void pair(int first, int second, long p, int site) {
        check(p);
    }

    /** In place of a static method {@code current()J}. */
    public static long current(long p, int site) {
        check(p);
        return site;
    }

    /** In place of {@code String.concat}. */
    public static String concat(String receiver, String argument) {
        return receiver.concat(argument);
    }
}
