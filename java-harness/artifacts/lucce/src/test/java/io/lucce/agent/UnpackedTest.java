package io.lucce.agent;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class UnpackedTest {
    private static final byte[] BYTES = {1, 2, 3};
    private static final SortedMap<String, byte[]> FILES = new TreeMap<>(Map.of("a", BYTES, "b", new byte[100_000]));

    @TempDir
    private Path folder;

    private Path home() {
        return folder.resolve("not").resolve("there yet");
    }

    @Test
    void filesAreTheOwnersAlone() throws IOException {
        Path unpacked = Unpacked.folder(FILES, home());
        assertArrayEquals(BYTES, Files.readAllBytes(unpacked.resolve("a")));
        for (Path path : List.of(home(), unpacked, unpacked.resolve("a"), unpacked.resolve("b"))) {
            assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
        }
    }

    @Test
    void whatIsThereIsUsed() throws IOException {
        Path unpacked = Unpacked.folder(FILES, home());
        Object before = Files.readAttributes(unpacked.resolve("a"), "unix:ino").get("ino");
        assertEquals(unpacked, Unpacked.folder(FILES, home()));
        assertEquals(before, Files.readAttributes(unpacked.resolve("a"), "unix:ino").get("ino"));
    }

    @Test
    void otherBytesAreReplaced() throws IOException {
        Path file = Unpacked.folder(FILES, home()).resolve("a");
        for (byte[] other : new byte[][] {{}, {1, 2, 4}, {1, 2, 3, 4}}) {
            Files.write(file, other);
            Unpacked.folder(FILES, home());
            assertArrayEquals(BYTES, Files.readAllBytes(file));
        }
    }

    @Test
    void linksAreNotFollowed() throws IOException {
        Path file = Unpacked.folder(FILES, home()).resolve("a");
        Path other = Files.write(folder.resolve("other"), BYTES);
        Files.delete(file);
        Files.createSymbolicLink(file, other);
        Unpacked.folder(FILES, home());
        assertTrue(Files.isRegularFile(file, java.nio.file.LinkOption.NOFOLLOW_LINKS));
        Path link = Files.createSymbolicLink(folder.resolve("link"), home());
        assertThrows(FileSystemException.class, () -> Unpacked.folder(FILES, link));
    }

    @Test
    void openFoldersAreRefused() throws IOException {
        Path unpacked = Unpacked.folder(FILES, home());
        for (Path open : List.of(unpacked, home())) {
            for (String rights : List.of("rwxrwx---", "rwxr-xr-x", "rwx-----x")) {
                Files.setPosixFilePermissions(open, PosixFilePermissions.fromString(rights));
                FileSystemException refused =
                        assertThrows(FileSystemException.class, () -> Unpacked.folder(FILES, home()));
                assertTrue(refused.getMessage().contains("open to other users"), refused.getMessage());
            }
            Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwx------"));
        }
    }

    @Test
    void otherFilesLieElsewhere() throws IOException {
        SortedMap<String, byte[]> others = new TreeMap<>(Map.of("a", new byte[] {4}));
        assertNotEquals(Unpacked.folder(FILES, home()), Unpacked.folder(others, home()));
    }

    @Test
    void manyUnpackAtOnce() throws IOException {
        IntStream.range(0, 16).parallel().forEach(turn -> {
            try {
                Path unpacked = Unpacked.folder(FILES, home());
                assertArrayEquals(BYTES, Files.readAllBytes(unpacked.resolve("a")));
            } catch (IOException e) {
                throw new AssertionError(e);
            }
        });
        try (Stream<Path> all = Files.list(Unpacked.folder(FILES, home()))) {
            assertEquals(2, all.count());
        }
    }
}
