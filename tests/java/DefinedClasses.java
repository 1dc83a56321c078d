import java.io.InputStream;
import java.lang.invoke.CallSite;
import java.lang.invoke.LambdaMetafactory;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ClassLoadingMXBean;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import javax.management.ObjectName;

/**
 * Makes classes of known numbers: loaders that are deployed again, proxies, hidden classes and lambdas. Half of the
 * loaders and of the hidden classes are dropped, and the VM unloads them.
 */
public class DefinedClasses {
    static final int LOADERS = 40, PROXIES = 30, HIDDEN = 24, LAMBDAS = 16;
    /** Keeps classes and loaders. */
    static final List<Object> KEPT = new ArrayList<>();
    static final ClassLoadingMXBean CLASSES = ManagementFactory.getClassLoadingMXBean();

    /** {@code Unsafe.defineAnonymousClass} of JDK 11, which has no hidden classes. */
    static final MethodHandle ANONYMOUS = anonymous();

    static MethodHandle anonymous() {
        if (Runtime.version().feature() > 11) return null;
        try {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            Field unsafe = type.getDeclaredField("theUnsafe");
            unsafe.setAccessible(true);
            MethodType defines = MethodType.methodType(Class.class, Class.class, byte[].class, Object[].class);
            return MethodHandles.lookup().findVirtual(type, "defineAnonymousClass", defines).bindTo(unsafe.get(null));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Each loader defines three classes of its own, from these bytes. */
    public static class App implements Runnable {
        static final Conf CONF = new Conf();

        @Override
        public void run() {
            KEPT_BY_APP = new Other();
        }

        static Object KEPT_BY_APP;
    }

    public static class Conf {}

    public static class Other {}

    /** What a hidden class is made of. */
    public static class Pattern {}

    static final class Deployment extends ClassLoader {
        Deployment() {
            super(ClassLoader.getPlatformClassLoader());
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            byte[] bytes = bytesOf(name);
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    static byte[] bytesOf(String name) throws ClassNotFoundException {
        try (InputStream in = DefinedClasses.class.getResourceAsStream("/" + name.replace('.', '/') + ".class")) {
            return in.readAllBytes();
        } catch (java.io.IOException e) {
            throw new ClassNotFoundException(name, e);
        }
    }

    static long deploy(boolean keeps) throws Exception {
        ClassLoader loader = new Deployment();
        Class<?> app = loader.loadClass("DefinedClasses$App");
        ((Runnable) app.getDeclaredConstructor().newInstance()).run();
        if (keeps) KEPT.add(loader);
        return bytesOf("DefinedClasses$App").length + bytesOf("DefinedClasses$Conf").length
                + bytesOf("DefinedClasses$Other").length;
    }

    /** Each loader has a proxy class of its own for this interface. */
    static Object proxy(int index) {
        ClassLoader loader = new ClassLoader(DefinedClasses.class.getClassLoader()) {};
        Object proxy = Proxy.newProxyInstance(loader, new Class<?>[] {Callable.class}, (self, method, args) -> index);
        KEPT.add(proxy);
        return proxy;
    }

    static Object hidden(boolean keeps) throws Throwable {
        byte[] bytes = bytesOf("DefinedClasses$Pattern");
        Class<?> made = ANONYMOUS == null
                ? MethodHandles.lookup().defineHiddenClass(bytes, true).lookupClass()
                : (Class<?>) ANONYMOUS.invokeExact(DefinedClasses.class, bytes, (Object[]) null);
        if (keeps) KEPT.add(made);
        return null;
    }

    /** Links a lambda again and again, as a generator of classes does. */
    static Object lambda() throws Throwable {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        MethodType type = MethodType.methodType(String.class);
        MethodHandle target = lookup.findStatic(DefinedClasses.class, "text", type);
        CallSite site = LambdaMetafactory.metafactory(
                lookup, "get", MethodType.methodType(Supplier.class), MethodType.methodType(Object.class), target, type);
        Supplier<?> made = (Supplier<?>) site.getTarget().invoke();
        KEPT.add(made);
        return made;
    }

    static String text() {
        return "text";
    }

    /** Bytes of metaspace of the living classes of all {@link Deployment}s, as the VM says. */
    static long metaspace() throws Exception {
        String[] none = {};
        String told = (String) ManagementFactory.getPlatformMBeanServer().invoke(
                new ObjectName("com.sun.management:type=DiagnosticCommand"), "vmClassloaderStats",
                new Object[] {none}, new String[] {String[].class.getName()});
        // JDK 17 has words there.
        long unit = Runtime.version().feature() == 17 ? 8 : 1;
        long sum = 0;
        for (String line : told.lines().filter(line -> line.endsWith(" " + Deployment.class.getName())).collect(Collectors.toList())) {
            sum += Long.parseLong(line.trim().split("\\s+")[5]) * unit;
        }
        return sum;
    }

    public static void main(String[] args) throws Throwable {
        // What the JDK loads for the first of each belongs to no number.
        deploy(true);
        proxy(0);
        hidden(true);
        lambda();
        int first = 0;
        if (args.length > 0) {
            // The agent comes now, and the test creates the file.
            while (!new java.io.File(args[0]).exists()) {
                System.out.println("working");
                Thread.sleep(20);
            }
            first = 1;
        }
        long loaded = CLASSES.getTotalLoadedClassCount();
        long bytes = 0;
        for (int i = 1; i < LOADERS; i++) bytes = deploy(i % 2 == 0);
        for (int i = 1; i < PROXIES; i++) proxy(i);
        for (int i = 1; i < HIDDEN; i++) hidden(i % 2 == 0);
        for (int i = 1; i < LAMBDAS; i++) lambda();
        loaded = CLASSES.getTotalLoadedClassCount() - loaded;
        long unloaded = -1;
        // The VM unloads classes in a full collection, and reports tags a little later.
        for (int i = 0; i < 100 && unloaded != CLASSES.getUnloadedClassCount(); i++) {
            unloaded = CLASSES.getUnloadedClassCount();
            System.gc();
            Thread.sleep(200);
        }
        System.out.println("deploy " + (LOADERS - first) * 3 + " " + (LOADERS / 2) * 3);
        System.out.println("loaders " + (LOADERS - first) + " " + LOADERS / 2);
        System.out.println("bytes " + (LOADERS - first) * bytes + " " + (LOADERS / 2) * bytes);
        System.out.println("proxy " + (PROXIES - first) + " 0");
        System.out.println("hidden " + (HIDDEN - first) + " " + HIDDEN / 2);
        System.out.println("lambda " + (LAMBDAS - first) + " 0");
        // The first of each came before the first count: three classes of a loader, and three others.
        System.out.println("loaded " + (loaded + (1 - first) * 6) + " " + unloaded);
        System.out.println("metaspace " + metaspace());
        System.out.println("done");
        if (args.length > 0) Thread.sleep(Long.MAX_VALUE);
    }
}
