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
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.infra.Blackhole;

/**
 * A monitor that threads hold for a while, one after the other: with {@code events=lock} each of them that waits is
 * an event. What an event costs is the difference between two columns.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class ContendedLock {
    /** So much that whoever comes next has to wait. */
    @Param({"2000", "20000"})
    public int held;

    private final Object lock = new Object();

    @Benchmark
    @Threads(2)
    public void block() {
        synchronized (lock) {
            Blackhole.consumeCPU(held);
        }
    }

    @Benchmark
    @Threads(2)
    public void method() {
        entered();
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private synchronized void entered() {
        Blackhole.consumeCPU(held);
    }
}
