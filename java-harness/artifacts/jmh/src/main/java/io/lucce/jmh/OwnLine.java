package io.lucce.jmh;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** A line of the program's own code, with all events that happen in it or in what it calls. */
final class OwnLine {
    private final Set<String> types = new LinkedHashSet<>();
    /** Innermost first, of the largest context, as far as the benchmark's method. */
    private List<String> trace = List.of();
    private double largest = -1;
    private double value;
    private double count;
    private double heapBytes;
    private boolean isSampled;
    private boolean isRemoved = true;

    /** Adds a context of {@code lucce report --json}. The first one that is added has most. */
    void add(JsonObject context, boolean isCounted) {
        double added = amount(context, isCounted);
        value += context.get("value").getAsDouble();
        count += context.get("count").getAsDouble();
        if (!context.get("class").isJsonNull()) {
            types.add(context.get("class").getAsString());
        }
        if (context.has("heap")) {
            JsonObject heap = context.getAsJsonObject("heap");
            isSampled = true;
            heapBytes += heap.get("bytes").getAsDouble();
            isRemoved &= heap.has("removed") && heap.get("removed").getAsBoolean();
        }
        if (added > largest) {
            largest = added;
            trace = trace(context);
        }
    }

    double value() {
        return value;
    }

    double count() {
        return count;
    }

    /** Estimated bytes on the heap; meaningful if {@link #isSampled()}. */
    double heapBytes() {
        return heapBytes;
    }

    boolean isSampled() {
        return isSampled;
    }

    /** Whether the compiler has removed all of these allocations. */
    boolean isRemoved() {
        return isSampled && isRemoved;
    }

    List<String> trace() {
        return trace;
    }

    /** {@code byte[] and 2 more types}; empty if events have no type. */
    String types() {
        if (types.isEmpty()) {
            return "";
        }
        String first = types.iterator().next();
        return switch (types.size()) {
            case 1 -> first;
            case 2 -> first + " and 1 more type";
            default -> first + " and " + (types.size() - 1) + " more types";
        };
    }

    /** What contexts are ordered by. */
    static double amount(JsonObject context, boolean isCounted) {
        return context.get(isCounted ? "count" : "value").getAsDouble();
    }

    /** The innermost frame of own code, as text; without one the innermost frame. */
    static String key(JsonObject context) {
        String innermost = "";
        for (JsonElement element : context.getAsJsonArray("frames")) {
            JsonObject frame = element.getAsJsonObject();
            if (frame.has("own")) {
                return describe(frame);
            }
            innermost = innermost.isEmpty() ? describe(frame) : innermost;
        }
        return innermost;
    }

    private static List<String> trace(JsonObject context) {
        List<String> frames = new ArrayList<>();
        for (JsonElement element : context.getAsJsonArray("frames")) {
            JsonObject frame = element.getAsJsonObject();
            if (frame.get("method").getAsString().endsWith(MeasuredCalls.STUB)) {
                break;
            }
            frames.add(describe(frame));
        }
        return frames;
    }

    /** As the JVM prints a frame. */
    private static String describe(JsonObject frame) {
        JsonElement file = frame.get("file");
        int line = frame.get("line").getAsInt();
        String name = file.isJsonNull() ? null : file.getAsString();
        String type = frame.get("class").getAsString();
        return new StackTraceElement(type, frame.get("method").getAsString(), name, line).toString();
    }
}
