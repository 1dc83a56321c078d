package io.lucce.micro;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.CompilerControl;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;

/** Allocations in a loop: each is an event. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Allocation {
    private static final int TIMES = 1_000;

    private int length = 8;

    @Benchmark
    @OperationsPerInvocation(TIMES)
    public void objects(Blackhole blackhole) {
        for (int i = 0; i < TIMES; i++) {
            blackhole.consume(new Object());
        }
    }

    @Benchmark
    @OperationsPerInvocation(TIMES)
    public void arrays(Blackhole blackhole) {
        for (int i = 0; i < TIMES; i++) {
            blackhole.consume(new int[length]);
        }
    }

    /** The compiler may do without these objects: does it still? */
    @Benchmark
    @OperationsPerInvocation(TIMES)
    public int neverEscaping() {
        int sum = 0;
        for (int i = 0; i < TIMES; i++) {
            sum += new Pair(i, length).sum();
        }
        return sum;
    }

    /** The context of an event is computed anew: its frame's caller has just changed its site. */
    @Benchmark
    @OperationsPerInvocation(TIMES)
    public void fromTwoSites(Blackhole blackhole) {
        for (int i = 0; i < TIMES / 2; i++) {
            blackhole.consume(allocate());
            blackhole.consume(allocate());
        }
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private static Object allocate() {
        return new Object();
    }

    private record Pair(int first, int second) {
        int sum() {
            return Math.addExact(first, second);
        }
    }
}
