package io.lucce.logback;

import ch.qos.logback.classic.AsyncAppender;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.LoggingEvent;
import io.lucce.CallContext;
import java.util.HashMap;
import java.util.Map;
import org.slf4j.MDC;

/**
 * Logback's {@code AsyncAppender} for patterns with {@code %lucce}: the number is taken in the thread that logs, and goes with the
 * event as the property {@code lucce} of its MDC.
 */
public final class LucceAsyncAppender extends AsyncAppender {
    /** The property's name. */
    static final String KEY = "lucce";

    /** Logback makes one for each appender of this class. */
    public LucceAsyncAppender() {}

    @Override
    protected void preprocess(ILoggingEvent event) {
        if (CallContext.isActive() && event instanceof LoggingEvent) {
            keep((LoggingEvent) event, CallContext.toString(CallContext.current()));
        }
        super.preprocess(event);
    }

    /** The event's own properties would be a copy of the thread's, made by {@code super.preprocess}. */
    private static void keep(LoggingEvent event, String number) {
        Map<String, String> properties = MDC.getCopyOfContextMap();
        properties = properties == null ? new HashMap<>() : new HashMap<>(properties);
        properties.put(KEY, number);
        try {
            event.setMDCPropertyMap(properties);
        } catch (IllegalStateException tooLate) {
            // Another appender has asked the event for its properties before: the line has no number then.
        }
    }
}
