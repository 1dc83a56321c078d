package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** C code that calls Java many times in one call: qsort and its comparator, without JNI. */
public final class ForeignCallbacks {
    private static final int LENGTH = 40;
    private static final int ROUNDS = Repeats.of(20);
    static volatile Object kept;
    static int compared;

    public static void main(String[] args) throws Throwable {
        Object size = Foreign.LONG;
        MethodHandle sort = Foreign.downcall("qsort", Foreign.function(null, Foreign.ADDRESS, size, size, Foreign.ADDRESS));
        Class<?> segment = Foreign.type("MemorySegment");
        MethodHandle compare = MethodHandles.lookup()
                .findStatic(ForeignCallbacks.class, "compare", MethodType.methodType(int.class, Object.class, Object.class))
                .asType(MethodType.methodType(int.class, segment, segment));
        Object pointer = Foreign.call("AddressLayout", Foreign.ADDRESS, "withTargetLayout", Foreign.INT);
        Object stub = Foreign.upcall(compare, Foreign.function(Foreign.INT, pointer, pointer));

        for (int i = 0; i < ROUNDS; i++) {
            sorted(sort, stub);
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(true, compared > ROUNDS * LENGTH);
        Check.done();
    }

    private static void sorted(MethodHandle sort, Object stub) throws Throwable {
        Object memory = Foreign.call("Arena", Foreign.ARENA, "allocate", 4L * LENGTH, 8L);
        java.nio.ByteBuffer bytes = (java.nio.ByteBuffer) Foreign.call("MemorySegment", memory, "asByteBuffer");
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
            java.nio.ByteBuffer bytes = (java.nio.ByteBuffer) Foreign.call("MemorySegment", segment, "asByteBuffer");
            return bytes.order(java.nio.ByteOrder.nativeOrder()).getInt(0);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
