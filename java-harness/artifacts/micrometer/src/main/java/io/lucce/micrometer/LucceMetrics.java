package io.lucce.micrometer;

import io.lucce.AgentStatus;
import io.lucce.CallContext;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The agent's figures as meters. {@code lucce serve} has the same ones under {@code /metrics}.
 *
 * <table>
 * <caption>Meters</caption>
 * <tr><th>meter</th><th>in Prometheus</th><th>what it is</th></tr>
 * <tr><td>{@code lucce.allocated}</td><td>{@code lucce_allocated_bytes_total}</td><td>allocated bytes</td></tr>
 * <tr><td>{@code lucce.line.allocated}, label {@code line}</td><td>{@code lucce_line_allocated_bytes_total}</td>
 * <td>allocated bytes by line of own code, of the lines with most</td></tr>
 * <tr><td>{@code lucce.events.lost}</td><td>{@code lucce_events_lost_total}</td><td>events that no counter contains</td></tr>
 * <tr><td>{@code lucce.resources.open}</td><td>{@code lucce_resources_open}</td><td>open resources, with
 * {@code events=open}</td></tr>
 * </table>
 *
 * <p>A line that was once among those with most keeps its meter. All counters are read at most every ten seconds, when a meter
 * is read. Figures that the run does not record have no meters; without the agent there are none at all.
 */
public final class LucceMetrics implements MeterBinder {
    /** Lines with meters at the first reading. */
    public static final int DEFAULT_LINES = 20;

    /** How many times the number of lines may get meters over time. */
    private static final int MOST_TIMES = 10;
    private static final long INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final List<String> ownClasses;
    private final int lines;

    /** Makes meters for {@value #DEFAULT_LINES} lines, by the agent's option {@code app}. */
    public LucceMetrics() {
        this(List.of(), DEFAULT_LINES);
    }

    /**
     * Makes meters.
     *
     * @param ownClasses patterns of the program's own classes, such as {@code com.acme.*}; see
     *     {@link AgentStatus#allocatedByLine}
     * @param lines how many lines get meters
     */
    public LucceMetrics(Collection<String> ownClasses, int lines) {
        this.ownClasses = List.copyOf(ownClasses);
        this.lines = lines;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        if (!CallContext.isActive()) {
            return;
        }
        FunctionCounter.builder("lucce.events.lost", registry, any -> AgentStatus.lostEvents().orElse(0))
            .description("Events that no counter contains")
            .register(registry);
        if (AgentStatus.openResources().isPresent()) {
            Gauge.builder("lucce.resources.open", () -> AgentStatus.openResources().orElse(0))
                .description("Open resources: files, sockets and others")
                .register(registry);
        }
        new LineMeters(registry).bind();
    }

    /** The meters of allocations in one registry. */
    private final class LineMeters {
        private final MeterRegistry registry;
        /** Lines that have meters. */
        private final Set<String> registered = new HashSet<>();
        private Map<String, Long> bytes = Map.of();
        private long total;
        private long readAt;

        LineMeters(MeterRegistry registry) {
            this.registry = registry;
        }

        void bind() {
            List<AgentStatus.LineTotal> totals = AgentStatus.allocatedByLine(ownClasses);
            if (totals.isEmpty()) {
                return;
            }
            // A registry holds objects weakly, and functions strongly.
            FunctionCounter.builder("lucce.allocated", registry, any -> total())
                .baseUnit("bytes")
                .description("Allocated bytes")
                .register(registry);
            keep(totals);
        }

        private synchronized double total() {
            readAgain();
            return total;
        }

        private synchronized double bytesOf(String line) {
            readAgain();
            return bytes.getOrDefault(line, 0L);
        }

        private void readAgain() {
            if (System.nanoTime() - readAt >= INTERVAL_NANOS) {
                keep(AgentStatus.allocatedByLine(ownClasses));
            }
        }

        private synchronized void keep(List<AgentStatus.LineTotal> totals) {
            readAt = System.nanoTime();
            if (totals.isEmpty()) {
                // The agent was detached: the last figures stay.
                return;
            }
            Map<String, Long> read = new HashMap<>();
            totals.forEach(line -> read.put(line.line(), line.bytes()));
            bytes = read;
            total = totals.stream().mapToLong(AgentStatus.LineTotal::bytes).sum();
            totals.stream()
                .filter(line -> !line.line().isEmpty())
                .sorted(Comparator.comparingLong(AgentStatus.LineTotal::bytes).reversed())
                .limit(lines)
                .filter(line -> registered.size() < MOST_TIMES * lines && registered.add(line.line()))
                .forEach(line -> register(line.line()));
        }

        private void register(String line) {
            FunctionCounter.builder("lucce.line.allocated", registry, any -> bytesOf(line))
                .baseUnit("bytes")
                .description("Allocated bytes by line of own code, of the lines with most")
                .tag("line", line)
                .register(registry);
        }
    }
}
