package io.lucce.agent.build;

import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** The folder with the logs of a build's tests, one log for each JVM. */
public final class TestLogs {
    /** The kinds of events that tests record by default. */
    public static final String DEFAULT_EVENTS = "alloc+thread";

    private static final String PREFIX = "tests-";
    private static final String PATTERN = PREFIX + "*.lucce";

    private final Path folder;

    /**
     * Names the folder; it need not exist.
     *
     * @param folder the folder
     */
    public TestLogs(Path folder) {
        this.folder = folder.toAbsolutePath();
    }

    /**
     * Creates the folder, or deletes the logs in it.
     *
     * @throws IOException if that is not possible
     */
    public void clear() throws IOException {
        for (Path log : Files.isDirectory(folder) ? listLogs() : List.<Path>of()) {
            Files.delete(log);
        }
        Files.createDirectories(folder);
    }

    /**
     * Returns the argument with which a JVM records into the folder.
     *
     * @param library the agent's library
     * @param events kinds of events, joined by {@code +}
     * @param options more options of the agent, separated by commas; null or empty: none
     * @return {@code -agentpath:…}
     */
    public String agentArgument(Path library, String events, String options) {
        return AgentArgument.forLogs(library, folder, PREFIX, events, options);
    }

    /**
     * Returns the log of the JVM that has run all tests.
     *
     * @return the log; empty if no JVM has recorded
     * @throws IOException if several JVMs have recorded, or the folder cannot be read
     */
    public Optional<Path> findLog() throws IOException {
        List<Path> logs = Files.isDirectory(folder) ? listLogs() : List.<Path>of();
        if (logs.size() > 1) {
            throw new IOException(logs.size() + " JVMs have run tests, and each is a part of the run: one JVM runs all with "
                + "forkCount=1 and reuseForks=true (Maven), or maxParallelForks=1 and forkEvery=0 (Gradle). Failsafe starts "
                + "another JVM than Surefire: let lucce.propertyName name a property that the argLine of one of them has");
        }
        return logs.stream().findFirst();
    }

    /**
     * Tells whether a project has compiled tests. If it has none, no JVM can have recorded, and there is nothing to judge.
     *
     * @param folders folders of compiled tests; they need not exist
     * @return whether one of them has a class file, at any depth
     * @throws IOException if a folder cannot be read
     */
    public static boolean hasClasses(Iterable<File> folders) throws IOException {
        for (File folder : folders) {
            if (folder.isDirectory()) {
                try (Stream<Path> files = Files.walk(folder.toPath())) {
                    if (files.anyMatch(file -> file.toString().endsWith(".class"))) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    private List<Path> listLogs() throws IOException {
        List<Path> logs = new ArrayList<>();
        try (DirectoryStream<Path> all = Files.newDirectoryStream(folder, PATTERN)) {
            all.forEach(logs::add);
        }
        return logs;
    }
}
