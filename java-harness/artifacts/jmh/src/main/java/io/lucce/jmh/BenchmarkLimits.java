package io.lucce.jmh;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalDouble;

/** What one operation of a benchmark may allocate, in bytes. */
final class BenchmarkLimits {
    static final BenchmarkLimits NONE = new BenchmarkLimits(Map.of());

    /** By the end of a benchmark's name; the empty name is for all that have no limit of their own. */
    private final Map<String, Double> limits;

    private BenchmarkLimits(Map<String, Double> limits) {
        this.limits = limits;
    }

    /**
     * Reads limits.
     *
     * @param text {@code 24}, or {@code Parser.parse:120+Parser.scan:24+0}
     * @throws IllegalArgumentException if a limit is no number, or below 0
     */
    static BenchmarkLimits parse(String text) {
        Map<String, Double> limits = new LinkedHashMap<>();
        for (String part : text.split("\\+")) {
            int colon = part.lastIndexOf(':');
            double bytes;
            try {
                bytes = Double.parseDouble(part.substring(colon + 1));
            } catch (NumberFormatException e) {
                throw new IllegalArgumentException(part + " is no number of bytes", e);
            }
            if (!(bytes >= 0)) {
                throw new IllegalArgumentException(part + " is no number of bytes");
            }
            limits.put(part.substring(0, Math.max(colon, 0)), bytes);
        }
        return new BenchmarkLimits(limits);
    }

    /**
     * Returns the limit of a benchmark.
     *
     * @param benchmark its whole name: {@code com.acme.Parser.parse}
     * @return bytes for each operation; empty: no limit. The longest name that fits wins
     */
    OptionalDouble limitOf(String benchmark) {
        String best = null;
        for (String name : limits.keySet()) {
            boolean fits = name.isEmpty() || benchmark.equals(name) || benchmark.endsWith("." + name);
            if (fits && (best == null || name.length() > best.length())) {
                best = name;
            }
        }
        return best == null ? OptionalDouble.empty() : OptionalDouble.of(limits.get(best));
    }

    /** Whether bytes exceed a limit, both in hundredths of a byte: an object or two of a whole run are no reason to fail. */
    static boolean isExceeded(double bytes, double limit) {
        return Math.round(bytes * 100) > Math.round(limit * 100);
    }
}
