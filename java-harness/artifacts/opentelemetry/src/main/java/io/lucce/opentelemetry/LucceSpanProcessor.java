package io.lucce.opentelemetry;

import io.lucce.CallContext;
import io.lucce.ThreadCounts;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SpanProcessor;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Gives spans the number of the calling context in which they began, and counts of what they did.
 *
 * <table>
 * <caption>Attributes of spans</caption>
 * <tr><th>attribute</th><th>spans</th><th>value</th></tr>
 * <tr><td>{@code lucce.context}</td><td>all</td><td>the number as text, {@code lucce:RUN:0x…}; {@code lucce decode} and
 * {@code lucce annotate} turn it into the stack trace</td></tr>
 * <tr><td>{@code lucce.allocated.objects}, {@code lucce.allocated.bytes}</td><td rowspan="3">the first of a trace in this
 * process, if it ends in the thread in which it began</td><td>what the thread has allocated within the span</td></tr>
 * <tr><td>{@code lucce.waits}, {@code lucce.wait.ns}</td><td>how often and how long the thread has waited within it, with
 * {@code events=lock}</td></tr>
 * <tr><td>{@code lucce.lost}</td><td>events lost meanwhile, if there are any: the other counts may be too small</td></tr>
 * </table>
 *
 * <pre>{@code
 * SdkTracerProvider.builder().addSpanProcessor(LucceSpanProcessor.wrap(BatchSpanProcessor.builder(exporter).build(), true));
 * }</pre>
 *
 * <p>Counts are those of {@link ThreadCounts}, which a thread with thousands of contexts pays with some hundred microseconds for
 * each span that has them.
 */
public final class LucceSpanProcessor implements SpanProcessor {
    /** The number of the context. */
    static final AttributeKey<String> CONTEXT = AttributeKey.stringKey("lucce.context");

    /** Spans that are counted at a time: those that never end must not fill the memory. */
    private static final int MOST_OPEN = 4096;

    private final SpanProcessor next;
    private final boolean counts;
    private final Map<SpanContext, ThreadCounts.Measurement> open = new ConcurrentHashMap<>();

    private LucceSpanProcessor(SpanProcessor next, boolean counts) {
        this.next = next;
        this.counts = counts;
    }

    /**
     * Wraps the processor that hands spans to an exporter: it gets them with the attributes.
     *
     * @param next the processor
     * @param counts whether spans have counts
     * @return the processor to register in its place; {@code next} itself without the agent, or if it is wrapped already
     */
    public static SpanProcessor wrap(SpanProcessor next, boolean counts) {
        if (!CallContext.isActive() || next instanceof LucceSpanProcessor) {
            return next;
        }
        return new LucceSpanProcessor(next, counts);
    }

    @Override
    public void onStart(Context parent, ReadWriteSpan span) {
        span.setAttribute(CONTEXT, CallContext.toString(CallContext.current()));
        if (next.isStartRequired()) {
            next.onStart(parent, span);
        }
        SpanContext caller = span.getParentSpanContext();
        boolean isFirst = !caller.isValid() || caller.isRemote();
        if (counts && isFirst && open.size() < MOST_OPEN) {
            open.put(span.getSpanContext(), ThreadCounts.begin());
        }
    }

    @Override
    public boolean isStartRequired() {
        return true;
    }

    @Override
    public void onEnd(ReadableSpan span) {
        ThreadCounts.Measurement measurement = open.remove(span.getSpanContext());
        ReadableSpan counted = measurement == null
            ? span
            : measurement.end().<ReadableSpan>map(found -> new CountedSpan(span, found)).orElse(span);
        if (next.isEndRequired()) {
            next.onEnd(counted);
        }
    }

    @Override
    public boolean isEndRequired() {
        return true;
    }

    @Override
    public CompletableResultCode shutdown() {
        return next.shutdown();
    }

    @Override
    public CompletableResultCode forceFlush() {
        return next.forceFlush();
    }

    @Override
    public String toString() {
        return "LucceSpanProcessor{" + next + "}";
    }
}
