package io.lucce.agent;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The agent's library and the command {@code lucce}, which this jar brings along.
 *
 * <pre>
 * java -agentpath:$(java -jar lucce.jar)=out=run.lucce -jar app.jar
 * java -jar lucce.jar report run.lucce
 * </pre>
 *
 * <p>Both are unpacked, once for each version, into a folder of this user's that is closed to others: what the system property
 * {@code lucce.home} or the environment variable {@code LUCCE_HOME} says, else {@code lucce} in {@code $XDG_CACHE_HOME} or
 * {@code ~/.cache}, else a new folder for temporary files. The JVM that is given the library must be able to load code
 * from there.
 */
public final class LucceAgent {
    private static final String LIBRARY = "liblucce.so";
    private static final String COMMAND = "lucce";

    private LucceAgent() {}

    /**
     * Returns the agent's library, for {@code -agentpath}.
     *
     * @return an absolute path
     * @throws IOException if it cannot be unpacked
     * @throws UnsupportedOperationException if this jar has none for this system
     */
    public static Path library() throws IOException {
        return folder().resolve(LIBRARY);
    }

    /**
     * Returns the command {@code lucce}.
     *
     * @return an absolute path
     * @throws IOException if it cannot be unpacked
     * @throws UnsupportedOperationException if this jar has none for this system
     */
    public static Path command() throws IOException {
        return folder().resolve(COMMAND);
    }

    /**
     * Prints the library's path, or runs the command with these arguments.
     *
     * @param args none, or those of {@code lucce}
     * @throws IOException if the files cannot be unpacked or started
     * @throws InterruptedException if this thread is interrupted while the command runs
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        try {
            if (args.length == 0) {
                System.out.println(library());
                return;
            }
            List<String> command = new ArrayList<>(List.of(command().toString()));
            command.addAll(List.of(args));
            System.exit(new ProcessBuilder(command).inheritIO().start().waitFor());
        } catch (UnsupportedOperationException e) {
            System.err.println("lucce: " + e.getMessage());
            System.exit(2);
        }
    }

    /** Both lie in one folder: the command finds the agent beside itself. */
    private static Path folder() throws IOException {
        SortedMap<String, byte[]> files = new TreeMap<>();
        for (String name : new String[] {LIBRARY, COMMAND}) {
            try (InputStream file = LucceAgent.class.getResourceAsStream(platform() + "/" + name)) {
                if (file == null) {
                    throw new UnsupportedOperationException("this jar has no " + name + " for " + platform());
                }
                files.put(name, file.readAllBytes());
            }
        }
        return Unpacked.folder(files, home());
    }

    /** {@code linux-x64}, {@code linux-arm64}, or what this system calls itself. */
    static String platform() {
        String system = System.getProperty("os.name", "?").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch", "?").toLowerCase(Locale.ROOT);
        switch (processor) {
            case "amd64":
            case "x86_64":
                return system + "-x64";
            case "aarch64":
                return system + "-arm64";
            default:
                return system + "-" + processor;
        }
    }

    private static Path home() {
        for (String named : new String[] {System.getProperty("lucce.home"), System.getenv("LUCCE_HOME")}) {
            if (named != null && !named.isEmpty()) {
                return Path.of(named).toAbsolutePath();
            }
        }
        Path cache = cache();
        if (cache != null && canHold(cache)) {
            return cache.resolve("lucce");
        }
        return Temporary.FOLDER;
    }

    /** Where nothing lasts: one for each process. */
    private static final class Temporary {
        static final Path FOLDER = made();

        private static Path made() {
            try {
                return Files.createTempDirectory("lucce");
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private static Path cache() {
        String named = System.getenv("XDG_CACHE_HOME");
        if (named != null && named.startsWith("/")) {
            return Path.of(named);
        }
        String user = System.getProperty("user.home", "?");
        return user.startsWith("/") && !user.equals("/") ? Path.of(user, ".cache") : null;
    }

    /** It can be written to, or made. */
    private static boolean canHold(Path folder) {
        for (Path at = folder; at != null; at = at.getParent()) {
            if (Files.exists(at)) {
                return Files.isDirectory(at) && Files.isWritable(at);
            }
        }
        return false;
    }
}
