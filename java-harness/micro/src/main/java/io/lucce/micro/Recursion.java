package io.lucce.micro;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;

/** Methods that call themselves: in a tree of calls, and to build a tree of objects. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Recursion {
    private static final int N = 20;
    /** Calls that {@code fibonacci(20)} makes. */
    private static final int CALLS = 21_891;
    /** Nodes of a tree of depth 12. */
    private static final int NODES = 8_191;

    private int n = N;
    private int depth = 12;

    record Node(Node left, Node right) {}

    @Benchmark
    @OperationsPerInvocation(CALLS)
    public int fibonacci() {
        return fibonacci(n);
    }

    private static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    @Benchmark
    @OperationsPerInvocation(NODES)
    public void tree(Blackhole blackhole) {
        blackhole.consume(tree(depth));
    }

    private static Node tree(int depth) {
        return depth == 0 ? new Node(null, null) : new Node(tree(depth - 1), tree(depth - 1));
    }
}
