/** Allocates until it is killed, or so many objects, and says how much it has made. */
public final class Forever {
    static Object kept;

    public static void main(String[] args) throws InterruptedException {
        for (long made = 1, most = args.length == 0 ? Long.MAX_VALUE : Long.parseLong(args[0]); made <= most; made++) {
            work();
            if (made % 100_000 == 0) {
                System.out.println("working " + made);
                // What waits for it needs the processors.
                Thread.sleep(5);
            }
        }
    }

    static void work() {
        kept = new Forever();
    }
}
