package io.lucce.programs;

import io.lucce.CallContext;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** A method that C code calls throws: the JVM prints the exception and ends with 1. */
public final class ThrowingUpcall {
    static volatile Object kept;

    public static void main(String[] args) throws Throwable {
        if (!NativeLibrary.load()) {
            return;
        }
        Object type = Foreign.function(Foreign.INT, Foreign.INT);
        MethodType up = MethodType.methodType(int.class, int.class);
        Object stub = Foreign.upcall(MethodHandles.lookup().findStatic(ThrowingUpcall.class, "up", up), type);
        Check.equal(7, NativeLibrary.upcall(Foreign.address(stub), 7, 1));
        Check.that(CallContext.current(), new Throwable());
        if (Check.summary()) {
            NativeLibrary.upcall(Foreign.address(stub), 0, 1);
        }
    }

    /** Called by C. */
    static int up(int result) {
        kept = new byte[8];
        Check.that(CallContext.current(), new Throwable());
        if (result == 0) {
            fail(3);
        }
        return result;
    }

    private static void fail(int depth) {
        kept = new byte[depth];
        if (depth == 0) {
            throw new IllegalStateException("thrown to C");
        }
        fail(depth - 1);
    }
}
