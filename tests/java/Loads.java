import java.nio.file.Path;

/** Loads the libraries that it is told to. */
public final class Loads {
    public static void main(String[] args) {
        for (String library : args) {
            System.load(Path.of(library).toAbsolutePath().toString());
            System.out.println("loaded " + library);
        }
    }
}
