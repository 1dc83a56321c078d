import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Writes every class of the run-time image in this folder to standard output: path, length, bytes. */
class DumpClasses {
    public static void main(String[] args) throws Exception {
        var image = FileSystems.newFileSystem(URI.create("jrt:/"), Map.of("java.home", args[0]));
        var root = image.getPath("/modules");
        try (var out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
                var paths = Files.walk(root)) {
            for (Path path : (Iterable<Path>) paths.sorted()::iterator) {
                if (path.toString().endsWith(".class")) {
                    byte[] bytes = Files.readAllBytes(path);
                    out.writeUTF(root.relativize(path).toString());
                    out.writeInt(bytes.length);
                    out.write(bytes);
                }
            }
        }
    }
}
