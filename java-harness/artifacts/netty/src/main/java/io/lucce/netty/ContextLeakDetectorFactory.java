package io.lucce.netty;

import io.netty.util.ResourceLeakDetector;
import io.netty.util.ResourceLeakDetectorFactory;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup;
import java.lang.invoke.MethodType;
import java.util.concurrent.atomic.AtomicReference;

/** Makes detectors that record numbers. */
final class ContextLeakDetectorFactory extends ResourceLeakDetectorFactory {
    private final MethodHandle constructor;
    private final AtomicReference<String[]> excludedMethods;

    private ContextLeakDetectorFactory(MethodHandle constructor, AtomicReference<String[]> excludedMethods) {
        this.constructor = constructor;
        this.excludedMethods = excludedMethods;
    }

    /** {@code netty}: Netty's own class. */
    static ContextLeakDetectorFactory of(Class<?> detector, Class<?> netty) throws ReflectiveOperationException {
        MethodType type = MethodType.methodType(void.class, Class.class, int.class, AtomicReference.class);
        MethodHandle constructor = MethodHandles.lookup().findConstructor(detector, type);
        return new ContextLeakDetectorFactory(constructor, excludedMethods(netty));
    }

    /** Classes and methods, in turn, whose frames Netty leaves out of records. */
    @SuppressWarnings("unchecked")
    private static AtomicReference<String[]> excludedMethods(Class<?> netty) {
        try {
            Lookup lookup = MethodHandles.privateLookupIn(netty, MethodHandles.lookup());
            MethodHandle field = lookup.findStaticGetter(netty, "excludedMethods", AtomicReference.class);
            return (AtomicReference<String[]>) field.invoke();
        } catch (NoSuchFieldException other) {
            return new AtomicReference<>(new String[0]);
        } catch (Throwable impossible) {
            throw new LinkageError("reading a field", impossible);
        }
    }

    @Override
    @Deprecated
    public <T> ResourceLeakDetector<T> newResourceLeakDetector(Class<T> resource, int samplingInterval, long maxActive) {
        return newResourceLeakDetector(resource, samplingInterval);
    }

    @Override
    @SuppressWarnings("unchecked")
    public <T> ResourceLeakDetector<T> newResourceLeakDetector(Class<T> resource, int samplingInterval) {
        try {
            return (ResourceLeakDetector<T>) constructor.invoke(resource, samplingInterval, excludedMethods);
        } catch (RuntimeException | Error failure) {
            throw failure;
        } catch (Throwable impossible) {
            throw new LinkageError("making a detector", impossible);
        }
    }
}
