/** Loads a class 200 times, each time through a new loader: the VM calls loadClass in the middle of JDK code. */
public final class FreshLoaders {
    static Object kept;

    public static void main(String[] args) throws ClassNotFoundException {
        for (int i = 0; i < 200; i++) {
            kept = Class.forName("java.lang.Integer", false, new Empty());
        }
    }

    /** Asks its parent. */
    static final class Empty extends ClassLoader {}
}
