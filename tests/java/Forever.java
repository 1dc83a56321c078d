/** Allocates until it is killed, and says how much it has made. */
public final class Forever {
    static Object kept;

    public static void main(String[] args) {
        for (long made = 1; ; made++) {
            work();
            if (made % 100_000 == 0) {
                System.out.println("working " + made);
            }
        }
    }

    static void work() {
        kept = new Forever();
    }
}
