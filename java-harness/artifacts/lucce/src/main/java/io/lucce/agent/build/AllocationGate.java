package io.lucce.agent.build;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Compares the log of a build with a base, by {@code lucce gate}. */
public final class AllocationGate {
    /** The growth that passes by default. */
    public static final String DEFAULT_GROWTH = "3%";

    private final String maxGrowth;
    private final String through;
    private final boolean noLines;
    private final Path reports;

    /**
     * Names what passes, and where the results go.
     *
     * @param maxGrowth maximum growth, as {@code 3%}
     * @param through regular expression of {@code package.Class.method}: judge only what happens in calls of these; null: all
     * @param noLines whether stack traces are joined without their line numbers
     * @param reports folder for {@code gate.md} and {@code gate.xml}
     */
    public AllocationGate(String maxGrowth, String through, boolean noLines, Path reports) {
        this.maxGrowth = maxGrowth;
        this.through = through;
        this.noLines = noLines;
        this.reports = reports;
    }

    /**
     * Compares a log with a base and writes the results.
     *
     * @param lucce the command
     * @param log the log of this build
     * @param base the log to compare with
     * @param print gets each line of the command
     * @return whether the log is within the limit; {@link #failure} says why not
     * @throws IOException if the runs cannot be judged
     */
    public boolean passes(LucceCommand lucce, Path log, Path base, Consumer<String> print) throws IOException {
        Files.createDirectories(reports);
        int status = lucce.printOutput(arguments(log, base), print);
        if (status > 1) {
            throw new IOException("the runs cannot be judged (lucce gate ends with " + status + ")");
        }
        return status == 0;
    }

    /**
     * Returns the message for a log that does not pass.
     *
     * @return one line
     */
    public String failure() {
        return "lucce: the tests allocate more than the base, by over " + maxGrowth + "; see " + reports.resolve("gate.md");
    }

    List<String> arguments(Path log, Path base) {
        List<String> words = new ArrayList<>(List.of("gate", log.toString(),
            "--base", base.toString(), "--max-growth", maxGrowth,
            "--junit", reports.resolve("gate.xml").toString(), "--markdown", reports.resolve("gate.md").toString()));
        if (noLines) {
            words.add("--no-lines");
        }
        if (through != null && !through.isEmpty()) {
            words.addAll(List.of("--through", through));
        }
        return words;
    }
}
