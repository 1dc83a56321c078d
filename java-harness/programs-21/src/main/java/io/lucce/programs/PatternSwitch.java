package io.lucce.programs;

import io.lucce.CallContext;
import java.util.List;

/** Pattern matching for switch and records: invokedynamic, and accessors called by patterns. */
public final class PatternSwitch {
    static Object kept;

    public static void main(String[] args) throws Exception {
        body();
        Fresh.run(PatternSwitch.class, "body", Repeats.of(10));
        for (int i = 0; i < Repeats.of(50); i++) {
            body();
        }
        Check.done();
    }

    sealed interface Shape permits Circle, Rectangle, Group {}

    record Circle(int radius) implements Shape {
        @Override
        public int radius() {
            kept = new byte[300];
            Check.that(CallContext.current(), new Throwable());
            if (radius < 0) {
                throw new IllegalStateException("negative");
            }
            return radius;
        }
    }

    record Rectangle(int width, int height) implements Shape {}

    record Group(Shape left, Shape right) implements Shape {
        Group {
            Check.that(CallContext.current(), new Throwable());
        }

        @Override
        public Shape left() {
            Check.that(CallContext.current(), new Throwable());
            return left;
        }
    }

    enum Size {
        SMALL,
        LARGE;

        static {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static boolean large(int n) {
        Check.that(CallContext.current(), new Throwable());
        return n > 10;
    }

    static int area(Shape shape) {
        return switch (shape) {
            case Circle(int r) when large(r) -> {
                Check.that(CallContext.current(), new Throwable());
                yield 1000;
            }
            case Circle(var r) -> 3 * r * r;
            case Rectangle(int w, int h) -> {
                kept = new byte[w];
                Check.that(CallContext.current(), new Throwable());
                yield w * h;
            }
            case Group(Circle(int r), Rectangle(int w, int h)) -> {
                Check.that(CallContext.current(), new Throwable());
                yield r + w + h;
            }
            case Group(Shape left, Shape right) -> area(left) + area(right);
        };
    }

    static String describe(Object object) {
        return switch (object) {
            case null -> "null";
            case Integer n when n > 5 -> "big" + n;
            case Integer n -> "int" + n;
            case String s -> s + new StringBuilder().append(s.length());
            case Size size -> size.name();
            case int[] array -> "array" + array.length;
            case List<?> list -> list.isEmpty() ? "empty" : describe(list.get(0));
            default -> {
                Check.that(CallContext.current(), new Throwable());
                yield "other";
            }
        };
    }

    static int size(Size size) {
        return switch (size) {
            case SMALL -> new byte[1].length;
            case LARGE -> {
                Check.that(CallContext.current(), new Throwable());
                yield 2;
            }
        };
    }

    static void body() {
        Shape group = new Group(new Group(new Circle(1), new Rectangle(2, 3)), new Group(new Rectangle(1, 1), new Circle(20)));
        Check.equal(6 + 1 + 1000, area(group));
        Check.that(CallContext.current(), new Throwable());
        Check.equal("int3", describe(List.of(3)));
        Check.equal("big7abc3LARGEarray2nullother", describe(7) + describe("abc") + describe(Size.LARGE)
                + describe(new int[2]) + describe(null) + describe(1.0));
        Check.equal(3, size(Size.SMALL) + size(Size.LARGE));
        Check.that(CallContext.current(), new Throwable());
        try {
            area(new Circle(-1));
            Check.wrong("must throw");
        } catch (MatchException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        Object object = new Group(new Circle(4), new Circle(5));
        if (object instanceof Group(Circle(int a), Circle(int b)) && large(a + b * 2)) {
            Check.that(CallContext.current(), new Throwable());
            Check.equal(9, a + b);
        }
        Check.that(CallContext.current(), new Throwable());
    }
}
