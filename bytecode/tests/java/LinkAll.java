import java.nio.file.Files;
import java.nio.file.Path;

/** Links, and so verifies, the classes that a file names. */
class LinkAll {
    public static void main(String[] args) throws Exception {
        int linked = 0;
        int failed = 0;
        for (String name : Files.readAllLines(Path.of(args[0]))) {
            try {
                Class.forName(name, false, ClassLoader.getSystemClassLoader()).getDeclaredMethods();
                linked++;
            } catch (NoClassDefFoundError e) {
                // Optional parts of the platform that this JDK does not have.
                System.out.println("missing " + e.getMessage() + " for " + name);
            } catch (Throwable e) {
                failed++;
                System.out.println("FAILED " + name + ": " + e);
            }
        }
        System.out.println("linked=" + linked + " failed=" + failed);
    }
}
