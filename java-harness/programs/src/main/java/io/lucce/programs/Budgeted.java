package io.lucce.programs;

/**
 * Two threads allocate on many lines, now fast, now slowly, and say how much: {@code class|line|objects|bytes}. The argument is the
 * number of repetitions, of some 0.3 s each.
 */
public final class Budgeted {
    private static final int LINES = 22;
    /** Work between two objects, and number of batches of 64 objects, by phase. */
    private static final int[][] PHASES = {{0, 20_000}, {400, 4_000}, {6_000, 300}};
    private static Object sink;
    private static double worked;

    private final int[] lines = new int[LINES];
    private final long[] counts = new long[LINES];
    private final long[] sizes = {24, 40, 56, 88, 120, 152, 200, 248, 312, 400, 504, 632, 792, 1000, 1256, 1576, 2000, 2504, 3144, 4000, 5000, 6400};
    private int random;

    private Budgeted(int seed) {
        random = seed;
    }

    public static void main(String[] args) throws Exception {
        int repetitions = Integer.parseInt(args[0]);
        Budgeted[] all = {new Budgeted(1), new Budgeted(2)};
        Thread[] threads = new Thread[all.length];
        for (int i = 0; i < all.length; i++) {
            Budgeted own = all[i];
            threads[i] = new Thread(() -> own.run(repetitions));
            threads[i].start();
        }
        System.out.println("started");
        for (Thread thread : threads) {
            thread.join();
        }
        for (int i = 0; i < LINES; i++) {
            long count = all[0].counts[i] + all[1].counts[i];
            long each = (all[0].sizes[i] + 16 + 7) / 8 * 8;
            int line = Math.max(all[0].lines[i], all[1].lines[i]);
            System.out.println("byte[]|" + line + "|" + count + "|" + count * each);
        }
    }

    private void run(int repetitions) {
        for (int i = 0; i < repetitions; i++) {
            for (int[] phase : PHASES) {
                for (int batch = 0; batch < phase[1]; batch++) {
                    makeBatch(phase[0]);
                }
            }
        }
    }

    private void makeBatch(int work) {
        for (int i = 0; i < 64; i++) {
            allocate(choose());
            worked += work(work);
        }
    }

    /** Small objects are more frequent. */
    private int choose() {
        random = random * 1103515245 + 12345;
        int high = random >>> 8 & 0xffff;
        return (int) ((long) high * high * LINES >>> 32);
    }

    private static double work(int rounds) {
        double x = 1;
        for (int i = 0; i < rounds; i++) {
            x = x * 1.0000001 + i;
        }
        return x;
    }

    private static int here() {
        return new Throwable().getStackTrace()[1].getLineNumber();
    }

    private void allocate(int line) {
        switch (line) {
            case 0: lines[0] = lines[0] > 0 ? lines[0] : here(); counts[0]++; sink = new byte[24]; break;
            case 1: lines[1] = lines[1] > 0 ? lines[1] : here(); counts[1]++; sink = new byte[40]; break;
            case 2: lines[2] = lines[2] > 0 ? lines[2] : here(); counts[2]++; sink = new byte[56]; break;
            case 3: lines[3] = lines[3] > 0 ? lines[3] : here(); counts[3]++; sink = new byte[88]; break;
            case 4: lines[4] = lines[4] > 0 ? lines[4] : here(); counts[4]++; sink = new byte[120]; break;
            case 5: lines[5] = lines[5] > 0 ? lines[5] : here(); counts[5]++; sink = new byte[152]; break;
            case 6: lines[6] = lines[6] > 0 ? lines[6] : here(); counts[6]++; sink = new byte[200]; break;
            case 7: lines[7] = lines[7] > 0 ? lines[7] : here(); counts[7]++; sink = new byte[248]; break;
            case 8: lines[8] = lines[8] > 0 ? lines[8] : here(); counts[8]++; sink = new byte[312]; break;
            case 9: lines[9] = lines[9] > 0 ? lines[9] : here(); counts[9]++; sink = new byte[400]; break;
            case 10: lines[10] = lines[10] > 0 ? lines[10] : here(); counts[10]++; sink = new byte[504]; break;
            case 11: lines[11] = lines[11] > 0 ? lines[11] : here(); counts[11]++; sink = new byte[632]; break;
            case 12: lines[12] = lines[12] > 0 ? lines[12] : here(); counts[12]++; sink = new byte[792]; break;
            case 13: lines[13] = lines[13] > 0 ? lines[13] : here(); counts[13]++; sink = new byte[1000]; break;
            case 14: lines[14] = lines[14] > 0 ? lines[14] : here(); counts[14]++; sink = new byte[1256]; break;
            case 15: lines[15] = lines[15] > 0 ? lines[15] : here(); counts[15]++; sink = new byte[1576]; break;
            case 16: lines[16] = lines[16] > 0 ? lines[16] : here(); counts[16]++; sink = new byte[2000]; break;
            case 17: lines[17] = lines[17] > 0 ? lines[17] : here(); counts[17]++; sink = new byte[2504]; break;
            case 18: lines[18] = lines[18] > 0 ? lines[18] : here(); counts[18]++; sink = new byte[3144]; break;
            case 19: lines[19] = lines[19] > 0 ? lines[19] : here(); counts[19]++; sink = new byte[4000]; break;
            case 20: lines[20] = lines[20] > 0 ? lines[20] : here(); counts[20]++; sink = new byte[5000]; break;
            case 21: lines[21] = lines[21] > 0 ? lines[21] : here(); counts[21]++; sink = new byte[6400]; break;
            default: throw new AssertionError(line);
        }
    }
}
