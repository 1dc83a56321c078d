package io.lucce.netty;

import io.lucce.CallContext;
import io.netty.util.ResourceLeakDetectorFactory;
import io.netty.util.ResourceLeakTracker;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup;

/**
 * Netty's leak detection with numbers of calling contexts in place of stack traces.
 *
 * <p>Netty's detector makes a {@code Throwable} for each access to a buffer at its levels {@code advanced} and {@code paranoid}.
 * Here each access keeps one number, and only a leak that is reported has stack traces. They are those that Netty would print.
 *
 * <pre>{@code
 * public static void main(String[] args) {
 *     LucceLeakDetection.install();                       // before the program uses Netty
 *     ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
 *     …
 * }
 * }</pre>
 *
 * <p>Levels, sampling, reports and listeners are Netty's own.
 */
public final class LucceLeakDetection {
    private static final System.Logger LOGGER = System.getLogger("io.lucce.netty");
    private static final String DETECTOR = "io/netty/util/ResourceLeakDetector.class";
    private static final String OWN_DETECTOR = "/io/lucce/netty/ContextLeakDetector.class";

    private static boolean isInstalled;

    private LucceLeakDetection() {}

    /**
     * Makes all of Netty's leak detectors from now on record numbers.
     *
     * <p>Netty's detector must not have been used yet. It has no method that others may replace, so its class is loaded here
     * with such a method.
     *
     * @return whether detectors record numbers now; false without the agent, and if Netty was used before, which is logged:
     *     then Netty's own detection goes on
     */
    public static synchronized boolean install() {
        if (!CallContext.isActive()) {
            return false;
        }
        if (isInstalled) {
            return true;
        }
        try {
            Lookup netty = MethodHandles.privateLookupIn(ResourceLeakTracker.class, MethodHandles.lookup());
            byte[] detector = read(ResourceLeakTracker.class, "/" + DETECTOR);
            Class<?> opened = netty.defineClass(new ClassFileEdit(detector).openMethod("track").bytes());
            byte[] own = read(LucceLeakDetection.class, OWN_DETECTOR);
            Class<?> replaced = MethodHandles.lookup().defineClass(
                    new ClassFileEdit(own).renameMethod("trackInContext", "track").bytes());
            ResourceLeakDetectorFactory.setResourceLeakDetectorFactory(ContextLeakDetectorFactory.of(replaced, opened));
            isInstalled = true;
            return true;
        } catch (ReflectiveOperationException | IOException | LinkageError | IllegalArgumentException failure) {
            LOGGER.log(System.Logger.Level.WARNING, "Netty's own leak detection goes on", failure);
            return false;
        }
    }

    private static byte[] read(Class<?> neighbour, String name) throws IOException {
        try (InputStream in = neighbour.getResourceAsStream(name)) {
            if (in == null) {
                throw new IOException("no " + name);
            }
            return in.readAllBytes();
        }
    }
}
