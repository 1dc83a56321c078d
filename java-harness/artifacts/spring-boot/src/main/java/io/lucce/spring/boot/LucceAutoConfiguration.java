package io.lucce.spring.boot;

import io.lucce.micrometer.LucceMetrics;
import io.lucce.micrometer.LucceObservationHandler;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.observation.ObservationHandler;
import java.util.ArrayList;
import java.util.List;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurationPackages;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;

/**
 * Beans of the agent. None is made without its property.
 *
 * <table>
 * <caption>Properties</caption>
 * <tr><th>property</th><th>effect</th></tr>
 * <tr><td>{@code lucce.metrics.enabled=true}</td><td>{@link LucceMetrics}, for lines of the application's packages</td></tr>
 * <tr><td>{@code lucce.metrics.lines=20}</td><td>how many lines have meters</td></tr>
 * <tr><td>{@code lucce.observations.enabled=true}</td><td>{@link LucceObservationHandler}</td></tr>
 * <tr><td>{@code management.endpoint.lucce.access=read-only} and {@code management.endpoints.web.exposure.include=lucce}</td>
 * <td>{@link LucceEndpoint}</td></tr>
 * <tr><td>{@code lucce.command=lucce}</td><td>the command for {@code /actuator/lucce/explain}</td></tr>
 * </table>
 */
@AutoConfiguration
public class LucceAutoConfiguration {
    /** Spring makes one. */
    public LucceAutoConfiguration() {}

    /** Meters and tags. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(MeterBinder.class)
    static class Metrics {
        @Bean
        @ConditionalOnMissingBean
        @ConditionalOnProperty("lucce.metrics.enabled")
        LucceMetrics lucceMetrics(BeanFactory beans, Environment environment) {
            List<String> own = new ArrayList<>();
            if (AutoConfigurationPackages.has(beans)) {
                AutoConfigurationPackages.get(beans).forEach(name -> own.add(name + ".*"));
            }
            int lines = environment.getProperty("lucce.metrics.lines", Integer.class, LucceMetrics.DEFAULT_LINES);
            return new LucceMetrics(own, lines);
        }
    }

    /** Tags. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(ObservationHandler.class)
    static class Observations {
        @Bean
        @ConditionalOnMissingBean
        @ConditionalOnProperty("lucce.observations.enabled")
        LucceObservationHandler lucceObservationHandler() {
            return new LucceObservationHandler();
        }
    }

    /** The endpoint. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({Endpoint.class, ConditionalOnAvailableEndpoint.class})
    static class Actuator {
        @Bean
        @ConditionalOnMissingBean
        @ConditionalOnAvailableEndpoint(LucceEndpoint.class)
        LucceEndpoint lucceEndpoint(Environment environment) {
            return new LucceEndpoint(environment.getProperty("lucce.command", "lucce"));
        }
    }
}
