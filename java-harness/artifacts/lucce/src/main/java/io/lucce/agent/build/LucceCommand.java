package io.lucce.agent.build;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** The command {@code lucce}, run to its end by a tool. */
public final class LucceCommand {
    private final Path program;

    /**
     * Names the program.
     *
     * @param program a path, as {@link io.lucce.agent.LucceAgent#command} returns it
     */
    public LucceCommand(Path program) {
        this.program = program;
    }

    /**
     * Runs the command and hands on what it prints.
     *
     * @param arguments the command's arguments
     * @param print gets each line of standard output and of standard error
     * @return the exit code
     * @throws IOException if the command cannot be started, or this thread is interrupted
     */
    public int printOutput(List<String> arguments, Consumer<String> print) throws IOException {
        return run(builder(arguments).redirectErrorStream(true), print);
    }

    /**
     * Runs the command for what it prints.
     *
     * @param arguments the command's arguments
     * @return the lines of standard output
     * @throws IOException if the command cannot be started, this thread is interrupted, or the command fails: with what it prints
     *     on standard error
     */
    public String readOutput(List<String> arguments) throws IOException {
        Path errors = Files.createTempFile("lucce", ".txt");
        try {
            StringBuilder text = new StringBuilder();
            int status = run(builder(arguments).redirectError(errors.toFile()), line -> text.append(line).append('\n'));
            if (status != 0) {
                String reason = Files.readString(errors).strip();
                throw new IOException("lucce " + String.join(" ", arguments) + " ends with " + status + ": " + reason);
            }
            return text.toString();
        } finally {
            Files.deleteIfExists(errors);
        }
    }

    private ProcessBuilder builder(List<String> arguments) {
        List<String> words = new ArrayList<>(List.of(program.toString()));
        words.addAll(arguments);
        return new ProcessBuilder(words);
    }

    private static int run(ProcessBuilder builder, Consumer<String> print) throws IOException {
        Process process = builder.start();
        process.getOutputStream().close();
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                print.accept(line);
            }
            return process.waitFor();
        } catch (InterruptedException e) {
            process.destroy();
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while lucce runs", e);
        }
    }
}
