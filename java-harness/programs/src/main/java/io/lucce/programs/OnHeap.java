package io.lucce.programs;

import java.lang.management.ManagementFactory;

/** Creates objects of which the compiler removes some. Prints what the VM really allocated meanwhile, by its own count. */
public final class OnHeap {
    private static final int TIMES = 2_000_000;
    private static final int STEP = 10;
    private static volatile Object kept;

    private OnHeap() {}

    private static final class Point {
        final double x;
        final double y;

        Point(double x, double y) {
            this.x = x;
            this.y = y;
        }

        double distance(Point other) {
            return (x - other.x) * (x - other.x) + (y - other.y) * (y - other.y);
        }
    }

    private static double compare(int i) {
        return new Point(i, i + 1).distance(new Point(i + 2, i));
    }

    private static void keep(int i) {
        if (i % STEP == 0) kept = new byte[64];
    }

    private static double work(int times) {
        double sum = 0;
        for (int i = 0; i < times; i++) {
            sum += compare(i);
            keep(i);
        }
        return sum;
    }

    private static double warmUp() {
        double sum = 0;
        for (int i = 0; i < 100; i++) {
            sum += work(20_000);
        }
        return sum;
    }

    private static double measured() {
        double sum = 0;
        for (int i = 0; i < TIMES / 20_000; i++) {
            sum += work(20_000);
        }
        return sum;
    }

    public static void main(String[] args) throws Exception {
        com.sun.management.ThreadMXBean threads =
                (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long thread = Thread.currentThread().getId();
        double sum = warmUp();
        long before = threads.getThreadAllocatedBytes(thread);
        sum += measured();
        long bytes = threads.getThreadAllocatedBytes(thread) - before;
        System.out.println("kept " + TIMES / STEP + " allocated " + bytes + (sum == 0 ? "!" : ""));
    }
}
