package io.lucce.micro;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.CompilerControl;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** An exception that ends some frames, and a handler that never catches anything. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class ExceptionUse {
    @Param({"1", "20"})
    public int frames;

    private final Signal signal = new Signal();
    private int value = 3;

    /** Made once, without a stack trace: what is measured is the way up. */
    static final class Signal extends RuntimeException {
        Signal() {
            super(null, null, false, false);
        }
    }

    @Benchmark
    public int thrown() {
        try {
            return below(frames, true);
        } catch (Signal caught) {
            return frames;
        }
    }

    @Benchmark
    public int notThrown() {
        try {
            return below(frames, false);
        } catch (Signal caught) {
            return frames;
        }
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private int below(int left, boolean throwing) {
        if (left > 0) {
            return below(left - 1, throwing) + 1;
        }
        if (throwing) {
            throw signal;
        }
        return value;
    }
}
