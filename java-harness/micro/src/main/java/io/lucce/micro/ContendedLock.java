package io.lucce.micro;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.CompilerControl;
import org.openjdk.jmh.annotations.Group;
import org.openjdk.jmh.annotations.GroupThreads;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Control;
import org.openjdk.jmh.infra.ThreadParams;

/**
 * A monitor that two threads hand to each other: the thread that holds it lets go when the other one waits for it. So each
 * time that it is entered is one event with {@code events=lock}; what is told is the time from one to the next.
 */
@State(Scope.Group)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class ContendedLock {
    /** Both enter once in the time that one of them takes. */
    private static final int ENTERED = 2;
    /** A processor that both threads share is left to the other one. */
    private static final int LOOKS = 1000;

    private final Object lock = new Object();
    private volatile Pair last;

    /** A thread, and the one that it takes turns with. */
    @State(Scope.Thread)
    public static class Pair {
        private static final Pair[] BOTH = new Pair[ENTERED];

        private Thread thread;
        private int index;

        @Setup(Level.Iteration)
        public void begin(ThreadParams threads) {
            thread = Thread.currentThread();
            index = threads.getSubgroupThreadIndex();
            BOTH[index] = this;
        }

        /** It may not have begun yet. */
        private boolean isOtherBlocked() {
            Pair other = BOTH[1 - index];
            return other != null && other.thread.getState() == Thread.State.BLOCKED;
        }
    }

    @Benchmark
    @Group("block")
    @GroupThreads(2)
    @OperationsPerInvocation(ENTERED)
    public void block(Pair pair, Control control) {
        letTheOtherEnter(pair, control);
        synchronized (lock) {
            hold(pair, control);
        }
    }

    @Benchmark
    @Group("method")
    @GroupThreads(2)
    @OperationsPerInvocation(ENTERED)
    public void method(Pair pair, Control control) {
        letTheOtherEnter(pair, control);
        entered(pair, control);
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private synchronized void entered(Pair pair, Control control) {
        hold(pair, control);
    }

    private void letTheOtherEnter(Pair pair, Control control) {
        for (int looks = 1; last == pair && !control.stopMeasurement; looks++) {
            pause(looks);
        }
    }

    private void hold(Pair pair, Control control) {
        last = pair;
        for (int looks = 1; !pair.isOtherBlocked() && !control.stopMeasurement; looks++) {
            pause(looks);
        }
    }

    private static void pause(int looks) {
        if (looks % LOOKS == 0) {
            Thread.yield();
        } else {
            Thread.onSpinWait();
        }
    }
}
