package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.lang.reflect.UndeclaredThrowableException;

/** Dynamic proxies: the JVM loads $Proxy classes, whose methods have neither file nor lines. */
public final class Proxies {
    static Object kept;

    interface Service {
        Object call(int n) throws java.io.IOException;

        int number(long a, double b, String c);

        default String greet() {
            Check.that(CallContext.current(), new Throwable());
            return "hello";
        }
    }

    private interface Hidden {
        Object secret();
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Repeats.of(60); i++) {
            calls();
            chained();
            exceptions();
            Check.that(CallContext.current(), new Throwable());
        }
        Check.done();
    }

    static <T> T proxy(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(Proxies.class.getClassLoader(), new Class<?>[] {type}, handler));
    }

    static final class Real implements Service {
        @Override
        public Object call(int n) throws java.io.IOException {
            kept = new byte[80];
            Check.that(CallContext.current(), new Throwable());
            if (n < 0) {
                throw new java.io.IOException("negative");
            }
            return n;
        }

        @Override
        public int number(long a, double b, String c) {
            Check.that(CallContext.current(), new Throwable());
            return (int) a + (int) b + c.length();
        }
    }

    static final class Forwarding implements InvocationHandler {
        private final Object target;

        Forwarding(Object target) {
            this.target = target;
        }

        @Override
        public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
            kept = new byte[81];
            Check.that(CallContext.current(), new Throwable());
            try {
                return method.invoke(target, arguments);
            } catch (InvocationTargetException e) {
                Check.that(CallContext.current(), new Throwable());
                throw e.getCause();
            } finally {
                Check.that(CallContext.current(), new Throwable());
            }
        }
    }

    static void calls() throws Exception {
        Service service = proxy(Service.class, new Forwarding(new Real()));
        Check.equal(3, service.call(3));
        Check.that(CallContext.current(), new Throwable());
        Check.equal(6, service.number(1, 2.5, "abc"));
        Check.that(CallContext.current(), new Throwable());
        Check.equal("hello", service.greet());
        kept = service.toString() + service.hashCode();
        Check.that(CallContext.current(), new Throwable());
        Hidden hidden = proxy(Hidden.class, (proxy, method, arguments) -> {
            Check.that(CallContext.current(), new Throwable());
            return InvocationHandler.class;
        });
        kept = hidden.secret();
        Check.that(CallContext.current(), new Throwable());
        Service defaults = proxy(Service.class, (proxy, method, arguments) -> InvocationHandler.invokeDefault(proxy, method, arguments));
        Check.equal("hello", defaults.greet());
        Check.that(CallContext.current(), new Throwable());
    }

    static void chained() throws Exception {
        Service service = new Real();
        for (int i = 0; i < 5; i++) {
            service = proxy(Service.class, new Forwarding(service));
        }
        Check.equal(4, service.call(4));
        Check.that(CallContext.current(), new Throwable());
        try {
            service.call(-1);
            Check.wrong("must throw");
        } catch (java.io.IOException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    static void exceptions() throws Exception {
        Service undeclared = proxy(Service.class, (proxy, method, arguments) -> {
            Check.that(CallContext.current(), new Throwable());
            throw new InterruptedException();
        });
        try {
            undeclared.greet();
            Check.wrong("must throw");
        } catch (UndeclaredThrowableException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        Service wrongType = proxy(Service.class, (proxy, method, arguments) -> "no int");
        try {
            wrongType.number(1, 2, "");
            Check.wrong("must throw");
        } catch (ClassCastException e) {
            Check.that(CallContext.current(), new Throwable());
        }
        Service nothing = proxy(Service.class, (proxy, method, arguments) -> null);
        try {
            nothing.number(1, 2, "");
            Check.wrong("must throw");
        } catch (NullPointerException e) {
            Check.that(CallContext.current(), new Throwable());
        }
    }
}
