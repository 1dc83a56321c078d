package io.lucce.jmh;

import io.lucce.CallContext;
import io.lucce.agent.LucceAgent;
import io.lucce.agent.build.AgentArgument;
import io.lucce.agent.build.LucceCommand;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.ExternalProfiler;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.profile.ProfilerException;
import org.openjdk.jmh.results.BenchmarkResult;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.TextResult;
import org.openjdk.jmh.runner.IterationType;

/**
 * What one operation of a benchmark allocates, exactly and by line.
 *
 * <pre>
 * java -jar benchmarks.jar -f 1 -prof lucce
 * java -jar benchmarks.jar -f 1 -prof "lucce:top=5;limit=Parser.parse:120"
 * </pre>
 *
 * <p>Each fork runs under the lucce agent. In the fork, this class marks the first and the last measured iteration in the log.
 * Outside of it, the command {@code lucce} counts between both marks what the calls of the benchmark did that JMH has measured.
 * The secondary results are {@code lucce.alloc.norm} (bytes that the bytecode creates), {@code lucce.objects.norm}, and
 * {@code lucce.heap.norm} (bytes that reached the heap, estimated from samples), each for one operation. For other kinds of
 * events they are {@code lucce.KIND.norm}, with {@code lucce.KIND.time.norm} or {@code lucce.KIND.bytes.norm}.
 *
 * <p>The agent's hooks slow the fork down: times of such a run are not those of the benchmark.
 */
public class LucceProfiler implements ExternalProfiler, InternalProfiler {
    /** Marks in a fork's log. */
    private static final String BEGIN = "jmh measurement begins";
    private static final String END = "jmh measurement ends";

    private final ProfilerOptions options;
    /** Where forks write their logs; made for the first of them. */
    private Path folder;
    /** Measured iterations that have begun in this JVM, which is a fork. */
    private int iterations;

    /** Creates the profiler with its default options. It does not look for the agent, so that JMH can list it on any system. */
    public LucceProfiler() {
        options = ProfilerOptions.DEFAULT;
    }

    /**
     * Creates the profiler, as JMH does.
     *
     * @param options what stands behind {@code -prof lucce:}; {@code help} lists the options
     * @throws ProfilerException if an option is unknown or malformed, or this system has no agent
     */
    public LucceProfiler(String options) throws ProfilerException {
        this.options = ProfilerOptions.parse(options);
        if (!CallContext.isActive()) {
            try {
                LucceAgent.library();
            } catch (IOException | UnsupportedOperationException e) {
                throw new ProfilerException("lucce: " + e.getMessage());
            }
        }
    }

    @Override
    public String getDescription() {
        return "Allocations of an operation by line, counted by the lucce agent";
    }

    @Override
    public Collection<String> addJVMInvokeOptions(BenchmarkParams params) {
        return List.of();
    }

