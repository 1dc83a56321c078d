package io.lucce.programs;

/**
 * Two threads do little but allocate, so that counting is dear, and say how much: {@code class|line|objects|bytes}. At last each
 * allocates {@link #RARE} objects on each line by a rare call path. The argument is the number of steps of a thread.
 */
public final class Thinned {
    /** Objects on each line by the rare path, of all threads. */
    private static final int RARE = 50;
    private static final int LINES = 5;

    private final int[] lines = new int[LINES];
    private final long[] counts = new long[LINES];
    private final long[] bytes = new long[LINES];
    private Object sink;
    private int random;

    private Thinned(int seed) {
        random = seed;
    }

    private static final class Pair {
        private final long a, b;

        private Pair(long a) {
            this.a = a;
            b = a;
        }
    }

    public static void main(String[] args) throws Exception {
        int steps = Integer.parseInt(args[0]);
        Thinned[] all = {new Thinned(1), new Thinned(2)};
        Thread[] threads = new Thread[all.length];
        for (int i = 0; i < all.length; i++) {
            Thinned own = all[i];
            threads[i] = new Thread(() -> own.run(steps));
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        String[] types = {Pair.class.getName(), "byte[]", "byte[]", "int[]", "short[]"};
        for (int i = 0; i < LINES; i++) {
            long count = all[0].counts[i] + all[1].counts[i];
            System.out.println(types[i] + "|" + all[0].lines[i] + "|" + count + "|" + (all[0].bytes[i] + all[1].bytes[i]));
        }
    }

    private void run(int steps) {
        for (int i = 0; i < steps; i++) {
            int choice = choose();
            if (choice < 12) {
                allocate(choice >> 2);
            } else if (choice < 15) {
                fill();
            } else if (random >>> 20 == 0) {
                allocate(3);
            }
        }
        rare();
    }

    /** From 0 to 15. */
    private int choose() {
        random = random * 1103515245 + 12345;
        return random >>> 16 & 15;
    }

    /** A thread takes half of the rare objects. */
    private void rare() {
        for (int i = 0; i < RARE / 2; i++) {
            for (int line = 0; line < LINES - 1; line++) {
                allocate(line);
            }
        }
    }

    private int here(int line) {
        return lines[line] > 0 ? lines[line] : new Throwable().getStackTrace()[1].getLineNumber();
    }

    private void count(int line, long size) {
        counts[line]++;
        bytes[line] += size + 7 & -8;
    }

    private void allocate(int line) {
        int length = random >>> 24;
        switch (line) {
            case 0: lines[0] = here(0); count(0, 32); sink = new Pair(random); break;
            case 1: lines[1] = here(1); count(1, 40); sink = new byte[24]; break;
            case 2: lines[2] = here(2); count(2, 16 + length); sink = new byte[length]; break;
            case 3: lines[3] = here(3); count(3, 16 + 40_000); sink = new int[10_000]; break;
            default: throw new AssertionError(line);
        }
    }

    /** A short loop, whose counter a frame keeps if all of its objects count. */
    private void fill() {
        for (int i = 0; i < 3; i++) {
            lines[4] = here(4); count(4, 24); sink = new short[3];
        }
    }
}
