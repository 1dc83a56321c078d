package io.lucce.log4j2;

import io.lucce.CallContext;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.config.plugins.Plugin;
import org.apache.logging.log4j.core.pattern.ConverterKeys;
import org.apache.logging.log4j.core.pattern.LogEventPatternConverter;
import org.apache.logging.log4j.core.pattern.PatternConverter;

/**
 * {@code %lucce} in a pattern of Log4j 2: the number of the calling context from which the line was logged, as
 * {@code lucce:RUN:0x…}. {@code lucce annotate} turns it into the stack trace.
 *
 * <p>Nothing needs to be configured: {@link LucceContextData} takes the number in the thread that logs, so that asynchronous loggers and
 * appenders have it, too. The innermost frames of the trace are those of Log4j itself.
 */
@Plugin(name = "LuccePatternConverter", category = PatternConverter.CATEGORY)
@ConverterKeys("lucce")
public final class LuccePatternConverter extends LogEventPatternConverter {
    private static final LuccePatternConverter INSTANCE = new LuccePatternConverter();

    private LuccePatternConverter() {
        super("lucce", "lucce");
    }

    /**
     * Log4j calls this for each {@code %lucce}.
     *
     * @param options none are known
     * @return the converter
     */
    public static LuccePatternConverter newInstance(String[] options) {
        return INSTANCE;
    }

    @Override
    public void format(LogEvent event, StringBuilder line) {
        Object taken = event.getContextData().getValue(LucceContextData.KEY);
        line.append(taken == null ? CallContext.toString(0) : taken);
    }
}
