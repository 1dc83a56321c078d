/** Loads these classes of the JDK. */
public final class LoadNamed {
    public static void main(String[] args) throws ClassNotFoundException {
        for (String name : args) {
            Class.forName(name, false, null);
        }
    }
}
