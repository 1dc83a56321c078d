package io.lucce.opentelemetry.run;

import io.lucce.opentelemetry.LucceCustomizer;
import io.lucce.opentelemetry.RequestTags;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdkBuilder;
import io.opentelemetry.sdk.trace.data.SpanData;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * Makes objects within spans of an SDK that OpenTelemetry configures itself. Prints {@code request#objects} for each name that the
 * tag {@code request} must have, and {@code OK} if the exporter got the right spans.
 */
final class SpansRun {
    private static final String NONE = "(no request)";
    private static final ContextKey<String> OTHER = ContextKey.named("other");
    private static final AttributeKey<String> CONTEXT = AttributeKey.stringKey("lucce.context");
    private static final AttributeKey<Long> OBJECTS = AttributeKey.longKey("lucce.allocated.objects");
    private static final int SPANS = 8;

    private static final Map<String, Integer> expected = new TreeMap<>();
    private static volatile Object made;

    private SpansRun() {}

    /** What the test looks for. */
    private static final class Marker {}

    public static void main(String[] args) throws InterruptedException {
        AutoConfiguredOpenTelemetrySdkBuilder builder = AutoConfiguredOpenTelemetrySdk.builder();
        builder.addPropertiesSupplier(() -> Map.of("otel.traces.exporter", ListExporterProvider.NAME,
            "otel.metrics.exporter", "none", "otel.logs.exporter", "none"));
        // The class path names it as a service, so it is there twice.
        new LucceCustomizer().customize(builder);
        OpenTelemetrySdk sdk = builder.build().getOpenTelemetrySdk();
        openSpans(sdk.getTracer("run"));
        sdk.getSdkTracerProvider().forceFlush().join(1, TimeUnit.MINUTES);
        boolean isRight = ListExporterProvider.SPANS.size() == SPANS;
        for (SpanData span : ListExporterProvider.SPANS) {
            isRight &= isRight(span);
        }
        expected.forEach((request, objects) -> System.out.println(request + "#" + objects));
        System.out.println(isRight ? "OK" : "FAILED " + ListExporterProvider.SPANS);
        sdk.close();
        System.exit(isRight ? 0 : 1);
    }

    private static void openSpans(Tracer tracer) throws InterruptedException {
        within(tracer.spanBuilder("named").setSpanKind(SpanKind.SERVER), () -> {
            make("named", 3);
            within(tracer.spanBuilder("inner"), () -> make("named", 2));
            // The span is current again, in another context.
            Context.current().with(OTHER, "value").wrap(() -> make("named", 1)).run();
            within(tracer.spanBuilder("message").setSpanKind(SpanKind.CONSUMER), () -> make("message", 4));
            make("named", 5);
        });
        make(NONE, 7);
        SpanBuilder routed = tracer.spanBuilder("GET").setSpanKind(SpanKind.SERVER)
            .setAttribute("http.request.method", "GET").setAttribute("http.route", "/orders/{id}");
        within(routed, () -> make("GET /orders/{id}", 11));
        SpanBuilder unnamed = tracer.spanBuilder("half").setSpanKind(SpanKind.SERVER).setAttribute("http.route", "/orders/{id}");
        within(unnamed, () -> make("half", 13));
        within(tracer.spanBuilder("client").setSpanKind(SpanKind.CLIENT), () -> make(NONE, 17));
        Span handed = tracer.spanBuilder("handed").setSpanKind(SpanKind.SERVER).startSpan();
        Thread other = new Thread(Context.current().with(handed).wrap(() -> make("handed", 19)), "another");
        other.start();
        other.join();
        handed.end();
        RequestTags.install().setEnabled(false);
        within(tracer.spanBuilder("disabled").setSpanKind(SpanKind.SERVER), () -> make(NONE, 23));
    }

    /** Does the work while a new span is current. */
    private static void within(SpanBuilder builder, Runnable work) {
        Span span = builder.startSpan();
        Context.current().with(span).wrap(work).run();
        span.end();
    }

    private static void make(String request, int objects) {
        for (int i = 0; i < objects; i++) {
            made = new Marker();
        }
        expected.merge(request, objects, Integer::sum);
    }

    /** A span has each attribute once. The first one of a trace has counts. */
    private static boolean isRight(SpanData span) {
        boolean isFirst = !span.getParentSpanContext().isValid();
        Long objects = span.getAttributes().get(OBJECTS);
        return span.getAttributes().get(CONTEXT) != null
            && span.getTotalAttributeCount() == span.getAttributes().size()
            && isFirst == (objects != null);
    }
}
