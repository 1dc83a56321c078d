package io.lucce.slf4j;

import io.lucce.CallContext;
import org.slf4j.MDC;

/**
 * Numbers of calling contexts in SLF4J's MDC, for logging libraries that have no {@code %lucce}: lines show the MDC's entry
 * {@value #KEY}, as {@code %X{lucce}} in a pattern does.
 *
 * <pre>{@code
 * try (LucceMdc.Entry entry = LucceMdc.open()) {
 *     handle(request);                                     // all lines of this thread have the number of this place
 * }
 * }</pre>
 *
 * <p>The number is that of the place that opened the entry, not of each line. {@code lucce annotate} turns it into the stack
 * trace. Without the agent the MDC stays as it is.
 */
public final class LucceMdc {
    /** The key of the MDC's entry. */
    public static final String KEY = "lucce";

    private LucceMdc() {}

    /**
     * Puts the number of the calling context into the current thread's MDC.
     *
     * @return what restores the earlier entry; close it in the same thread
     */
    public static Entry open() {
        if (!CallContext.isActive()) {
            return Entry.NONE;
        }
        Entry entry = new Entry(MDC.get(KEY), true);
        MDC.put(KEY, CallContext.toString(CallContext.current()));
        return entry;
    }

    /** An entry of the MDC that is open: see {@link LucceMdc#open()}. */
    public static final class Entry implements AutoCloseable {
        private static final Entry NONE = new Entry(null, false);

        /** The entry from before; null: there was none. */
        private final String outer;
        private final boolean isSet;

        private Entry(String outer, boolean isSet) {
            this.outer = outer;
            this.isSet = isSet;
        }

        /** Restores the entry from before. */
        @Override
        public void close() {
            if (!isSet) {
                return;
            }
            if (outer == null) {
                MDC.remove(KEY);
            } else {
                MDC.put(KEY, outer);
            }
        }
    }
}
