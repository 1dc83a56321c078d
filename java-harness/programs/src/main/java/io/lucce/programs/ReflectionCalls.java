package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Reflection before and after the JVM replaces its native accessors by generated ones. */
public final class ReflectionCalls {
    static Object kept;
    static int count;

    public static void main(String[] args) throws Exception {
        invoke();
        constructors();
        exceptions();
        interfaces();
        recursive();
        callerSensitive();
        fields();
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }

    private static void plain() {
        count++;
        kept = new byte[50];
        Check.that(CallContext.current(), new Throwable());
    }

    private static int sum(int... numbers) {
        Check.that(CallContext.current(), new Throwable());
        int sum = 0;
        for (int number : numbers) {
            sum += number;
        }
        return sum;
    }

    private Object instance(Object a, long b, double c) {
        kept = new Object[] {a, b, c};
        Check.that(CallContext.current(), new Throwable());
        return kept;
    }

    static void invoke() throws Exception {
        Method plain = ReflectionCalls.class.getDeclaredMethod("plain");
        Method sum = ReflectionCalls.class.getDeclaredMethod("sum", int[].class);
        Method instance = ReflectionCalls.class.getDeclaredMethod("instance", Object.class, long.class, double.class);
        for (int i = 0; i < 60; i++) {
            plain.invoke(null);
            Check.that(CallContext.current(), new Throwable());
            Check.equal(6, sum.invoke(null, new int[] {1, 2, 3}));
            Check.that(CallContext.current(), new Throwable());
            kept = instance.invoke(new ReflectionCalls(), "a", 2L, 3.0);
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(60, count);
    }

    private static final class Made {
        Made() {
            kept = new byte[51];
            Check.that(CallContext.current(), new Throwable());
        }

        private Made(Object first, int second) {
            this();
            Check.that(CallContext.current(), new Throwable());
            if (second % 5 == 0) {
                throw new IllegalStateException("in the constructor");
            }
        }
    }

    @SuppressWarnings("deprecation")
    static void constructors() throws Exception {
        Constructor<Made> plain = Made.class.getDeclaredConstructor();
        Constructor<Made> two = Made.class.getDeclaredConstructor(Object.class, int.class);
        int thrown = 0;
        for (int i = 0; i < 60; i++) {
            kept = plain.newInstance();
            Check.that(CallContext.current(), new Throwable());
            kept = Made.class.newInstance();
            Check.that(CallContext.current(), new Throwable());
            try {
                kept = two.newInstance("x", i);
                Check.that(CallContext.current(), new Throwable());
            } catch (InvocationTargetException e) {
                thrown++;
                Check.that(CallContext.current(), new Throwable());
            }
        }
        Check.equal(12, thrown);
    }

    private static void fails(int depth) {
        if (depth == 0) {
            Check.that(CallContext.current(), new Throwable());
            throw new IllegalStateException("through reflection");
        }
        kept = new byte[depth];
        fails(depth - 1);
    }

    static void exceptions() throws Exception {
        Method fails = ReflectionCalls.class.getDeclaredMethod("fails", int.class);
        for (int i = 0; i < 60; i++) {
            try {
                fails.invoke(null, i % 6);
                Check.wrong("must throw");
            } catch (InvocationTargetException e) {
                kept = new byte[52];
                Check.that(CallContext.current(), new Throwable());
                Check.equal("through reflection", e.getCause().getMessage());
            }
            try {
                fails.invoke(null, "no number");
                Check.wrong("must throw");
            } catch (IllegalArgumentException e) {
                Check.that(CallContext.current(), new Throwable());
            }
            kept = new byte[53];
        }
    }

    interface Shape {
        int area();

        default int twice() {
            Check.that(CallContext.current(), new Throwable());
            return 2 * area();
        }

        static int none() {
            Check.that(CallContext.current(), new Throwable());
            return 0;
        }
    }

    static final class Square implements Shape {
        private final int side;

        Square(int side) {
            this.side = side;
        }

        @Override
        public int area() {
            Check.that(CallContext.current(), new Throwable());
            return side * side;
        }
    }

    static final class Line implements Shape {
        private final int length;

        Line(int length) {
            this.length = length;
        }

        @Override
        public int area() {
            Check.that(CallContext.current(), new Throwable());
            return Shape.none();
        }
    }

    static void interfaces() throws Exception {
        Method area = Shape.class.getDeclaredMethod("area");
        Method twice = Shape.class.getDeclaredMethod("twice");
        Method none = Shape.class.getDeclaredMethod("none");
        Shape[] shapes = {new Square(3), new Line(4)};
        for (int i = 0; i < 60; i++) {
            Shape shape = shapes[i % 2];
            Check.equal(i % 2 == 0 ? 9 : 0, area.invoke(shape));
            Check.equal(i % 2 == 0 ? 18 : 0, twice.invoke(shape));
            Check.equal(0, none.invoke(null));
            Check.that(CallContext.current(), new Throwable());
        }
    }

    private static int down(Method down, int depth) throws Exception {
        Check.that(CallContext.current(), new Throwable());
        int below = depth == 0 ? 0 : (Integer) down.invoke(null, down, depth - 1);
        Check.that(CallContext.current(), new Throwable());
        return below + 1;
    }

    static void recursive() throws Exception {
        Method down = ReflectionCalls.class.getDeclaredMethod("down", Method.class, int.class);
        Check.equal(41, down.invoke(null, down, 40));
        Method invoke = Method.class.getMethod("invoke", Object.class, Object[].class);
        Method plain = ReflectionCalls.class.getDeclaredMethod("plain");
        for (int i = 0; i < 30; i++) {
            invoke.invoke(plain, null, null);
            Check.that(CallContext.current(), new Throwable());
        }
    }

    /** Methods that look at their caller must see the same one. */
    static void callerSensitive() throws Exception {
        Method forName = Class.class.getMethod("forName", String.class);
        for (int i = 0; i < 30; i++) {
            Check.equal(Square.class, forName.invoke(null, Square.class.getName()));
            Check.equal(Square.class, Class.forName(Square.class.getName()));
            Check.equal(ReflectionCalls.class, java.lang.invoke.MethodHandles.lookup().lookupClass());
            Check.that(CallContext.current(), new Throwable());
        }
    }

    private static Object field = "first";

    static void fields() throws Exception {
        Field access = ReflectionCalls.class.getDeclaredField("field");
        for (int i = 0; i < 40; i++) {
            access.set(null, new byte[i]);
            Check.equal(i, Array.getLength(access.get(null)));
            kept = Array.newInstance(Square.class, 2);
            Check.that(CallContext.current(), new Throwable());
        }
    }
}
