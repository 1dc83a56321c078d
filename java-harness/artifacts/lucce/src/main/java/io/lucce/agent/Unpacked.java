package io.lucce.agent;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;

/**
 * Files of the jar, unpacked to a folder that no other user can write to.
 *
 * <p>A JVM will run what lies there, so neither the folder nor the files are taken on trust: the folder is a real
 * one, belongs to this user and is closed to others, and a file that is there already is used only if it has
 * the bytes of the jar. A new file gets its name when it is complete, so processes that unpack at once see whole files.
 */
final class Unpacked {
    private static final Set<PosixFilePermission> OWNER_ONLY = PosixFilePermissions.fromString("rwx------");

    private Unpacked() {}

    /**
     * Unpacks files that are not there yet.
     *
     * @param files what the jar has, by their names
     * @param home in which a folder for just these bytes is made; it need not exist
     * @return the folder in which all of them are
     * @throws IOException if a folder is somebody else's or cannot be written to
     */
    static Path folder(SortedMap<String, byte[]> files, Path home) throws IOException {
        Path folder = closed(closed(home).resolve(digest(files)));
        for (Map.Entry<String, byte[]> file : files.entrySet()) {
            unpack(folder.resolve(file.getKey()), file.getValue());
        }
        return folder;
    }

    private static void unpack(Path file, byte[] bytes) throws IOException {
        if (holds(file, bytes)) {
            return;
        }
        Path fresh = Files.createTempFile(file.getParent(), "unpacked", ".new", forOwner());
        try {
            Files.write(fresh, bytes);
            moved(fresh, file);
        } finally {
            Files.deleteIfExists(fresh);
        }
        if (!holds(file, bytes)) {
            throw new FileSystemException(file.toString(), null, "has other bytes than were written");
        }
    }

    private static void moved(Path fresh, Path file) throws IOException {
        try {
            Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE);
        } catch (AtomicMoveNotSupportedException e) {
            Files.move(fresh, file, StandardCopyOption.REPLACE_EXISTING);
        }
    }

    /** A regular file, and no link to one, with these bytes. */
    private static boolean holds(Path file, byte[] bytes) throws IOException {
        try {
            return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
                    && Files.size(file) == bytes.length
                    && Arrays.equals(Files.readAllBytes(file), bytes);
        } catch (NoSuchFileException e) {
            return false;
        }
    }

    /** This folder, made if it is not there. */
    private static Path closed(Path folder) throws IOException {
        Path parent = folder.toAbsolutePath().getParent();
        if (parent != null && !Files.isDirectory(parent)) {
            Files.createDirectories(parent);
        }
        try {
            Files.createDirectory(folder, forOwner());
        } catch (FileAlreadyExistsException e) {
            check(folder);
        }
        return folder;
    }

    private static void check(Path folder) throws IOException {
        if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
            throw new FileSystemException(folder.toString(), null, "is not a folder");
        }
        if (!Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS).equals(OWNER_ONLY)) {
            throw new FileSystemException(folder.toString(), null, "is open to other users: chmod 700, or remove it");
        }
        // A file of our own has our owner; where the folder is somebody else's, it cannot even be made.
        Path own = Files.createTempFile(folder, "own", null, forOwner());
        try {
            Object owner = Files.getOwner(own, LinkOption.NOFOLLOW_LINKS);
            if (!owner.equals(Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS))) {
                throw new FileSystemException(folder.toString(), null, "belongs to another user");
            }
        } finally {
            Files.delete(own);
        }
    }

    private static FileAttribute<Set<PosixFilePermission>> forOwner() {
        return PosixFilePermissions.asFileAttribute(OWNER_ONLY);
    }

    private static String digest(SortedMap<String, byte[]> files) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            files.values().forEach(digest::update);
            return String.format("%016x", ByteBuffer.wrap(digest.digest()).getLong());
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every Java platform has SHA-256", e);
        }
    }
}
