package io.lucce.jmh;

import java.nio.file.Path;
import org.openjdk.jmh.profile.ProfilerException;

/**
 * The options behind {@code -prof lucce:}, separated by semicolons.
 *
 * @param events kinds of events, as the agent's option {@code events=} has them
 * @param top how many lines of a kind are printed; 0: all
 * @param html the folder for pages, or null
 * @param logs the folder for logs, or null: logs are deleted
 * @param limits what an operation may allocate
 */
record ProfilerOptions(String events, int top, Path html, Path logs, BenchmarkLimits limits) {
    static final ProfilerOptions DEFAULT = new ProfilerOptions("alloc+heap=64k", 3, null, null, BenchmarkLimits.NONE);

    static final String HELP = """
        options of -prof lucce, separated by semicolons:
          events=KINDS   kinds of events, joined by + [default: alloc+heap=64k]
          top=N          maximum number of lines for each kind; 0: all [default: 3]
          limit=BYTES    fail if an operation allocates more, by bytecode; BENCHMARK:BYTES limits benchmarks
                         whose names end so; several are joined by +
          html=FOLDER    write a page for each fork into this folder
          logs=FOLDER    keep the logs in this folder""";

    static ProfilerOptions parse(String line) throws ProfilerException {
        String events = DEFAULT.events;
        int top = DEFAULT.top;
        Path html = null;
        Path logs = null;
        BenchmarkLimits limits = BenchmarkLimits.NONE;
        for (String option : line.split(";")) {
            String[] parts = option.strip().split("=", 2);
            String value = parts.length == 2 ? parts[1] : "";
            if (parts[0].isEmpty()) {
                continue;
            }
            if (value.isEmpty()) {
                throw new ProfilerException(parts[0].equals("help") ? HELP : "lucce: " + option + ": no value\n" + HELP);
            }
            try {
                switch (parts[0]) {
                    case "events" -> events = value;
                    case "top" -> top = Integer.parseUnsignedInt(value);
                    case "html" -> html = Path.of(value).toAbsolutePath();
                    case "logs" -> logs = Path.of(value).toAbsolutePath();
                    case "limit" -> limits = BenchmarkLimits.parse(value);
                    default -> throw new ProfilerException("lucce: unknown option " + parts[0] + "\n" + HELP);
                }
            } catch (IllegalArgumentException e) {
                throw new ProfilerException("lucce: " + option + ": " + e.getMessage());
            }
        }
        if (limits != BenchmarkLimits.NONE && !countsAllocations(events)) {
            throw new ProfilerException("lucce: limit= needs events=alloc, which counts every allocation");
        }
        return new ProfilerOptions(events, top, html, logs, limits);
    }

    private static boolean countsAllocations(String events) {
        for (String kind : events.split("\\+")) {
            if (kind.equals("alloc") || kind.equals("alloc=all") || kind.equals("alloc=sizes")) {
                return true;
            }
        }
        return false;
    }
}
