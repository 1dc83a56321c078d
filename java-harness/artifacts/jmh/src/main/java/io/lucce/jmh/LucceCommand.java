package io.lucce.jmh;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The command {@code lucce}, which reads the logs of forks. */
record LucceCommand(Path program) {
    /**
     * Runs the command to its end.
     *
     * @return what it prints on standard output
     * @throws IOException if it cannot be started, or fails: with what it prints on standard error
     */
    String run(List<String> arguments) throws IOException {
        List<String> words = new ArrayList<>(List.of(program.toString()));
        words.addAll(arguments);
        Path errors = Files.createTempFile("lucce", ".txt");
        try {
            Process process = new ProcessBuilder(words).redirectError(errors.toFile()).start();
            process.getOutputStream().close();
            String text;
            try (InputStream out = process.getInputStream()) {
                text = new String(out.readAllBytes(), StandardCharsets.UTF_8);
            }
            int status = process.waitFor();
            if (status != 0) {
                String reason = Files.readString(errors).strip();
                throw new IOException("lucce " + String.join(" ", arguments) + " ends with " + status + ": " + reason);
            }
            return text;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while lucce reads a log", e);
        } finally {
            Files.deleteIfExists(errors);
        }
    }
}
