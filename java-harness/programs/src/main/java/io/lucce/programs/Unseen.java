package io.lucce.programs;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.util.Map;
import java.util.TreeMap;

/**
 * Makes objects without any bytecode that makes them, and knows how many at which line: prints
 * {@code class|line|count|bytes} at its end; bytes 0 are not known.
 */
public final class Unseen implements Cloneable {
    private static final int ROUNDS = 500;
    private static final Map<String, Integer> expected = new TreeMap<>();

    private long[] some;

    public Unseen() {}

    private static void note(Class<?> type, int line) {
        expected.merge(type.getTypeName() + "|" + line, 1, Integer::sum);
    }

    private static int line() {
        return new Throwable().getStackTrace()[1].getLineNumber();
    }

    @Override
    protected Object clone() {
        try {
            note(Unseen.class, line() + 1);
            return super.clone();
        } catch (CloneNotSupportedException e) {
            throw new AssertionError(e);
        }
    }

    private static Object cloned(int depth) {
        if (depth > 0) {
            return cloned(depth - 1);
        }
        return new Unseen().clone();
    }

    private static Object reflected() {
        note(Unseen[].class, line() + 1);
        return Array.newInstance(Unseen.class, 7);
    }

    private static Object dimensions() {
        note(Unseen[][].class, line() + 1);
        return Array.newInstance(Unseen.class, 2, 0);
    }

    private static Object constructed(Constructor<Unseen> constructor) throws ReflectiveOperationException {
        return constructor.newInstance();
    }

    /** The JDK's own code for handles makes the object. */
    private static Object handled(MethodHandle constructor) throws Throwable {
        note(Unseen.class, line() + 1);
        return (Unseen) constructor.invokeExact();
    }

    private static Object natively() {
        note(byte[].class, line() + 1);
        return NativeLibrary.allocate(99);
    }

    public static void main(String[] args) throws Throwable {
        NativeLibrary.load();
        Constructor<Unseen> constructor = Unseen.class.getConstructor();
        MethodHandle handle = MethodHandles.lookup().findConstructor(Unseen.class, MethodType.methodType(void.class));
        Object last = null;
        for (int round = 0; round < ROUNDS; round++) {
            last = cloned(round % 30);
            last = reflected();
            last = dimensions();
            last = constructed(constructor);
            last = handled(handle);
            last = natively();
        }
        Check.equal(byte[].class, last.getClass());
        expected.forEach((key, count) -> System.out.println(key + "|" + count + "|0"));
    }
}