    @Override
    public Collection<String> addJVMOptions(BenchmarkParams params) {
        try {
            if (folder == null) {
                folder = newFolder();
            }
            return List.of(AgentArgument.forLogs(LucceAgent.library(), folder, "", options.events(), null));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Path newFolder() throws IOException {
        if (options.logs() != null) {
            return Files.createDirectories(options.logs());
        }
        Path made = Files.createTempDirectory("lucce-jmh");
        made.toFile().deleteOnExit();
        return made;
    }

    @Override
    public void beforeTrial(BenchmarkParams params) {
        // The fork's command line is made before.
    }

    @Override
    public void beforeIteration(BenchmarkParams benchmark, IterationParams iteration) {
        if (iteration.getType() != IterationType.MEASUREMENT) {
            return;
        }
        if (!CallContext.isActive()) {
            throw new IllegalStateException("the lucce agent is not in this JVM: -prof lucce needs a fork (-f 1)");
        }
        iterations++;
        if (iterations == 1) {
            CallContext.mark(BEGIN);
        }
    }

    @Override
    public Collection<? extends Result<?>> afterIteration(BenchmarkParams benchmark, IterationParams iteration,
            IterationResult result) {
        if (iteration.getType() == IterationType.MEASUREMENT && iterations == iteration.getCount()) {
            CallContext.mark(END);
        }
        return List.of();
    }

    @Override
    public Collection<? extends Result<?>> afterTrial(BenchmarkResult trial, long pid, File out, File err) {
        long operations = 0;
        for (IterationResult iteration : trial.getIterationResults()) {
            operations += iteration.getMetadata().getMeasuredOps();
        }
        if (operations == 0) {
            return List.of();
        }
        try {
            return readFork(trial.getParams(), pid, operations);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private List<Result<?>> readFork(BenchmarkParams params, long pid, long operations) throws IOException {
        Path log = folder.resolve(pid + ".lucce");
        try {
            LucceCommand lucce = new LucceCommand(LucceAgent.command());
            List<KindReport> kinds = readKinds(lucce, log, params, operations);
            List<Result<?>> results = new ArrayList<>();
            StringBuilder text = new StringBuilder();
            text.append(String.format(Locale.ROOT, "for one operation, counted over %,d operations\n", operations));
            String gaps = kinds.get(0).gaps();
            if (!gaps.isEmpty()) {
                text.append("counts are too small: ").append(gaps).append('\n');
            }
            for (KindReport kind : kinds) {
                KindReport all = read(lucce, log, kind.kind(), operations, List.of("--top", "1"));
                String amount = kind.isCountOnly() ? "count" : "value";
                kind.write(text, all.total(amount) - kind.total(amount), options.top());
                results.addAll(kind.results());
            }
            if (options.html() != null) {
                text.append("page: ").append(writePage(lucce, log, params, pid)).append('\n');
            }
            if (options.logs() != null) {
                text.append("log: ").append(log).append('\n');
            }
            results.add(new TextResult(text.toString(), "lucce"));
            judge(params, kinds.get(0), text.toString());
            return results;
        } finally {
            if (options.logs() == null) {
                deleteLogs();
            }
        }
    }

    /** Allocations first, if they were counted. */
    private List<KindReport> readKinds(LucceCommand lucce, Path log, BenchmarkParams params, long operations) throws IOException {
        List<String> measured = List.of("--through", MeasuredCalls.pattern(params), "--top", "0");
        List<KindReport> kinds = new ArrayList<>();
        KindReport first = read(lucce, log, null, operations, measured);
        kinds.add(first);
        for (String other : first.otherKinds()) {
            kinds.add(read(lucce, log, other, operations, measured));
        }
        return kinds;
    }

    /** A report of what was counted between both marks. */
    private static KindReport read(LucceCommand lucce, Path log, String kind, long operations, List<String> arguments)
            throws IOException {
        List<String> words = new ArrayList<>(List.of("report", log.toString(), "--json", "--since", BEGIN, "--until", END));
        if (kind != null) {
            words.addAll(List.of("--event", kind));
        }
        words.addAll(arguments);
        return KindReport.parse(lucce.readOutput(words), operations);
    }

    private Path writePage(LucceCommand lucce, Path log, BenchmarkParams params, long pid) throws IOException {
        Files.createDirectories(options.html());
        Path page = options.html().resolve(params.id().replaceAll("[^\\w.=-]", "_") + "-" + pid + ".html");
        lucce.readOutput(List.of("view", log.toString(), "--since", BEGIN, "--until", END, "--through", MeasuredCalls.pattern(params),
            "--out", page.toString()));
        return page;
    }

    private void judge(BenchmarkParams params, KindReport allocations, String text) {
        OptionalDouble limit = options.limits().limitOf(params.getBenchmark());
        if (limit.isEmpty()) {
            return;
        }
        if (!allocations.gaps().isEmpty()) {
            throw new IllegalStateException(params.getBenchmark() + " cannot be judged: " + allocations.gaps());
        }
        double bytes = allocations.valueOfOperation();
        if (BenchmarkLimits.isExceeded(bytes, limit.getAsDouble())) {
            throw new IllegalStateException(String.format(Locale.ROOT,
                "%s allocates %.3f bytes for each operation, more than the limit of %s%n%s",
                params.getBenchmark(), bytes, limit.getAsDouble(), text));
        }
    }

    /** Those of warm-up forks, too. */
    private void deleteLogs() throws IOException {
        try (DirectoryStream<Path> logs = Files.newDirectoryStream(folder)) {
            for (Path log : logs) {
                Files.delete(log);
            }
        }
    }

    @Override
    public boolean allowPrintOut() {
        return true;
    }

    @Override
    public boolean allowPrintErr() {
        return true;
    }
}
