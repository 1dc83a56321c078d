/** Allocates and contends for a lock until it is ended, and keeps nothing. */
public final class Busy {
    private static Object made;

    private static void work(int turn) throws InterruptedException {
        made = new long[turn & 31];
        if ((turn & 255) != 0) return;
        synchronized (Busy.class) {
            made = "turn " + turn;
            Thread.sleep(1);
        }
    }

    public static void main(String[] args) {
        Runnable forever = () -> {
            try {
                for (int turn = 0; ; turn++) work(turn);
            } catch (InterruptedException e) {
                made = e;
            }
        };
        new Thread(forever, "one").start();
        new Thread(forever, "other").start();
    }
}
