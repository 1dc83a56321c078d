package io.lucce;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * What the agent in this Java virtual machine says of its run: its state, and what lines of the program have allocated so far.
 *
 * <p>These calls are for metrics and for pages that a person opens: each reads all counters. Without the agent all answers are
 * empty.
 *
 * <p>All methods may be called from any thread at any time.
 */
public final class AgentStatus {
    private static final boolean ACTIVE = CallContext.isActive();

    private AgentStatus() {}

    /**
     * Returns the agent's state and statistics.
     *
     * @return one JSON object, as {@code lucce ctl PID status --json} prints it; empty if there is no agent or if it was detached
     */
    public static Optional<String> json() {
        return ACTIVE ? Optional.ofNullable(status0()) : Optional.empty();
    }

    /**
     * Returns how many events no counter contains.
     *
     * @return the number since the start; empty if there is no agent or if it was detached
     */
    public static OptionalLong lostEvents() {
        return known(ACTIVE ? lost0() : -1);
    }

    /**
     * Returns how many resources are open: files, sockets and others of the agent's option {@code events=open}.
     *
     * @return the number now; empty if the run does not record them
     */
    public static OptionalLong openResources() {
        return known(ACTIVE ? open0() : -1);
    }

    private static OptionalLong known(long count) {
        return count < 0 ? OptionalLong.empty() : OptionalLong.of(count);
    }

    /** What one line of the program's own code has allocated, itself or in calls of libraries and of the JDK. */
    public static final class LineTotal {
        private final String line;
        private final long objects;
        private final long bytes;

        private LineTotal(String line, long objects, long bytes) {
            this.line = line;
            this.objects = objects;
            this.bytes = bytes;
        }

        /**
         * Returns the line as a stack trace shows it.
         *
         * @return such as {@code com.acme.Shop.invoice(Shop.java:63)}; empty for what no own code has caused
         */
        public String line() {
            return line;
        }

        /**
         * Returns how many objects were made.
         *
         * @return the count since the start
         */
        public long objects() {
            return objects;
        }

        /**
         * Returns what the objects take in the heap.
         *
         * @return the sum in bytes since the start
         */
        public long bytes() {
            return bytes;
        }
    }

    /**
     * Returns what was allocated since the start by each line of own code: by the innermost frame of a class that matches.
     *
     * @param ownClasses patterns such as {@code com.acme.*}, in which a star stands for any characters. If there are none, the
     *     agent's option {@code app} has them; without it, all classes but the JDK's are own code
     * @return one for each line, and one for what no own code has caused, in no order; empty if not every allocation is
     *     counted ({@code events=alloc})
     * @throws IllegalArgumentException if a pattern is malformed
     */
    public static List<LineTotal> allocatedByLine(Collection<String> ownClasses) {
        String text = ACTIVE ? lines0(String.join("+", ownClasses)) : null;
        List<LineTotal> totals = new ArrayList<>();
        if (text == null) {
            return totals;
        }
        for (String row : text.split("\n")) {
            String[] words = row.split(" ", 3);
            if (words.length == 3) {
                totals.add(new LineTotal(words[2], Long.parseLong(words[0]), Long.parseLong(words[1])));
            }
        }
        return totals;
    }

    /** Exported by the agent's library; null: it was detached. */
    private static native String status0();

    /** Negative: not known. */
    private static native long lost0();

    /** Negative: not recorded. */
    private static native long open0();

    /** {@code OBJECTS BYTES LINE} in each row; null: not every allocation is counted. */
    private static native String lines0(String ownClasses);
}
