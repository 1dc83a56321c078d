package io.lucce.micrometer;

import io.lucce.CallContext;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Counts events under the tag {@value #KEY} with the name of the observation whose scope is open, as {@code order.process}:
 * {@code lucce report --by tag} prints the sums of each.
 *
 * <pre>{@code
 * registry.observationConfig().observationHandler(new LucceObservationHandler());
 * }</pre>
 *
 * <p>Within an inner observation, events belong to the inner one. Without the agent the handler does nothing.
 */
public final class LucceObservationHandler implements ObservationHandler<Observation.Context> {
    /** The tag's key. */
    public static final String KEY = "observation";

    /** Scopes are opened and closed in one thread, the inner ones first. */
    private final ThreadLocal<Deque<CallContext.Tag>> open = new ThreadLocal<>();

    /** Makes a handler; one suffices for a registry. */
    public LucceObservationHandler() {}

    @Override
    public boolean supportsContext(Observation.Context context) {
        return CallContext.isActive();
    }

    @Override
    public void onScopeOpened(Observation.Context context) {
        Deque<CallContext.Tag> tags = open.get();
        if (tags == null) {
            tags = new ArrayDeque<>();
            open.set(tags);
        }
        tags.push(CallContext.tag(KEY, context.getName()));
    }

    @Override
    public void onScopeClosed(Observation.Context context) {
        Deque<CallContext.Tag> tags = open.get();
        if (tags == null) {
            return;
        }
        CallContext.Tag tag = tags.poll();
        if (tag != null) {
            tag.close();
        }
        if (tags.isEmpty()) {
            open.remove();
        }
    }

    @Override
    public void onScopeReset(Observation.Context context) {
        Deque<CallContext.Tag> tags = open.get();
        if (tags != null) {
            tags.forEach(CallContext.Tag::close);
            open.remove();
        }
    }
}
