import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Loads and links, but does not initialise, every class of the run-time image. */
public final class LoadAll {
    public static void main(String[] args) throws Exception {
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules");
        int linked = 0;
        int unlinked = 0;
        int refused = 0;
        for (Path file : classes(modules)) {
            String name = file.subpath(2, file.getNameCount()).toString();
            name = name.substring(0, name.length() - ".class".length()).replace('/', '.');
            try {
                // Asking for the methods links.
                Class.forName(name, false, ClassLoader.getSystemClassLoader()).getDeclaredMethods();
                linked++;
            } catch (VerifyError | ClassFormatError e) {
                System.out.println("REFUSED " + name + ": " + e);
                refused++;
            } catch (Throwable e) {
                // A class that names others which are not in this image.
                unlinked++;
            }
        }
        String counts = linked + " classes linked, " + unlinked + " name absent ones, " + refused + " refused";
        System.out.println((refused == 0 ? "OK " : "FAILED ") + counts);
        System.exit(refused == 0 ? 0 : 1);
    }

    private static List<Path> classes(Path modules) throws Exception {
        try (Stream<Path> files = Files.walk(modules)) {
            return files.filter(file -> file.toString().endsWith(".class"))
                    .filter(file -> !file.toString().endsWith("module-info.class"))
                    .collect(Collectors.toList());
        }
    }
}
