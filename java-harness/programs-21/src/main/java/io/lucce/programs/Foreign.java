package io.lucce.programs;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.Optional;

/**
 * {@code java.lang.foreign} by reflection: it is final from JDK 22 on, a preview in 21, and this is compiled for 21
 * without previews.
 */
final class Foreign {
    private static final String PACKAGE = "java.lang.foreign.";
    private static final Object LINKER;
    private static final Object OPTIONS;
    /** Layouts of C types. */
    static final Object ADDRESS;

    static final Object INT;
    static final Object LONG;
    /** Holds all memory until the program ends. */
    static final Object ARENA;

    static {
        try {
            LINKER = call("Linker", null, "nativeLinker");
            OPTIONS = Array.newInstance(type("Linker$Option"), 0);
            ADDRESS = type("ValueLayout").getField("ADDRESS").get(null);
            INT = type("ValueLayout").getField("JAVA_INT").get(null);
            LONG = type("ValueLayout").getField("JAVA_LONG").get(null);
            ARENA = call("Arena", null, "ofShared");
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private Foreign() {}

    /** A handle that calls the C function of this name in a library that the JVM or the loader of this class has loaded. */
    static MethodHandle downcall(String name, Object function) throws ReflectiveOperationException {
        Optional<?> loaded =
                (Optional<?>) call("SymbolLookup", call("SymbolLookup", null, "loaderLookup"), "find", name);
        Optional<?> symbol = loaded.isPresent()
                ? loaded
                : (Optional<?>) call("SymbolLookup", call("Linker", LINKER, "defaultLookup"), "find", name);
        return (MethodHandle) call("Linker", LINKER, "downcallHandle", symbol.orElseThrow(), function, OPTIONS);
    }

    /** A C function that calls the handle, as a segment. */
    static Object upcall(MethodHandle target, Object function) throws ReflectiveOperationException {
        return call("Linker", LINKER, "upcallStub", target, function, ARENA, OPTIONS);
    }

    static long address(Object segment) throws ReflectiveOperationException {
        return (long) call("MemorySegment", segment, "address");
    }

    /** A C function's type; null: returns nothing. */
    static Object function(Object result, Object... arguments) throws ReflectiveOperationException {
        Object layouts = Array.newInstance(type("MemoryLayout"), arguments.length);
        for (int i = 0; i < arguments.length; i++) {
            Array.set(layouts, i, arguments[i]);
        }
        return result == null
                ? call("FunctionDescriptor", null, "ofVoid", layouts)
                : call("FunctionDescriptor", null, "of", result, layouts);
    }

    static Class<?> type(String name) throws ClassNotFoundException {
        return Class.forName(PACKAGE + name);
    }

    /** Calls the public method of that name which takes these arguments. */
    static Object call(String type, Object receiver, String name, Object... arguments)
            throws ReflectiveOperationException {
        for (Method method : type(type).getMethods()) {
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
