package io.lucce.log4j2;

import io.lucce.CallContext;
import java.util.Map;
import org.apache.logging.log4j.core.util.ContextDataProvider;

/**
 * Takes the number of the calling context for each event, in the thread that logs: the entry {@code lucce} of the event's context
 * data. Layouts that write all of those, as JSON, have it without a pattern.
 */
public final class LucceContextData implements ContextDataProvider {
    /** The entry's name. */
    static final String KEY = "lucce";

    /** Log4j finds it as a service. */
    public LucceContextData() {}

    @Override
    public Map<String, String> supplyContextData() {
        return CallContext.isActive() ? Map.of(KEY, CallContext.toString(CallContext.current())) : Map.of();
    }
}
