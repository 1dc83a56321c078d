package io.lucce.opentelemetry.run;

import io.opentelemetry.sdk.autoconfigure.spi.ConfigProperties;
import io.opentelemetry.sdk.autoconfigure.spi.traces.ConfigurableSpanExporterProvider;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.util.Collection;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** An exporter that keeps the spans. */
public final class ListExporterProvider implements ConfigurableSpanExporterProvider {
    /** The value of {@code otel.traces.exporter}. */
    static final String NAME = "list";
    /** All spans that were exported. */
    static final Queue<SpanData> SPANS = new ConcurrentLinkedQueue<>();

    /** OpenTelemetry finds it as a service. */
    public ListExporterProvider() {}

    @Override
    public SpanExporter createExporter(ConfigProperties config) {
        return new ListExporter();
    }

    @Override
    public String getName() {
        return NAME;
    }

    private static final class ListExporter implements SpanExporter {
        @Override
        public CompletableResultCode export(Collection<SpanData> spans) {
            SPANS.addAll(spans);
            return CompletableResultCode.ofSuccess();
        }

        @Override
        public CompletableResultCode flush() {
            return CompletableResultCode.ofSuccess();
        }

        @Override
        public CompletableResultCode shutdown() {
            return CompletableResultCode.ofSuccess();
        }
    }
}
