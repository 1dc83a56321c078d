package io.lucce.netty;

import io.lucce.CallContext;
import io.netty.util.ResourceLeakDetectorFactory;
import io.netty.util.ResourceLeakTracker;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup;
import java.lang.invoke.MethodType;

/**
 * Netty's leak detection with numbers of calling contexts in place of stack traces.
 *
 * <p>Netty's detector makes a {@code Throwable} for each access to a buffer at its levels {@code advanced} and {@code paranoid}.
 * Here each access keeps one number, and only a leak that is reported has stack traces, with the frames that Netty would print.
 * If the context is unknown, a record keeps a stack trace, as Netty's does. Without the agent's hooks, each access walks the
 * stack.
 *
 * <pre>{@code
 * public static void main(String[] args) {
 *     LucceLeakDetection.install();                       // before the program uses Netty
 *     ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
 *     …
 * }
 * }</pre>
 *
 * <p>Levels, sampling, reports and listeners are Netty's own. Of more accesses than {@code io.netty.leakDetection.targetRecords}
 * says, the last ones are kept; Netty keeps the last one and random ones before it.
 */
public final class LucceLeakDetection {
    private static final System.Logger LOGGER = System.getLogger("io.lucce.netty");
    private static final String DETECTOR = "io/netty/util/ResourceLeakDetector.class";
    private static final String OWN_DETECTOR = "/io/lucce/netty/ContextLeakDetector.class";

    private static final String REFUSAL = "Netty's own leak detection goes on;"
            + " install() needs Netty 4.1.95 or later, and must come before Netty's detector is used";

    private static boolean isInstalled;

    private LucceLeakDetection() {}

    /**
     * Makes all of Netty's leak detectors from now on record numbers.
     *
     * <p>This needs Netty 4.1.95 or later. Netty's detector must not have been used yet. It has no method that others may
     * replace, so its class is loaded here with such a method.
     *
     * @return whether detectors record numbers now; false without the agent, and, which is logged, if Netty was used before or
     *     lacks what is needed: then Netty's own detection goes on
     */
    public static synchronized boolean install() {
        return CallContext.isActive() && (isInstalled || replaceDetector());
    }

    /** Replaces Netty's detector. Without the agent, each record is a stack trace. */
    static boolean replaceDetector() {
        try {
            Lookup netty = MethodHandles.privateLookupIn(ResourceLeakTracker.class, MethodHandles.lookup());
            byte[] detector = read(ResourceLeakTracker.class, "/" + DETECTOR);
            Class<?> opened = netty.defineClass(new ClassFileEdit(detector).openMethod("track").bytes());
            requireMembers(opened);
            byte[] own = read(LucceLeakDetection.class, OWN_DETECTOR);
            Class<?> replaced = MethodHandles.lookup().defineClass(
                    new ClassFileEdit(own).renameMethod("trackInContext", "track").bytes());
            ResourceLeakDetectorFactory.setResourceLeakDetectorFactory(ContextLeakDetectorFactory.of(replaced, opened));
            isInstalled = true;
            return true;
        } catch (ReflectiveOperationException | IOException | LinkageError | IllegalArgumentException failure) {
            LOGGER.log(System.Logger.Level.WARNING, REFUSAL, failure);
            return false;
        }
    }

    /** Finds all that {@code ContextLeakDetector} uses of Netty's detector: older versions lack some of it. */
    private static void requireMembers(Class<?> netty) throws ReflectiveOperationException {
        Lookup lookup = MethodHandles.privateLookupIn(netty, MethodHandles.lookup());
        Class<?> level = Class.forName(netty.getName() + "$Level", false, netty.getClassLoader());
        Class<?> listener = Class.forName(netty.getName() + "$LeakListener", false, netty.getClassLoader());
        MethodType ofTwoTexts = MethodType.methodType(void.class, String.class, String.class);
        lookup.findConstructor(netty, MethodType.methodType(void.class, Class.class, int.class));
        lookup.findStatic(netty, "getLevel", MethodType.methodType(level));
        lookup.findVirtual(netty, "track", MethodType.methodType(ResourceLeakTracker.class, Object.class));
        lookup.findVirtual(netty, "getInitialHint", MethodType.methodType(Object.class, String.class));
        lookup.findVirtual(netty, "needReport", MethodType.methodType(boolean.class));
        lookup.findVirtual(netty, "reportTracedLeak", ofTwoTexts);
        lookup.findVirtual(netty, "setLeakListener", MethodType.methodType(void.class, listener));
        lookup.findVirtual(listener, "onLeak", ofTwoTexts);
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
