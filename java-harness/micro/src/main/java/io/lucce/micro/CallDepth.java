package io.lucce.micro;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.CompilerControl;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;

/** Calls and allocations with a stack of some depth below them: the depth must not matter. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class CallDepth {
    /** So many that the way down and up again does not count. */
    private static final int OPERATIONS = 100_000;

    @Param({"10", "100", "1000"})
    public int depth;

    private int value = 1;

    @Benchmark
    @OperationsPerInvocation(OPERATIONS)
    public int calls() {
        return callsBelow(depth);
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private int callsBelow(int frames) {
        if (frames > 0) {
            return callsBelow(frames - 1) + 1;
        }
        int sum = 0;
        for (int i = 0; i < OPERATIONS; i++) {
            sum += outer(i);
        }
        return sum;
    }

    @Benchmark
    @OperationsPerInvocation(OPERATIONS)
    public int allocations(Blackhole blackhole) {
        return allocationsBelow(depth, blackhole);
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private int allocationsBelow(int frames, Blackhole blackhole) {
        if (frames > 0) {
            return allocationsBelow(frames - 1, blackhole) + 1;
        }
        for (int i = 0; i < OPERATIONS; i++) {
            blackhole.consume(allocate());
        }
        return 0;
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private Object allocate() {
        return new Object();
    }

    /** Calls something, so it is no leaf. */
    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private int outer(int i) {
        return inner(i) + 1;
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private int inner(int i) {
        return i ^ value;
    }
}
