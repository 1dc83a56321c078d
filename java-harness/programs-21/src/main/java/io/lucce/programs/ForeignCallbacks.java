package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.util.Optional;

/**
 * C code that calls Java many times in one call: qsort and its comparator, without JNI.
 *
 * <p>By reflection, because {@code java.lang.foreign} is there from JDK 22 on and this is compiled for 21.
 */
public final class ForeignCallbacks {
    private static final String PACKAGE = "java.lang.foreign.";
    private static final int LENGTH = 40;
    static volatile Object kept;
    static int compared;

    public static void main(String[] args) throws Throwable {
        Object linker = call("Linker", null, "nativeLinker");
        Object address = type("ValueLayout").getField("ADDRESS").get(null);
        Object ints = type("ValueLayout").getField("JAVA_INT").get(null);
        Object size = type("ValueLayout").getField("JAVA_LONG").get(null);
        Object arena = call("Arena", null, "ofShared");

        Object sorting = function(null, address, size, size, address);
        Object symbol = ((Optional<?>) call("SymbolLookup", call("Linker", linker, "defaultLookup"), "find", "qsort"))
                .orElseThrow();
        Object options = Array.newInstance(type("Linker$Option"), 0);
        MethodHandle sort = (MethodHandle) call("Linker", linker, "downcallHandle", symbol, sorting, options);

        Class<?> segment = type("MemorySegment");
        MethodHandle compare = MethodHandles.lookup()
                .findStatic(ForeignCallbacks.class, "compare", MethodType.methodType(int.class, Object.class, Object.class))
                .asType(MethodType.methodType(int.class, segment, segment));
        Object pointer = call("AddressLayout", address, "withTargetLayout", ints);
        Object stub = call("Linker", linker, "upcallStub", compare, function(ints, pointer, pointer), arena, options);

        for (int i = 0; i < 20; i++) {
            sorted(sort, stub, arena, size);
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(true, compared > 20 * LENGTH);
        Check.done();
    }

    private static void sorted(MethodHandle sort, Object stub, Object arena, Object alignment) throws Throwable {
        Object memory = call("Arena", arena, "allocate", 4L * LENGTH, 8L);
        java.nio.ByteBuffer bytes = (java.nio.ByteBuffer) call("MemorySegment", memory, "asByteBuffer");
        java.nio.IntBuffer buffer = bytes.order(java.nio.ByteOrder.nativeOrder()).asIntBuffer();
        for (int i = 0; i < LENGTH; i++) {
            buffer.put(i, i * 7919 % LENGTH);
        }
        sort.invoke(memory, (long) LENGTH, 4L, stub);
        Check.that(CallContext.current(), new Throwable());
        for (int i = 0; i < LENGTH; i++) {
            Check.equal(i, buffer.get(i));
        }
    }

    /** Called by C, with its two elements. */
    static int compare(Object a, Object b) {
        compared++;
        kept = new byte[64];
        Check.that(CallContext.current(), new Throwable());
        int left = element(a);
        Check.that(CallContext.current(), new Throwable());
        return Integer.compare(left, element(b));
    }

    private static int element(Object segment) {
        try {
            java.nio.ByteBuffer bytes = (java.nio.ByteBuffer) call("MemorySegment", segment, "asByteBuffer");
            return bytes.order(java.nio.ByteOrder.nativeOrder()).getInt(0);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A C function's type; null: returns nothing. */
    private static Object function(Object result, Object... arguments) throws ReflectiveOperationException {
        Object layouts = Array.newInstance(type("MemoryLayout"), arguments.length);
        for (int i = 0; i < arguments.length; i++) {
            Array.set(layouts, i, arguments[i]);
        }
        return result == null
                ? call("FunctionDescriptor", null, "ofVoid", layouts)
                : call("FunctionDescriptor", null, "of", result, layouts);
    }

    private static Class<?> type(String name) throws ClassNotFoundException {
        return Class.forName(PACKAGE + name);
    }

    /** The public method of that name which takes these arguments. */
    private static Object call(String type, Object receiver, String name, Object... arguments)
            throws ReflectiveOperationException {
        for (java.lang.reflect.Method method : type(type).getMethods()) {
            if (method.getName().equals(name) && takes(method.getParameterTypes(), arguments)) {
                return method.invoke(receiver, arguments);
            }
        }
        throw new NoSuchMethodException(type + "." + name);
    }

    private static boolean takes(Class<?>[] parameters, Object[] arguments) {
        if (parameters.length != arguments.length) {
            return false;
        }
        for (int i = 0; i < parameters.length; i++) {
            Class<?> boxed = MethodType.methodType(parameters[i]).wrap().returnType();
            if (!boxed.isInstance(arguments[i])) {
                return false;
            }
        }
        return true;
    }
}
