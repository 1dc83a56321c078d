package io.lucce.programs;

import static org.objectweb.asm.Opcodes.*;

import io.lucce.CallContext;
import java.lang.reflect.Method;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;

/** Classes of old versions: without frames, with subroutines (jsr and ret) as finally blocks. */
public final class OldClassFile {
    static Object kept;
    static int cleanups;

    public static void main(String[] args) throws Exception {
        for (int version : new int[] {V1_1, V1_2, V1_4, V1_5, V1_6}) {
            String name = "io.lucce.programs.generated.Old" + (version & 0xffff);
            boolean subroutines = (version & 0xffff) <= V1_5;
            Method run = Generated.define(name, generate(name, version, subroutines)).getMethod("run", int.class);
            for (int i = 0; i < Repeats.of(30); i++) {
                Check.equal(i % 3 == 0 ? -1 : i, run.invoke(null, i));
                Check.that(CallContext.current(), new Throwable());
            }
        }
        Check.equal(5 * Repeats.of(30), cleanups);
        Check.done();
    }

    /** Called by the generated classes. */
    public static int step(int n) {
        kept = new byte[260];
        Check.that(CallContext.current(), new Throwable());
        if (n % 3 == 0) {
            throw new IllegalStateException();
        }
        return n;
    }

    /** Called by the generated classes. */
    public static void cleanup() {
        cleanups++;
        kept = new byte[261];
        Check.that(CallContext.current(), new Throwable());
    }

    /** {@code try { r = step(n); } catch (IllegalStateException e) { r = -1; } finally { cleanup(); } return r;} */
    private static byte[] generate(String name, int version, boolean subroutines) {
        String program = "io/lucce/programs/OldClassFile";
        ClassWriter writer = Generated.start(name, version);
        MethodVisitor code = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "run", "(I)I", null, null);
        Label from = new Label();
        Label to = new Label();
        Label handler = new Label();
        Label subroutine = new Label();
        Label end = new Label();
        code.visitCode();
        code.visitTryCatchBlock(from, to, handler, "java/lang/IllegalStateException");
        Generated.check(code);
        code.visitLabel(from);
        Generated.nextLine(code);
        code.visitVarInsn(ILOAD, 0);
        code.visitMethodInsn(INVOKESTATIC, program, "step", "(I)I", false);
        code.visitVarInsn(ISTORE, 1);
        code.visitLabel(to);
        if (subroutines) {
            code.visitJumpInsn(JSR, subroutine);
        }
        code.visitJumpInsn(GOTO, end);
        code.visitLabel(handler);
        code.visitInsn(POP);
        Generated.check(code);
        code.visitInsn(ICONST_M1);
        code.visitVarInsn(ISTORE, 1);
        if (subroutines) {
            code.visitJumpInsn(JSR, subroutine);
            code.visitJumpInsn(GOTO, end);
            code.visitLabel(subroutine);
            code.visitVarInsn(ASTORE, 2);
            cleanup(code, program);
            code.visitVarInsn(RET, 2);
            code.visitLabel(end);
        } else {
            code.visitLabel(end);
            cleanup(code, program);
        }
        Generated.check(code);
        code.visitVarInsn(ILOAD, 1);
        code.visitInsn(IRETURN);
        code.visitMaxs(0, 0);
        code.visitEnd();
        return Generated.end(writer);
    }

    private static void cleanup(MethodVisitor code, String program) {
        Generated.nextLine(code);
        code.visitMethodInsn(INVOKESTATIC, program, "cleanup", "()V", false);
        Generated.check(code);
    }
}
