package io.lucce.jmh;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;

/** What measured operations did of one kind of events, from {@code lucce report --json}. */
final class KindReport {
    private final JsonObject report;
    /** Operations that JMH has measured; at least 1. */
    private final long operations;
    private final String unit;
    private final List<OwnLine> lines;

    private KindReport(JsonObject report, long operations) {
        this.report = report;
        this.operations = operations;
        unit = report.get("unit").getAsString();
        lines = lines(report, unit.isEmpty());
    }

    static KindReport parse(String json, long operations) {
        return new KindReport(JsonParser.parseString(json).getAsJsonObject(), operations);
    }

    private static List<OwnLine> lines(JsonObject report, boolean isCounted) {
        Map<String, OwnLine> lines = new LinkedHashMap<>();
        for (JsonElement element : report.getAsJsonArray("contexts")) {
            JsonObject context = element.getAsJsonObject();
            lines.computeIfAbsent(OwnLine.key(context), key -> new OwnLine()).add(context, isCounted);
        }
        List<OwnLine> sorted = new ArrayList<>(lines.values());
        sorted.sort(Comparator.comparingDouble((OwnLine line) -> isCounted ? line.count() : line.value()).reversed());
        return sorted;
    }

    /** The kind of events. */
    String kind() {
        return report.get("event").getAsString();
    }

    /** The other kinds that the log has, except samples: these are a column of allocations. */
    List<String> otherKinds() {
        return report.getAsJsonObject("others").keySet().stream().filter(kind -> !isSampled(kind)).toList();
    }

    private static boolean isSampled(String kind) {
        return kind.equals("heap") || kind.startsWith("survive");
    }

    /** Whether events have a number alone, neither bytes nor time. */
    boolean isCountOnly() {
        return unit.isEmpty();
    }

    /** Values for each operation: bytes or nanoseconds. */
    double valueOfOperation() {
        return total("value") / operations;
    }

    /** Why the counts are too small; empty: they are whole. */
    String gaps() {
        long lost = report.get("lost").getAsLong();
        if (lost > 0) {
            return lost + " events were dropped";
        }
        return report.get("damage").isJsonNull() ? "" : "a part of the log could not be read";
    }

    /** What JMH shows beside the benchmark's own result. */
    List<Result<?>> results() {
        List<Result<?>> results = new ArrayList<>();
        double count = total("count") / operations;
        if (kind().equals("alloc")) {
            results.add(scalar("lucce.alloc.norm", valueOfOperation(), "B/op"));
            results.add(scalar("lucce.objects.norm", count, "#/op"));
            if (report.has("heap")) {
                results.add(scalar("lucce.heap.norm", heap("bytes") / operations, "B/op"));
            }
            return results;
        }
        results.add(scalar("lucce." + kind() + ".norm", count, "#/op"));
        if (!unit.isEmpty()) {
            String name = unit.equals("ns") ? "time" : "bytes";
            results.add(scalar("lucce." + kind() + "." + name + ".norm", valueOfOperation(), shortUnit() + "/op"));
        }
        return results;
    }

    private static ScalarResult scalar(String name, double value, String unit) {
        return new ScalarResult(name, value, unit, AggregationPolicy.AVG);
    }

    /**
     * Writes the sums for each operation, and the largest lines.
     *
     * @param outside values of the kind outside of the measured calls, in the same time
     * @param top the maximum number of lines; 0: all
     */
    void write(StringBuilder text, double outside, int top) {
        text.append(kind()).append(": ").append(sum(total("value"), total("count")));
        if (report.has("heap")) {
            double bytes = heap("bytes");
            text.append("; on the heap ").append(amount(bytes));
            if (bytes > 0) {
                text.append(String.format(Locale.ROOT, " ±%.1f%%", 100 * heap("error_bytes") / bytes));
            }
        }
        text.append('\n');
        if (outside > 0) {
            text.append("  outside of the measured calls (other threads, JMH itself): ").append(amount(outside)).append('\n');
        }
        int shown = top == 0 ? lines.size() : Math.min(top, lines.size());
        for (int at = 0; at < shown; at++) {
            write(text, at + 1, lines.get(at));
        }
        if (shown < lines.size()) {
            text.append("  lines that are not shown: ").append(lines.size() - shown).append(" (top=0 shows all)\n");
        }
    }

    private void write(StringBuilder text, int number, OwnLine line) {
        boolean isCounted = unit.isEmpty();
        double whole = total(isCounted ? "count" : "value");
        double share = whole == 0 ? 0 : 100 * (isCounted ? line.count() : line.value()) / whole;
        text.append(String.format(Locale.ROOT, "  #%d %.2f%%  ", number, share)).append(sum(line.value(), line.count()));
        if (!line.types().isEmpty()) {
            text.append(": ").append(line.types());
        }
        if (line.isRemoved()) {
            text.append("; removed by the compiler");
        } else if (line.isSampled()) {
            text.append("; on the heap ").append(amount(line.heapBytes()));
        }
        text.append('\n');
        line.trace().forEach(frame -> text.append("\tat ").append(frame).append('\n'));
    }

    /** {@code 120.000 B in 1.000 events}, for an operation. */
    private String sum(double value, double count) {
        String events = String.format(Locale.ROOT, "%,.3f %s", count / operations, kind().equals("alloc") ? "objects" : "events");
        return unit.isEmpty() ? events : amount(value) + " in " + events;
    }

    private String amount(double value) {
        return String.format(Locale.ROOT, "%,.3f %s", value / operations, unit.isEmpty() ? "events" : shortUnit());
    }

    private String shortUnit() {
        return unit.equals("bytes") ? "B" : unit;
    }

    /** A sum of all events, in the kind's unit. */
    double total(String field) {
        return report.getAsJsonObject("totals").get(field).getAsDouble();
    }

    private double heap(String field) {
        return report.getAsJsonObject("heap").get(field).getAsDouble();
    }
}
