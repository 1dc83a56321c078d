package io.lucce;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * What a piece of code allocates: every object, and the stack trace of each place that makes some.
 *
 * <pre>{@code
 * Allocations found = Allocations.of(() -> index.find("word"));
 * assertTrue(found.bytes() <= 1000, found::toString);
 * }</pre>
 *
 * <p>The counts are exact, whatever the compiler does: an object counts where the bytecode makes it. They are those of the
 * thread that calls {@link #of of}; what others do meanwhile is not in them. Code that runs for the first time also loads classes
 * and links lambdas, which allocates: run it once before if that is not what you want to know.
 *
 * <p>Without the agent there are no counts: {@link #unavailable()} says why.
 */
public final class Allocations {
    /** The agent sets this property before it lets the program begin. */
    private static final boolean ACTIVE = System.getProperty("lucce.version") != null;

    /** Places that {@link #toString()} shows. */
    private static final int SHOWN = 10;

    private final List<Place> places;

    private Allocations(List<Place> places) {
        this.places = places;
    }

    /**
     * Code that may throw.
     *
     * @param <X> what it throws
     */
    @FunctionalInterface
    public interface Body<X extends Throwable> {
        /**
         * Runs the code.
         *
         * @throws X whatever it throws
         */
        void run() throws X;
    }

    /** Objects of one type that were made in one calling context. */
    public static final class Place {
        private final long number;
        private final String type;
        private final long objects;
        private final long bytes;
        /** Where traces end, frames of {@link Allocations} aside: a class and a method of it, or null. */
        private final String[] outermost;

        private Place(long number, String type, long objects, long bytes, String[] outermost) {
            this.number = number;
            this.type = type;
            this.objects = objects;
            this.bytes = bytes;
            this.outermost = outermost;
        }

        /**
         * Returns the number of the calling context.
         *
         * @return the number, as {@link CallContext#current()} would return it
         */
        public long number() {
            return number;
        }

        /**
         * Returns what was made.
         *
         * @return the type as Java writes it
         */
        public String type() {
            return type;
        }

        /**
         * Returns how many objects were made.
         *
         * @return the count
         */
        public long objects() {
            return objects;
        }

        /**
         * Returns what the objects take in the heap.
         *
         * @return the sum in bytes
         */
        public long bytes() {
            return bytes;
        }

        /**
         * Returns the calls that lead to the place.
         *
         * @return the frames, innermost first, as far as the code that was counted
         */
        public List<StackTraceElement> trace() {
            List<StackTraceElement> frames = new ArrayList<>();
            int end = 0;
            for (StackTraceElement frame : CallContext.decode(number)) {
                if (frame.getClassName().equals(Allocations.class.getName())) {
                    break;
                }
                frames.add(frame);
                if (outermost != null && is(frame, outermost)) {
                    end = frames.size();
                }
            }
            return end > 0 ? frames.subList(0, end) : frames;
        }

        private boolean comesThrough(String[] method) {
            return trace().stream().anyMatch(frame -> is(frame, method));
        }

        private static boolean is(StackTraceElement frame, String[] method) {
            return frame.getClassName().equals(method[0]) && frame.getMethodName().equals(method[1]);
        }

        /** Returns numbers, type and content id on one line, and the frames as the JVM prints them below. */
        @Override
        public String toString() {
            StringBuilder text = new StringBuilder();
            text.append(of(bytes, "byte")).append("  ").append(String.format(Locale.ROOT, "%,d", objects));
            text.append(" × ").append(type).append("  ").append(CallContext.toString(number));
            text.append("  ").append(CallContext.contentId(number));
            for (StackTraceElement frame : trace()) {
                text.append("\n\tat ").append(frame);
            }
            return text.toString();
        }
    }

    /**
     * Tells why allocations cannot be counted in this thread.
     *
     * @return the reason in words; empty if they can
     */
    public static Optional<String> unavailable() {
        if (!ACTIVE) {
            return Optional.of("the lucce agent is not in this JVM (-agentpath:/path/to/liblucce.so)");
        }
        return Optional.ofNullable(unable0());
    }

    /**
     * Runs code and counts what it allocates.
     *
     * @param <X> what the code throws
     * @param body the code; it runs once, in this thread
     * @return what it has allocated
     * @throws X what the code throws
     * @throws IllegalStateException if that cannot be counted: {@link #unavailable()} says why, or some of it was lost
     */
    public static <X extends Throwable> Allocations of(Body<X> body) throws X {
        long mark = ACTIVE ? begin0() : 0;
        if (mark == 0) {
            throw new IllegalStateException("allocations are not counted: " + unavailable().orElse("no mark was given"));
        }
        String counted;
        try {
            body.run();
        } finally {
            // Nothing of ours allocates before this has looked.
            counted = end0(mark);
        }
        if (counted == null) {
            throw new IllegalStateException("allocations were not counted to the end: "
                + unavailable().orElse("the code ended in another thread"));
        }
        return parsed(counted);
    }

    /** The first line is how many events were lost; then a line for each context. */
    private static Allocations parsed(String counted) {
        String[] lines = counted.split("\n");
        long lost = Long.parseLong(lines[0]);
        if (lost > 0) {
            throw new IllegalStateException(of(lost, "event") + " lost meanwhile, in this thread or others: the counts are not exact");
        }
        List<Place> places = new ArrayList<>();
        for (int i = 1; i < lines.length; i++) {
            String[] words = lines[i].split(" ", 4);
            long number = Long.parseUnsignedLong(words[0], 16);
            long objects = Long.parseLong(words[1]);
            places.add(new Place(number, type(words[3]), objects, Long.parseLong(words[2]), null));
        }
        return sorted(places);
    }

    private static Allocations sorted(List<Place> places) {
        places.sort(Comparator.comparingLong(Place::bytes).thenComparingLong(Place::objects).reversed()
            .thenComparing(Place::type).thenComparingLong(Place::number));
        return new Allocations(List.copyOf(places));
    }

    /** {@code [Ljava/lang/String;} is {@code java.lang.String[]}; what follows a space stays. */
    static String type(String descriptor) {
        int space = descriptor.indexOf(' ');
        String name = space < 0 ? descriptor : descriptor.substring(0, space);
        String rest = space < 0 ? "" : descriptor.substring(space);
        int dimensions = 0;
        while (name.startsWith("[", dimensions)) {
            dimensions++;
        }
        String element = name.substring(dimensions);
        String shown = switch (element) {
            case "B" -> "byte";
            case "C" -> "char";
            case "D" -> "double";
            case "F" -> "float";
            case "I" -> "int";
            case "J" -> "long";
            case "S" -> "short";
            case "Z" -> "boolean";
            default -> element.startsWith("L") && element.endsWith(";")
                ? element.substring(1, element.length() - 1).replace('/', '.')
                : element;
        };
        return shown + "[]".repeat(dimensions) + rest;
    }

    /**
     * Returns only what was allocated in calls of one method. Traces end there.
     *
     * @param type the method's class
     * @param method its name
     * @return what was made with a frame of that method in the trace
     */
    public Allocations through(Class<?> type, String method) {
        String[] outermost = {type.getName(), method};
        List<Place> kept = new ArrayList<>();
        for (Place place : places) {
            if (place.comesThrough(outermost)) {
                kept.add(new Place(place.number, place.type, place.objects, place.bytes, outermost));
            }
        }
        return new Allocations(List.copyOf(kept));
    }

    /**
     * Returns how many bytes were allocated.
     *
     * @return the sum over all objects
     */
    public long bytes() {
        return places.stream().mapToLong(Place::bytes).sum();
    }

    /**
     * Returns how many objects were allocated, arrays too.
     *
     * @return the count
     */
    public long objects() {
        return places.stream().mapToLong(Place::objects).sum();
    }

    /**
     * Returns where they were made.
     *
     * @return all places, those of most bytes first
     */
    public List<Place> places() {
        return places;
    }

    /** Returns the sums, and the places with most bytes with their traces. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        text.append(of(bytes(), "byte")).append(" in ").append(of(objects(), "object"));
        for (Place place : places.subList(0, Math.min(SHOWN, places.size()))) {
            text.append('\n').append(place);
        }
        if (places.size() > SHOWN) {
            List<Place> rest = places.subList(SHOWN, places.size());
            long bytes = rest.stream().mapToLong(Place::bytes).sum();
            text.append('\n').append(of(bytes, "byte")).append(" at ").append(of(rest.size(), "other place"));
        }
        return text.toString();
    }

    private static String of(long count, String thing) {
        return String.format(Locale.ROOT, "%,d %s%s", count, thing, count == 1 ? "" : "s");
    }

    /** Exported by the agent's library: null, or why allocations are not counted. */
    private static native String unable0();

    /** A mark; 0 if none can be taken. */
    private static native long begin0();

    /** What was counted since, see {@link #parsed}; null if the mark is of another thread, or counting has ended. */
    private static native String end0(long mark);
}
