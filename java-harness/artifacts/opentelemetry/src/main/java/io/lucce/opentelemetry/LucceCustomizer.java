package io.lucce.opentelemetry;

import io.lucce.CallContext;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;
import java.util.Map;

/**
 * Puts lucce into the SDK that OpenTelemetry configures itself: as an extension of its Java agent
 * ({@code -Dotel.javaagent.extensions=lucce-opentelemetry.jar}), or on the class path beside
 * {@code opentelemetry-sdk-extension-autoconfigure}.
 *
 * <p>All processors of spans are wrapped in {@link LucceSpanProcessor}, and {@link RequestTags} are opened. The property
 * {@code otel.lucce.enabled=false} leaves out both, {@code otel.lucce.counts=false} the counts of spans, and
 * {@code otel.lucce.tags=false} the tags. Without the agent of lucce, or if it comes behind OpenTelemetry's on the command
 * line, nothing changes. A second customizer of the same configuration changes nothing either.
 */
public final class LucceCustomizer implements AutoConfigurationCustomizerProvider {
    /** OpenTelemetry finds it as a service. */
    public LucceCustomizer() {}

    @Override
    public void customize(AutoConfigurationCustomizer configuration) {
        if (!CallContext.isActive()) {
            return;
        }
        // No context may be in use yet: it is too late for tags once there is a configuration.
        RequestTags tags = RequestTags.install();
        configuration.addPropertiesCustomizer(properties -> {
            boolean isEnabled = properties.getBoolean("otel.lucce.enabled", true);
            tags.setEnabled(isEnabled && properties.getBoolean("otel.lucce.tags", true));
            return Map.of();
        });
        configuration.addSpanProcessorCustomizer((processor, properties) -> {
            if (!properties.getBoolean("otel.lucce.enabled", true)) {
                return processor;
            }
            return LucceSpanProcessor.wrap(processor, properties.getBoolean("otel.lucce.counts", true));
        });
    }
}
