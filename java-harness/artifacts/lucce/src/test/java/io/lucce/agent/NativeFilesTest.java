package io.lucce.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeFilesTest {
    @TempDir
    private Path folder;
    private String processor;

    /** All machines of these tests have the same system. */
    @BeforeEach
    void setSystem() {
        processor = System.setProperty("os.arch", "aarch64");
        System.setProperty("lucce.home", folder.resolve("home").toString());
    }

    @AfterEach
    void restoreSystem() {
        System.setProperty("os.arch", processor);
        System.clearProperty("lucce.home");
    }

    @Test
    void eachProcessorHasItsClassifier() {
        assertEquals("linux-x64", NativeFiles.classify("Linux", "amd64"));
        assertEquals("linux-x64", NativeFiles.classify("Linux", "x86_64"));
        assertEquals("linux-arm64", NativeFiles.classify("Linux", "aarch64"));
    }

    @Test
    void otherSystemsAreToldWhichThereAre() {
        for (String[] other : new String[][] {{"Linux", "riscv64", "linux-riscv64"}, {"Mac OS X", "aarch64", "mac os x-arm64"}}) {
            var refused = assertThrows(UnsupportedOperationException.class, () -> NativeFiles.classify(other[0], other[1]));
            assertEquals("there is no agent for " + other[2] + ", only for linux-x64 and linux-arm64", refused.getMessage());
        }
    }

    @Test
    void theFilesOfThisSystemAreUnpacked() throws IOException {
        NativeFiles files = NativeFiles.fromJar(jar("linux-x64", "linux-arm64"));
        assertEquals("linux-arm64 liblucce.so", Files.readString(files.library()));
        assertEquals("linux-arm64 lucce", Files.readString(files.command()));
        assertEquals(files.library().getParent(), files.command().getParent());
    }

    @Test
    void theJarOfAnotherSystemIsRefused() throws IOException {
        Path jar = jar("linux-x64");
        var refused = assertThrows(UnsupportedOperationException.class, () -> NativeFiles.fromJar(jar));
        assertEquals(jar + " has no io/lucce/agent/linux-arm64/liblucce.so", refused.getMessage());
        assertTrue(Files.notExists(folder.resolve("home")));
    }

    @Test
    void aClassPathWithoutTheFilesIsTold() {
        var refused = assertThrows(UnsupportedOperationException.class, NativeFiles::fromClassPath);
        assertEquals("the class path has no io/lucce/agent/linux-arm64/liblucce.so: add io.lucce:lucce with the classifier linux-arm64 "
            + "or all", refused.getMessage());
        // Here are no jars.
        assertThrows(UnsupportedOperationException.class, NativeFiles::version);
    }

    private Path jar(String... systems) throws IOException {
        Path jar = folder.resolve("lucce.jar");
        try (OutputStream file = Files.newOutputStream(jar); ZipOutputStream zip = new ZipOutputStream(file)) {
            for (String system : systems) {
                for (String name : new String[] {"liblucce.so", "lucce"}) {
                    zip.putNextEntry(new ZipEntry("io/lucce/agent/" + system + "/" + name));
                    zip.write((system + " " + name).getBytes());
                }
            }
        }
        return jar;
    }
}
