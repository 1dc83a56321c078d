import io.lucce.CallContext;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * A service of one thread that answers requests: by plain calls, and by all that the JVM makes classes for while it runs, whose names
 * differ from run to run. {@code Orders REQUESTS [new]}: the new version takes more for each request, on one more path.
 */
public final class Orders {
    private static final List<Object> kept = new ArrayList<>();

    /** What proxies are of. */
    public interface Price {
        /** In cents. */
        Integer of(String article);
    }

    private static final class Order {
        final long[] lines;

        Order(int lines) {
            this.lines = new long[lines];
        }
    }

    private static Object tree(int depth) {
        Object[] node = new Object[2];
        if (depth > 0) {
            node[0] = tree(depth - 1);
            node[1] = tree(depth - 1);
        }
        return node;
    }

    private static Integer price(Object article) {
        return article.hashCode() % 1000 + 1000;
    }

    private static Price proxied() {
        InvocationHandler handler = (proxy, method, args) -> price(args[0]);
        return (Price) Proxy.newProxyInstance(Orders.class.getClassLoader(), new Class<?>[] {Price.class}, handler);
    }

    private static void answer(int request, boolean isNew, Price proxy, Method reflected, MethodHandle handle) throws Throwable {
        CallContext.event("request", 0);
        String article = "article " + request % 10;
        Function<String, Integer> lambda = Orders::price;
        Function<String, Object> another = name -> new StringBuilder(name).append(request);
        kept.add(new Order(isNew ? 30 : 20));
        kept.add(lambda.apply(article) + proxy.of(article) + (Integer) reflected.invoke(null, article));
        kept.add(another.apply(article));
        kept.add((Integer) handle.invokeExact((Object) article));
        kept.add(tree(3));
        if (isNew) {
            discount(request);
        }
        if (kept.size() > 500) {
            kept.clear();
        }
    }

    private static void discount(int request) {
        kept.add(new int[request % 7 + 1]);
    }

    /** Starts requests. */
    public static void main(String[] args) throws Throwable {
        boolean isNew = args.length > 1;
        Method reflected = Orders.class.getDeclaredMethod("price", Object.class);
        MethodType type = MethodType.methodType(Integer.class, Object.class);
        MethodHandle handle = MethodHandles.lookup().findStatic(Orders.class, "price", type);
        Price proxy = proxied();
        for (int request = 0; request < Integer.parseInt(args[0]); request++) {
            answer(request, isNew, proxy, reflected, handle);
        }
    }
}
