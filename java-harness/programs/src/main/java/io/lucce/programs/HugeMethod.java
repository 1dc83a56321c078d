package io.lucce.programs;

import static org.objectweb.asm.Opcodes.*;

import io.lucce.CallContext;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;

/**
 * A class with a method so near to 64 KB that no hook fits in: it passes through untouched. It
 * calls, is called, and catches what its callees throw; the frames of others must stay right.
 * Its own frames may be missing from numbers. A second class has a method of half the size, which
 * must still be instrumented.
 */
public final class HugeMethod {
    private static final String NAME = "io.lucce.programs.generated.Huge";
    static Object kept;
    static int called;

    public static void main(String[] args) throws Exception {
        Method huge = Generated.define(NAME, generate(NAME, 65_530, false)).getMethod("run", int.class);
        Method half = Generated.define(NAME + "Half", generate(NAME + "Half", 32_000, true)).getMethod("run", int.class);
        for (int i = 0; i < Repeats.of(30); i++) {
            around(huge, i);
            Check.that(CallContext.current(), new Throwable());
            around(half, i);
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(Repeats.of(30) * 2 * 5, called);
        Check.done();
    }

    private static void around(Method method, int n) throws Exception {
        kept = new byte[220];
        Check.equal(3 + n, method.invoke(null, n));
        Check.that(CallContext.current(), new Throwable());
        try {
            method.invoke(null, -1);
            Check.wrong("must throw");
        } catch (InvocationTargetException e) {
            Check.equal("negative", e.getCause().getMessage());
            Check.that(CallContext.current(), new Throwable());
        }
        kept = new byte[221];
    }

    /** Called by the generated methods: returns 1, or throws if told to. */
    public static int step(int n) {
        called++;
        kept = new byte[222];
        Check.thatAbove(NAME, CallContext.current(), new Throwable());
        if (n == 1) {
            deeper(5);
        }
        if (n == -1) {
            throw new IllegalArgumentException("negative");
        }
        return 1;
    }

    private static void deeper(int depth) {
        kept = new byte[depth];
        Check.thatAbove(NAME, CallContext.current(), new Throwable());
        if (depth == 0) {
            throw new IllegalStateException("caught by the generated method");
        }
        deeper(depth - 1);
    }

    /**
     * {@code int run(int n) { if (n == -1) step(-1); r = n; r += step(0); try { step(1); } catch
     * (IllegalStateException e) { r += step(2); } r += step(3); return r; }} and as many additions
     * of zero as fill the size. With checks, if its own frames are to be compared.
     */
    private static byte[] generate(String name, int size, boolean checks) {
        ClassWriter writer = Generated.start(name);
        MethodVisitor code = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "run", "(I)I", null, null);
        code.visitCode();
        Label positive = new Label();
        Label from = new Label();
        Label to = new Label();
        Label handler = new Label();
        Label after = new Label();
        code.visitTryCatchBlock(from, to, handler, "java/lang/IllegalStateException");
        code.visitVarInsn(ILOAD, 0);
        code.visitJumpInsn(IFGE, positive);
        step(code, -1);
        code.visitInsn(POP);
        code.visitLabel(positive);
        code.visitVarInsn(ILOAD, 0);
        code.visitVarInsn(ISTORE, 1);
        add(code, 0, checks);
        code.visitLabel(from);
        step(code, 1);
        code.visitInsn(POP);
        code.visitLabel(to);
        code.visitJumpInsn(GOTO, after);
        code.visitLabel(handler);
        code.visitInsn(POP);
        add(code, 2, checks);
        code.visitLabel(after);
        // iinc with a small operand is three bytes.
        for (int bytes = 0; bytes < size - 50; bytes += 3) {
            code.visitIincInsn(1, 0);
        }
        add(code, 3, checks);
        code.visitVarInsn(ILOAD, 1);
        code.visitInsn(IRETURN);
        code.visitMaxs(0, 0);
        code.visitEnd();
        return Generated.end(writer);
    }

    private static void add(MethodVisitor code, int argument, boolean checks) {
        if (checks) {
            Generated.check(code);
        }
        code.visitVarInsn(ILOAD, 1);
        step(code, argument);
        code.visitInsn(IADD);
        code.visitVarInsn(ISTORE, 1);
    }

    private static void step(MethodVisitor code, int argument) {
        Generated.nextLine(code);
        Generated.push(code, argument);
        code.visitMethodInsn(INVOKESTATIC, "io/lucce/programs/HugeMethod", "step", "(I)I", false);
    }
}
