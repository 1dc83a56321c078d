package io.lucce.micro;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** One call site, one to eight callees. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Polymorphism {
    private static final int SHAPES = 1024;

    @Param({"1", "2", "8"})
    public int callees;

    private Shape[] shapes;

    @Setup
    public void shapes() {
        shapes = new Shape[SHAPES];
        for (int i = 0; i < SHAPES; i++) {
            // Not in turns: no branch predictor is to learn it.
            shapes[i] = shape((i * 0x9e3779b1 >>> 16) % callees, i);
        }
    }

    private static Shape shape(int kind, int i) {
        return switch (kind) {
            case 0 -> new Square(i);
            case 1 -> new Circle(i);
            case 2 -> new Line(i);
            case 3 -> new Cube(i);
            case 4 -> new Ring(i);
            case 5 -> new Strip(i);
            case 6 -> new Frame(i);
            default -> new Grid(i);
        };
    }

    @Benchmark
    @OperationsPerInvocation(SHAPES)
    public int virtualCalls() {
        int sum = 0;
        for (Shape shape : shapes) {
            sum += shape.area();
        }
        return sum;
    }

    /** Each area calls a method in turn: none is a leaf. */
    abstract static class Shape {
        final int side;

        Shape(int side) {
            this.side = side;
        }

        abstract int area();

        int times(int factor) {
            return side * factor;
        }
    }

    static final class Square extends Shape {
        Square(int side) {
            super(side);
        }

        @Override
        int area() {
            return times(side);
        }
    }

    static final class Circle extends Shape {
        Circle(int side) {
            super(side);
        }

        @Override
        int area() {
            return times(3) * side;
        }
    }

    static final class Line extends Shape {
        Line(int side) {
            super(side);
        }

        @Override
        int area() {
            return times(1);
        }
    }

    static final class Cube extends Shape {
        Cube(int side) {
            super(side);
        }

        @Override
        int area() {
            return times(6) * side;
        }
    }

    static final class Ring extends Shape {
        Ring(int side) {
            super(side);
        }

        @Override
        int area() {
            return times(2) + side;
        }
    }

    static final class Strip extends Shape {
        Strip(int side) {
            super(side);
        }

        @Override
        int area() {
            return times(4) - side;
        }
    }

    static final class Frame extends Shape {
        Frame(int side) {
            super(side);
        }

        @Override
        int area() {
            return times(4) - 4;
        }
    }

    static final class Grid extends Shape {
        Grid(int side) {
            super(side);
        }

        @Override
        int area() {
            return times(9) ^ side;
        }
    }
}
