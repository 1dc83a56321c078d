package io.lucce.programs;

/** Runs programs of this package in one JVM, one after the other: {@code InTurn NAME…}. */
public final class InTurn {
    private InTurn() {}

    public static void main(String[] names) throws Throwable {
        for (String name : names) {
            Class<?> program = Class.forName(InTurn.class.getPackageName() + "." + name);
            program.getMethod("main", String[].class).invoke(null, (Object) new String[0]);
        }
    }
}
