package io.lucce.micro;

import io.lucce.CallContext;
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

/**
 * What {@link CallContext#current} costs: the difference between a benchmark and the one of its name with
 * {@code Without}, in the same column. Without the agent that is what the API costs by itself.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class ContextNumbers {
    private static final int OPERATIONS = 100_000;

    private long value = 1;

    /** Asked again and again in one frame. */
    @Benchmark
    @OperationsPerInvocation(OPERATIONS)
    public long loop() {
        long sum = 0;
        for (int i = 0; i < OPERATIONS; i++) {
            sum += CallContext.current() ^ value;
        }
        return sum;
    }

    /** The loop and the sum without a number. */
    @Benchmark
    @OperationsPerInvocation(OPERATIONS)
    public long loopWithout() {
        long sum = 0;
        for (int i = 0; i < OPERATIONS; i++) {
            sum += opaque() ^ value;
        }
        return sum;
    }

    @CompilerControl(CompilerControl.Mode.INLINE)
    private long opaque() {
        return value;
    }

    /** Asked once in frames that were entered just now. */
    @State(Scope.Thread)
    public static class Path {
        @Param({"1", "2", "8"})
        public int frames;
    }

    @Benchmark
    @OperationsPerInvocation(OPERATIONS)
    public long freshPath(Path path) {
        long sum = 0;
        for (int i = 0; i < OPERATIONS; i++) {
            sum += down(path.frames);
        }
        return sum;
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private long down(int frames) {
        return frames == 1 ? CallContext.current() : down(frames - 1) + 1;
    }

    @Benchmark
    @OperationsPerInvocation(OPERATIONS)
    public long freshPathWithout(Path path) {
        long sum = 0;
        for (int i = 0; i < OPERATIONS; i++) {
            sum += downWithout(path.frames);
        }
        return sum;
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private long downWithout(int frames) {
        return frames == 1 ? leaf() : downWithout(frames - 1) + 1;
    }

    /** Calls something, so that its caller is no leaf. */
    @CompilerControl(CompilerControl.Mode.INLINE)
    private long leaf() {
        return value;
    }

    /** An event of the program's own. */
    @Benchmark
    @OperationsPerInvocation(OPERATIONS)
    public long events() {
        for (int i = 0; i < OPERATIONS; i++) {
            CallContext.event("micro", i);
        }
        return value;
    }
}
