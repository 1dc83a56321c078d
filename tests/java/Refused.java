/** Fills a small log, and has the VM throw exceptions for which that has no room. */
public final class Refused {
    private static Object sink;

    public static void main(String[] args) {
        for (int n = 0; n < 100; n++) {
            sink = String.format("%d", n);
        }
        for (int n = 0; n < 20; n++) {
            try {
                ((Object) null).hashCode();
            } catch (NullPointerException e) {
                sink = e;
            }
        }
        System.out.println("OK");
    }
}
