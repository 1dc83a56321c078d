package io.lucce.micro;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.CompilerControl;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.Blackhole;

/**
 * A JVM to which the agent was attached and from which it was detached again, before anything is measured: where the
 * property {@code lucce.agent} names {@code liblucce.so}, beside which the command lies. Without it, a JVM like any other.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Detached {
    private static final int OPERATIONS = 100_000;

    private int value = 1;

    @Setup(Level.Trial)
    public void attachAndDetach(Blackhole blackhole) throws IOException, InterruptedException {
        String agent = System.getProperty("lucce.agent");
        if (agent == null) {
            return;
        }
        Path log = Files.createTempFile("lucce", ".lucce");
        String pid = String.valueOf(ProcessHandle.current().pid());
        String command = Path.of(agent).resolveSibling("lucce").toString();
        run(command, "attach", pid, "--agent", agent, "--out", log.toString(), "--opt", "alloc=64k");
        allocations(blackhole);
        run(command, "ctl", pid, "detach");
        Files.delete(log);
    }

    private static void run(String... command) throws IOException, InterruptedException {
        ProcessBuilder process = new ProcessBuilder(command).redirectErrorStream(true);
        Process started = process.redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        if (started.waitFor() != 0) {
            throw new IOException(String.join(" ", command) + ": exit code " + started.exitValue());
        }
    }

    @Benchmark
    @OperationsPerInvocation(OPERATIONS)
    public void allocations(Blackhole blackhole) {
        for (int i = 0; i < OPERATIONS; i++) {
            blackhole.consume(new int[i & 7]);
        }
    }

    @Benchmark
    @OperationsPerInvocation(OPERATIONS)
    public int calls() {
        int sum = 0;
        for (int i = 0; i < OPERATIONS; i++) {
            sum += outer(i);
        }
        return sum;
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private int outer(int i) {
        return inner(i) + 1;
    }

    @CompilerControl(CompilerControl.Mode.DONT_INLINE)
    private int inner(int i) {
        return i ^ value;
    }
}
