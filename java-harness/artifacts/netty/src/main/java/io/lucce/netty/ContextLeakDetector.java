package io.lucce.netty;

import io.lucce.CallContext;
import io.netty.util.ResourceLeakDetector;
import io.netty.util.ResourceLeakTracker;
import io.netty.util.internal.StringUtil;
import java.lang.ref.ReferenceQueue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A leak detector whose trackers record numbers of calling contexts.
 *
 * <p>{@link LucceLeakDetection#install} defines this class with {@link #trackInContext} under the name {@code track}, which then
 * overrides Netty's method. No code may name this class, or it would be loaded as it is.
 */
final class ContextLeakDetector<T> extends ResourceLeakDetector<T> {
    private final ReferenceQueue<Object> collected = new ReferenceQueue<>();
    private final TrackerLists open = new TrackerLists();
    private final Set<String> reported = ConcurrentHashMap.newKeySet();
    private final String resource;
    private final int samplingInterval;
    private final AtomicReference<String[]> excludedMethods;
    private volatile LeakListener listener;

    ContextLeakDetector(Class<?> resource, int samplingInterval, AtomicReference<String[]> excludedMethods) {
        super(resource, samplingInterval);
        this.resource = StringUtil.simpleClassName(resource);
        this.samplingInterval = samplingInterval;
        this.excludedMethods = excludedMethods;
    }

    /** Follows an object, depending on Netty's level; null: it is not followed. */
    public ResourceLeakTracker<T> trackInContext(T object) {
        Level level = getLevel();
        boolean isTracked = level == Level.PARANOID
                || level != Level.DISABLED && ThreadLocalRandom.current().nextInt(samplingInterval) == 0;
        return isTracked ? follow(object, CallContext.current()) : null;
    }

    @Override
    public ResourceLeakTracker<T> trackForcibly(T object) {
        return follow(object, CallContext.current());
    }

    @Override
    public void setLeakListener(LeakListener listener) {
        super.setLeakListener(listener);
        this.listener = listener;
    }

    private ResourceLeakTracker<T> follow(T object, long context) {
        reportLeaks();
        return new ContextTracker<>(object, collected, open.own(), getInitialHint(resource), context);
    }

    private void reportLeaks() {
        for (Object next = collected.poll(); next != null; next = collected.poll()) {
            ContextTracker<?> tracker = (ContextTracker<?>) next;
            if (tracker.end() && needReport() && reported.add(tracker.key())) {
                report(tracker.describe(excludedMethods.get()));
            }
        }
    }

    private void report(String records) {
        if (!reported.add(records)) {
            return;
        }
        reportTracedLeak(resource, records);
        LeakListener own = listener;
        if (own != null) {
            own.onLeak(resource, records);
        }
    }
}
