package io.lucce.programs;

import static org.objectweb.asm.Opcodes.*;

import io.lucce.CallContext;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;

/**
 * A class whose constant pool has no entry left for a hook: it passes through untouched. Its
 * methods call, recur, throw and catch; the frames of others must stay right. Its own frames may be
 * missing from numbers.
 */
public final class FullConstantPool {
    private static final String NAME = "io.lucce.programs.generated.Full";
    private static final String INTERNAL = NAME.replace('.', '/');
    static Object kept;
    static int called;

    public static void main(String[] args) throws Exception {
        Class<?> full = Generated.define(NAME, generate());
        Method run = full.getMethod("run", int.class);
        Method fail = full.getMethod("fail", int.class);
        for (int i = 0; i < Repeats.of(30); i++) {
            kept = new byte[230];
            Check.equal(10, run.invoke(null, 10));
            Check.that(CallContext.current(), new Throwable());
            try {
                fail.invoke(null, 6);
                Check.wrong("must throw");
            } catch (InvocationTargetException e) {
                Check.equal("at the bottom", e.getCause().getMessage());
                Check.that(CallContext.current(), new Throwable());
            }
            instrumented(fail, 3);
            Check.that(CallContext.current(), new Throwable());
        }
        Check.equal(Repeats.of(30) * 11, called);
        Check.done();
    }

    private static void instrumented(Method fail, int depth) throws Exception {
        kept = new byte[231];
        Check.that(CallContext.current(), new Throwable());
        if (depth > 0) {
            instrumented(fail, depth - 1);
            Check.that(CallContext.current(), new Throwable());
            return;
        }
        try {
            fail.invoke(null, 2);
        } catch (InvocationTargetException e) {
            kept = new byte[232];
            Check.that(CallContext.current(), new Throwable());
        }
        Check.that(CallContext.current(), new Throwable());
    }

    /** Called by the generated class. */
    public static void step(int n) {
        called++;
        kept = new byte[233];
        Check.thatAbove(NAME, CallContext.current(), new Throwable());
        if (n < 0) {
            throw new IllegalStateException("at the bottom");
        }
    }

    /** Called by the generated class. */
    public static void thrower(int n) {
        kept = new byte[234];
        Check.thatAbove(NAME, CallContext.current(), new Throwable());
        if (n == 0) {
            throw new IllegalStateException("at the bottom");
        }
        thrower(n - 1);
    }

    private static byte[] generate() {
        ClassWriter writer = Generated.start(NAME);
        String program = "io/lucce/programs/FullConstantPool";

        // int run(int n): step(n); try { thrower(n) } catch (IllegalStateException e) {}; 0 or run(n-1)+1
        MethodVisitor run = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "run", "(I)I", null, null);
        Label from = new Label();
        Label to = new Label();
        Label handler = new Label();
        Label more = new Label();
        Label after = new Label();
        run.visitCode();
        run.visitTryCatchBlock(from, to, handler, "java/lang/IllegalStateException");
        Generated.nextLine(run);
        run.visitVarInsn(ILOAD, 0);
        run.visitMethodInsn(INVOKESTATIC, program, "step", "(I)V", false);
        run.visitLabel(from);
        Generated.nextLine(run);
        run.visitVarInsn(ILOAD, 0);
        run.visitMethodInsn(INVOKESTATIC, program, "thrower", "(I)V", false);
        run.visitLabel(to);
        run.visitJumpInsn(GOTO, after);
        run.visitLabel(handler);
        run.visitInsn(POP);
        run.visitLabel(after);
        run.visitVarInsn(ILOAD, 0);
        run.visitJumpInsn(IFNE, more);
        run.visitInsn(ICONST_0);
        run.visitInsn(IRETURN);
        run.visitLabel(more);
        Generated.nextLine(run);
        run.visitVarInsn(ILOAD, 0);
        run.visitInsn(ICONST_1);
        run.visitInsn(ISUB);
        run.visitMethodInsn(INVOKESTATIC, INTERNAL, "run", "(I)I", false);
        run.visitInsn(ICONST_1);
        run.visitInsn(IADD);
        run.visitInsn(IRETURN);
        run.visitMaxs(0, 0);
        run.visitEnd();

        // void fail(int n): thrower(n)
        MethodVisitor fail = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "fail", "(I)V", null, null);
        fail.visitCode();
        Generated.nextLine(fail);
        fail.visitVarInsn(ILOAD, 0);
        fail.visitMethodInsn(INVOKESTATIC, program, "thrower", "(I)V", false);
        fail.visitInsn(RETURN);
        fail.visitMaxs(0, 0);
        fail.visitEnd();

        fill(writer);
        return Generated.end(writer);
    }

    /** Adds integers until the pool's last index, 65534, is taken. */
    private static void fill(ClassWriter writer) {
        writer.newUTF8("SourceFile");
        writer.newUTF8("Code");
        writer.newUTF8("LineNumberTable");
        writer.newUTF8("StackMapTable");
        int number = 1_000_000;
        while (writer.newConst(number++) < 65_534) {
            // newConst tells the index that it took.
        }
    }
}
