package io.lucce.programs;

import java.util.ArrayList;
import java.util.List;

/** Allocates and says how much: {@code class|line|objects|bytes}. What it makes escapes, so that it is there. */
public final class Sampled {
    private static final int ROUNDS = 40_000;
    private static Object sink;

    private Sampled() {}

    private static int here() {
        return new Throwable().getStackTrace()[1].getLineNumber();
    }

    public static void main(String[] args) throws Exception {
        int line = 0;
        for (int i = 0; i < ROUNDS; i++) {
            line = i > 0 ? line : here(); sink = new byte[4080];
        }
        say("byte[]", line, ROUNDS, 4096L * ROUNDS);
        for (int i = 0; i < ROUNDS; i++) {
            line = i > 0 ? line + 0 : here(); sink = new long[126];
        }
        say("long[]", line, ROUNDS, 1024L * ROUNDS);
        byte[] copied = new byte[8176];
        int[] lines = new int[1];
        List<Object> kept = new ArrayList<>();
        Thread other = new Thread(() -> {
            for (int i = 0; i < ROUNDS / 4; i++) {
                lines[0] = i > 0 ? lines[0] : here(); kept.add(copied.clone());
                if (kept.size() > 10) kept.clear();
            }
        });
        other.start();
        other.join();
        say("byte[]", lines[0], ROUNDS / 4, 8192L * ROUNDS / 4);
    }

    private static void say(String type, int line, long objects, long bytes) {
        System.out.println(type + "|" + line + "|" + objects + "|" + bytes);
    }
}
