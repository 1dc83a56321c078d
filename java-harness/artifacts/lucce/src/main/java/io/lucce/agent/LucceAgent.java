package io.lucce.agent;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The agent's library and the command {@code lucce}, out of a jar of the class path: {@code lucce-VERSION-all.jar}, or that of this
 * system, as {@code lucce-VERSION-linux-x64.jar}.
 *
 * <pre>
 * java -agentpath:$(java -jar lucce-VERSION-all.jar)=out=run.lucce -jar app.jar
 * java -jar lucce-VERSION-all.jar report run.lucce
 * </pre>
 *
 * <p>Both are unpacked, once for each version, into a folder of this user's that is closed to others: what the system property
 * {@code lucce.home} or the environment variable {@code LUCCE_HOME} says, else {@code lucce} in {@code $XDG_CACHE_HOME} or
 * {@code ~/.cache}, else a new folder for temporary files. The JVM that is given the library must be able to load code
 * from there.
 */
public final class LucceAgent {
    private LucceAgent() {}

    /**
     * Returns the agent's library, for {@code -agentpath}.
     *
     * @return an absolute path
     * @throws IOException if it cannot be unpacked
     * @throws UnsupportedOperationException if the class path has none for this system
     */
    public static Path library() throws IOException {
        return NativeFiles.fromClassPath().library();
    }

    /**
     * Returns the command {@code lucce}.
     *
     * @return an absolute path
     * @throws IOException if it cannot be unpacked
     * @throws UnsupportedOperationException if the class path has none for this system
     */
    public static Path command() throws IOException {
        return NativeFiles.fromClassPath().command();
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
}
