import io.lucce.CallContext;

/** Makes objects while it starts, says that it is ready, and makes objects of the same class. */
public final class StartUp {
    static volatile Object sink;

    private StartUp() {}

    private static final class Entry {}

    private static void make(int count) {
        for (int i = 0; i < count; i++) {
            sink = new Entry();
        }
    }

    public static void main(String[] args) {
        make(1000);
        CallContext.ready();
        make(30);
        // A second call changes nothing.
        CallContext.ready();
        make(7);
    }
}
