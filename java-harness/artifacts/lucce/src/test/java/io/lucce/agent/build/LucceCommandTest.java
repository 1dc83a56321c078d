package io.lucce.agent.build;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** With a shell in place of the command. */
class LucceCommandTest {
    private static final LucceCommand SHELL = new LucceCommand(Path.of("/bin/sh"));

    @Test
    void standardOutputIsRead() throws IOException {
        assertEquals("a\nb\n", SHELL.readOutput(List.of("-c", "echo a; echo wrong >&2; printf b")));
        // It gets no input.
        assertEquals("", SHELL.readOutput(List.of("-c", "cat")));
    }

    @Test
    void aFailureHasTheReason() {
        List<String> words = List.of("-c", "echo a; echo no log >&2; exit 3");
        IOException failure = assertThrows(IOException.class, () -> SHELL.readOutput(words));
        assertEquals("lucce " + String.join(" ", words) + " ends with 3: no log", failure.getMessage());
        assertThrows(IOException.class, () -> new LucceCommand(Path.of("/no/such/lucce")).readOutput(List.of()));
    }

    @Test
    void allLinesArePrinted() throws IOException {
        List<String> lines = new ArrayList<>();
        assertEquals(2, SHELL.printOutput(List.of("-c", "echo a; echo b >&2; echo c; exit 2"), lines::add));
        assertEquals(List.of("a", "b", "c"), lines);
    }

    @Test
    void anInterruptedThreadStaysInterrupted() {
        Thread.currentThread().interrupt();
        assertThrows(IOException.class, () -> SHELL.readOutput(List.of("-c", "exec sleep 600 >/dev/null")));
        assertEquals(true, Thread.interrupted());
    }
}
