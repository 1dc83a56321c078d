/** Two threads throw exceptions through several frames and catch them until the JVM is ended from outside. */
public final class Throwing {
    static volatile Object kept;

    public static void main(String[] args) {
        Thread other = new Thread(() -> work(false));
        other.start();
        work(true);
    }

    static void work(boolean says) {
        for (long n = 1; ; n++) {
            caught(n);
            if (says && n % 2_000 == 0) System.out.println("working " + n);
        }
    }

    static void caught(long n) {
        try {
            through(n, (int) (n & 7));
        } catch (IllegalStateException e) {
            kept = new Object();
            made();
        }
    }

    static void through(long n, int frames) {
        try {
            if (frames > 0) through(n, frames - 1);
            throw new IllegalStateException();
        } finally {
            kept = new int[1];
        }
    }

    static void made() {
        kept = new long[2];
    }
}
