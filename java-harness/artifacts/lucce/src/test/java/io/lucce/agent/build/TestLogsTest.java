package io.lucce.agent.build;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TestLogsTest {
    @TempDir
    Path home;

    @Test
    void theArgumentNamesALogForEachProcess() {
        Path folder = Path.of("/a%b");
        Path library = Path.of("/l%/liblucce.so");
        String argument = "-agentpath:/l%/liblucce.so=events=alloc,log=warn,out=/a%%b/tests-%p.lucce";
        assertEquals(argument, AgentArgument.forLogs(library, folder, "tests-", "alloc", null));
        assertEquals(argument, AgentArgument.forLogs(library, folder, "tests-", "alloc", ""));
        assertEquals(argument + ",a=1,b=2", AgentArgument.forLogs(library, folder, "tests-", "alloc", "a=1,b=2"));
        String unnamed = "-agentpath:/l%/liblucce.so=events=lock,log=warn,out=/a%%b/%p.lucce";
        assertEquals(unnamed, AgentArgument.forLogs(library, folder, "", "lock", null));
    }

    @Test
    void oneLogIsTheRun() throws IOException {
        Path folder = home.resolve("new/folder");
        TestLogs logs = new TestLogs(folder);
        assertEquals(Optional.empty(), logs.findLog());
        logs.clear();
        assertEquals(Optional.empty(), logs.findLog());
        Path other = Files.createFile(folder.resolve("other.lucce"));
        Path first = Files.createFile(folder.resolve("tests-1.lucce"));
        assertEquals(Optional.of(first), logs.findLog());
        Files.createFile(folder.resolve("tests-2.lucce"));
        assertThrows(IOException.class, logs::findLog);
        logs.clear();
        assertEquals(List.of(other), Files.list(folder).toList());
    }

    @Test
    void onlyClassFilesAreTests() throws IOException {
        File missing = home.resolve("missing").toFile();
        File resources = Files.createDirectories(home.resolve("resources")).toFile();
        Files.createFile(home.resolve("resources/settings.xml"));
        assertFalse(TestLogs.hasClasses(List.of()));
        assertFalse(TestLogs.hasClasses(List.of(missing, resources)));
        Path deep = Files.createDirectories(home.resolve("classes/com/acme"));
        Files.createFile(deep.resolve("AppTest.class"));
        assertTrue(TestLogs.hasClasses(List.of(missing, resources, home.resolve("classes").toFile())));
    }

    @Test
    void theCommandLineHasWhatIsSet() {
        Path reports = Path.of("/reports");
        List<String> always = List.of("gate", "new", "--base", "old", "--max-growth", "3%",
            "--junit", "/reports/gate.xml", "--markdown", "/reports/gate.md");
        AllocationGate gate = new AllocationGate("3%", null, false, reports);
        assertEquals(always, gate.arguments(Path.of("new"), Path.of("old")));
        AllocationGate selected = new AllocationGate("3%", "^A$", true, reports);
        List<String> words = selected.arguments(Path.of("new"), Path.of("old"));
        assertEquals(List.of("--no-lines", "--through", "^A$"), words.subList(always.size(), words.size()));
    }
}
