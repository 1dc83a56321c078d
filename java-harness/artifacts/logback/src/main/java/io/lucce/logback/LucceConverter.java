package io.lucce.logback;

import ch.qos.logback.classic.pattern.ClassicConverter;
import ch.qos.logback.classic.spi.ILoggingEvent;
import io.lucce.CallContext;

/**
 * {@code %lucce} in a pattern of Logback: the number of the calling context from which the line was logged, as
 * {@code lucce:RUN:0x…}. {@code lucce annotate} turns it into the stack trace.
 *
 * <pre>{@code
 * <conversionRule conversionWord="lucce" class="io.lucce.logback.LucceConverter"/>
 * <pattern>%d %level %logger %lucce %msg%n</pattern>
 * }</pre>
 *
 * <p>The innermost frames of the trace are those of Logback itself. An appender that writes in a thread of its own takes the
 * number too late: behind {@link LucceAsyncAppender} it is that of the thread that logged, behind any other it is left out, {@code 0x0}.
 */
public final class LucceConverter extends ClassicConverter {
    /** Logback makes one for each {@code %lucce}. */
    public LucceConverter() {}

    @Override
    public String convert(ILoggingEvent event) {
        String taken = event.getMDCPropertyMap().get(LucceAsyncAppender.KEY);
        if (taken != null) {
            return taken;
        }
        boolean logsHere = Thread.currentThread().getName().equals(event.getThreadName());
        return CallContext.toString(logsHere ? CallContext.current() : 0);
    }
}
