package io.lucce.dacapo;

import com.sun.management.OperatingSystemMXBean;
import java.io.PrintStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import org.dacapo.harness.Callback;
import org.dacapo.harness.CommandLineArgs;

/**
 * Prints the times of each iteration of a DaCapo benchmark as {@code cargo xtask bench} reads them.
 * Compiled against the suite's jar when that is known: {@code -c io.lucce.dacapo.IterationTimes}.
 *
 * <p>Releases differ in how they end an iteration: {@code stop()} in 9.12, {@code stop(long)}, with the
 * duration in milliseconds, later on. Only one of the two overrides something.
 */
public final class IterationTimes extends Callback {
    private static final MethodType STOP = MethodType.methodType(void.class);
    private static final MethodType STOP_AFTER = MethodType.methodType(void.class, long.class);

    private final OperatingSystemMXBean system =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    /** The harness redirects {@code System.out} during an iteration, and checks what went there. */
    private final PrintStream out = System.out;
    private int iteration;
    private long cpu;
    private long wall;

    public IterationTimes(CommandLineArgs args) {
        super(args);
    }

    @Override
    public void start(String benchmark) {
        super.start(benchmark);
        out.printf("iteration %d begins%n", iteration + 1);
        out.flush();
        cpu = system.getProcessCpuTime();
        wall = System.nanoTime();
    }

    /** As in 9.12. */
    public void stop() {
        stopped();
        above(STOP);
    }

    /** As in later releases: the duration is what the harness reports. */
    public void stop(long milliseconds) {
        stopped();
        wall = milliseconds * 1_000_000;
        above(STOP_AFTER, milliseconds);
    }

    private void stopped() {
        wall = System.nanoTime() - wall;
        cpu = system.getProcessCpuTime() - cpu;
    }

    @Override
    public void complete(String benchmark, boolean valid) {
        super.complete(benchmark, valid);
        iteration++;
        if (!valid) {
            out.println("FAILED " + benchmark + ": the harness calls its result invalid");
        }
        out.printf("iteration %d: %d ms wall, %d ms cpu%n", iteration, wall / 1_000_000, cpu / 1_000_000);
        out.flush();
    }

    /** {@code super.stop(…)}, which the compiler could not find in every release. */
    private void above(MethodType type, Object... arguments) {
        try {
            MethodHandles.lookup()
                    .findSpecial(Callback.class, "stop", type, IterationTimes.class)
                    .bindTo(this)
                    .invokeWithArguments(arguments);
        } catch (Throwable e) {
            throw new IllegalStateException("this release of DaCapo ends iterations in another way", e);
        }
    }
}
