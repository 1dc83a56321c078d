package io.lucce.programs;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * Objects that live through a known number of young collections. A round creates some of each kind, and then garbage until the
 * VM's own count of young collections has grown by one.
 */
public final class Survives {
    private static final int ROUNDS = 20;
    private static final int EACH = 10;
    private static final int BYTES = 1024;
    private static volatile Object garbage;

    private Survives() {}

    private static byte[] liveFour() {
        return new byte[BYTES];
    }

    private static byte[] liveFive() {
        return new byte[BYTES];
    }

    private static byte[] keep() {
        return new byte[BYTES];
    }

    private static byte[] dropLarge() {
        return new byte[700 << 10];
    }

    private static void dropAll() {
        garbage = new byte[16 << 10];
    }

    private static long collections(GarbageCollectorMXBean young) {
        return young.getCollectionCount();
    }

    private static GarbageCollectorMXBean youngCollector() {
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            if (bean.getName().matches("Copy|PS Scavenge|G1 Young Generation|ZGC.*Cycles")) return bean;
        }
        throw new IllegalStateException("no young collector");
    }

    private static void collectOnce(GarbageCollectorMXBean young) {
        long before = collections(young);
        while (collections(young) == before) {
            for (int i = 0; i < 8; i++) dropAll();
        }
        long passed = collections(young) - before;
        if (passed != 1) System.out.println("passed " + passed);
    }

    public static void main(String[] args) {
        GarbageCollectorMXBean young = youngCollector();
        List<Object> kept = new ArrayList<>(ROUNDS * EACH);
        ArrayDeque<Object> four = new ArrayDeque<>(8 * EACH);
        ArrayDeque<Object> five = new ArrayDeque<>(8 * EACH);
        collectOnce(young);
        for (int round = 0; round < ROUNDS + 12; round++) {
            if (round >= 4) for (int i = 0; i < EACH; i++) four.poll();
            if (round >= 5) for (int i = 0; i < EACH; i++) five.poll();
            for (int i = 0; i < EACH && round < ROUNDS; i++) {
                four.add(liveFour());
                five.add(liveFive());
                kept.add(keep());
            }
            if (round < ROUNDS) garbage = dropLarge();
            collectOnce(young);
        }
        System.out.println("each " + ROUNDS * EACH + " kept " + kept.size());
    }
}
