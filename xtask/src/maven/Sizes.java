package com.acme;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** Operations that make known objects, with compressed pointers. */
@State(Scope.Thread)
public class Sizes {
    int number = 1;

    record Point(int x, int y) {}

    /** 16 bytes of header, 100 bytes, filled up to a multiple of 8. */
    @Benchmark
    public byte[] bytes() {
        return new byte[100];
    }

    /** An array of one reference (24 bytes) and one of 16 bytes (32), both made in this line. */
    @Benchmark
    public Object[] nested() {
        return new Object[] {new byte[16]};
    }

    /** 24 bytes by bytecode, and none in compiled code. */
    @Benchmark
    public int removed() {
        Point point = new Point(number, 2);
        return point.x() + point.y();
    }
}
