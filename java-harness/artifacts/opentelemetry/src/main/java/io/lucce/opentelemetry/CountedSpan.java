package io.lucce.opentelemetry;

import io.lucce.ThreadCounts;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.AttributesBuilder;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.sdk.common.InstrumentationScopeInfo;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.data.DelegatingSpanData;
import io.opentelemetry.sdk.trace.data.SpanData;

/** A span that has ended, with counts: nobody can add attributes to the span itself any more. */
final class CountedSpan implements ReadableSpan {
    private static final AttributeKey<Long> OBJECTS = AttributeKey.longKey("lucce.allocated.objects");
    private static final AttributeKey<Long> BYTES = AttributeKey.longKey("lucce.allocated.bytes");
    private static final AttributeKey<Long> WAITS = AttributeKey.longKey("lucce.waits");
    private static final AttributeKey<Long> WAIT_NANOS = AttributeKey.longKey("lucce.wait.ns");
    private static final AttributeKey<Long> LOST = AttributeKey.longKey("lucce.lost");

    private final ReadableSpan span;
    private final Attributes counts;

    CountedSpan(ReadableSpan span, ThreadCounts found) {
        this.span = span;
        AttributesBuilder builder = Attributes.builder();
        builder.put(OBJECTS, found.objects());
        builder.put(BYTES, found.bytes());
        builder.put(WAITS, found.waits());
        builder.put(WAIT_NANOS, found.waitNanos());
        if (found.lost() > 0) {
            builder.put(LOST, found.lost());
        }
        counts = builder.build();
    }

    @Override
    public SpanData toSpanData() {
        return new CountedData(span.toSpanData(), counts);
    }

    @Override
    public SpanContext getSpanContext() {
        return span.getSpanContext();
    }

    @Override
    public SpanContext getParentSpanContext() {
        return span.getParentSpanContext();
    }

    @Override
    public String getName() {
        return span.getName();
    }

    @Override
    @Deprecated
    public io.opentelemetry.sdk.common.InstrumentationLibraryInfo getInstrumentationLibraryInfo() {
        return span.getInstrumentationLibraryInfo();
    }

    @Override
    public InstrumentationScopeInfo getInstrumentationScopeInfo() {
        return span.getInstrumentationScopeInfo();
    }

    @Override
    public boolean hasEnded() {
        return span.hasEnded();
    }

    @Override
    public long getLatencyNanos() {
        return span.getLatencyNanos();
    }

    @Override
    public SpanKind getKind() {
        return span.getKind();
    }

    @Override
    public <T> T getAttribute(AttributeKey<T> key) {
        T count = counts.get(key);
        return count == null ? span.getAttribute(key) : count;
    }

    @Override
    public Attributes getAttributes() {
        return span.getAttributes().toBuilder().putAll(counts).build();
    }

    private static final class CountedData extends DelegatingSpanData {
        private final SpanData data;
        private final Attributes counts;

        CountedData(SpanData data, Attributes counts) {
            super(data);
            this.data = data;
            this.counts = counts;
        }

        @Override
        public Attributes getAttributes() {
            return data.getAttributes().toBuilder().putAll(counts).build();
        }

        @Override
        public int getTotalAttributeCount() {
            return data.getTotalAttributeCount() + counts.size();
        }
    }
}
