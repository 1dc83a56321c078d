package io.lucce.agent;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * The agent's library and the command {@code lucce} of this system, unpacked where {@link LucceAgent} says.
 *
 * <p>Each system has a jar: the artifact {@code io.lucce:lucce} with the system's name as the classifier. The classifier {@code all}
 * has the files of all systems, and the classes.
 */
public final class NativeFiles {
    /** The classifiers of the jars. */
    static final List<String> SYSTEMS = List.of("linux-x64", "linux-arm64");

    private static final String LIBRARY = "liblucce.so";
    private static final String COMMAND = "lucce";

    /** The command finds the agent beside itself. */
    private final Path folder;

    private NativeFiles(Path folder) {
        this.folder = folder;
    }

    /**
     * Unpacks the files that are on the class path.
     *
     * @return the files
     * @throws IOException if they cannot be unpacked
     * @throws UnsupportedOperationException if the class path has none for this system
     */
    public static NativeFiles fromClassPath() throws IOException {
        String system = findClassifier();
        String advice = ": add io.lucce:lucce with the classifier " + system + " or all";
        // By the loader: a module would look into its own jar alone.
        return unpack(system, NativeFiles.class.getClassLoader()::getResourceAsStream, "the class path", advice);
    }

    /**
     * Unpacks the files of a jar.
     *
     * @param jar the jar of this system
     * @return the files
     * @throws IOException if the jar cannot be read, or the files cannot be unpacked
     * @throws UnsupportedOperationException if the jar has none for this system
     */
    public static NativeFiles fromJar(Path jar) throws IOException {
        String system = findClassifier();
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            EntrySource source = name -> {
                ZipEntry entry = zip.getEntry(name);
                return entry == null ? null : zip.getInputStream(entry);
            };
            return unpack(system, source, jar.toString(), "");
        }
    }

    /**
     * Returns the classifier of the jar for this system.
     *
     * @return as {@code linux-x64}
     * @throws UnsupportedOperationException if lucce has no agent for this system
     */
    public static String findClassifier() {
        return classify(System.getProperty("os.name", "?"), System.getProperty("os.arch", "?"));
    }

    /**
     * Returns the version of this class's jar. The jar of the system must have the same.
     *
     * @return as {@code 0.1.0}
     * @throws UnsupportedOperationException if this class is not in a jar
     */
    public static String version() {
        String version = NativeFiles.class.getPackage().getImplementationVersion();
        if (version == null) {
            throw new UnsupportedOperationException("the classes of io.lucce:lucce are not in their jar, which has the version");
        }
        return version;
    }

    /**
     * Returns the agent's library, for {@code -agentpath}.
     *
     * @return an absolute path
     */
    public Path library() {
        return folder.resolve(LIBRARY);
    }

    /**
     * Returns the command {@code lucce}.
     *
     * @return an absolute path
     */
    public Path command() {
        return folder.resolve(COMMAND);
    }

    /** {@code name}, {@code processor}: the properties {@code os.name} and {@code os.arch}. */
    static String classify(String name, String processor) {
        String system = name.toLowerCase(Locale.ROOT) + "-" + shorten(processor.toLowerCase(Locale.ROOT));
        if (!SYSTEMS.contains(system)) {
            throw new UnsupportedOperationException("there is no agent for " + system + ", only for " + String.join(" and ", SYSTEMS));
        }
        return system;
    }

    private static String shorten(String processor) {
        switch (processor) {
            case "amd64":
            case "x86_64":
                return "x64";
            case "aarch64":
                return "arm64";
            default:
                return processor;
        }
    }

    /** {@code place}, {@code advice}: what a message about a missing file begins and ends with. */
    private static NativeFiles unpack(String system, EntrySource source, String place, String advice) throws IOException {
        SortedMap<String, byte[]> files = new TreeMap<>();
        for (String name : List.of(LIBRARY, COMMAND)) {
            String entry = "io/lucce/agent/" + system + "/" + name;
            try (InputStream file = source.open(entry)) {
                if (file == null) {
                    throw new UnsupportedOperationException(place + " has no " + entry + advice);
                }
                files.put(name, file.readAllBytes());
            }
        }
        return new NativeFiles(Unpacked.folder(files, home()));
    }

    /** Opens an entry of a jar; null: there is none of this name. */
    private interface EntrySource {
        InputStream open(String name) throws IOException;
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
