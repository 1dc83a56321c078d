package io.lucce.opentelemetry;

import io.lucce.CallContext;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextStorage;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.trace.ReadableSpan;

/**
 * Counts events under the tag {@code request} while a span of a server or of a consumer of messages is current: its name is the
 * method and route of the request, else the name of the span.
 *
 * <p>The tag has what is known when the span becomes current. Where {@code requests=auto} has opened a request itself, the
 * agent's name holds.
 */
public final class RequestTags {
    private static final AttributeKey<String> METHOD = AttributeKey.stringKey("http.request.method");
    private static final AttributeKey<String> ROUTE = AttributeKey.stringKey("http.route");

    private static final RequestTags INSTALLED = new RequestTags();

    private volatile boolean isEnabled = true;

    private RequestTags() {
        ContextStorage.addWrapper(TagStorage::new);
    }

    /**
     * Opens tags from now on. The first call must come before any context of OpenTelemetry is used; others change nothing.
     *
     * @return what enables and disables them
     */
    public static RequestTags install() {
        return INSTALLED;
    }

    /**
     * Enables or disables tags of spans that become current later.
     *
     * @param isEnabled whether tags are opened; true at first
     */
    public void setEnabled(boolean isEnabled) {
        this.isEnabled = isEnabled;
    }

    private CallContext.Tag open(Context context, Context before) {
        if (!isEnabled) {
            return null;
        }
        Span span = Span.fromContextOrNull(context);
        if (!(span instanceof ReadableSpan) || span == (before == null ? null : Span.fromContextOrNull(before))) {
            return null;
        }
        ReadableSpan readable = (ReadableSpan) span;
        SpanKind kind = readable.getKind();
        if (kind != SpanKind.SERVER && kind != SpanKind.CONSUMER) {
            return null;
        }
        return CallContext.requestTag(name(readable));
    }

    private static String name(ReadableSpan span) {
        String route = span.getAttribute(ROUTE);
        String method = span.getAttribute(METHOD);
        return route == null || method == null ? span.getName() : method + " " + route;
    }

    /** Opens and closes tags where contexts become current and cease to be, which is in one thread. */
    private static final class TagStorage implements ContextStorage {
        private final ContextStorage inner;

        TagStorage(ContextStorage inner) {
            this.inner = inner;
        }

        @Override
        public Scope attach(Context context) {
            Context before = inner.current();
            Scope scope = inner.attach(context);
            CallContext.Tag tag = INSTALLED.open(context, before);
            if (tag == null) {
                return scope;
            }
            return () -> {
                tag.close();
                scope.close();
            };
        }

        @Override
        public Context current() {
            return inner.current();
        }

        @Override
        public Context root() {
            return inner.root();
        }
    }
}
