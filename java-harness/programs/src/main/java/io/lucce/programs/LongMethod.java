package io.lucce.programs;

import static org.objectweb.asm.Opcodes.*;

import io.lucce.CallContext;
import java.lang.reflect.Method;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;

/**
 * A method of 6,500 bytes of code, which HotSpot compiles, and of more than 8,000 with its hooks, which it would leave to the
 * interpreter.
 */
public final class LongMethod {
    private static final String NAME = "io.lucce.programs.generated.Long";
    private static final int CALLS = 500;
    private static final int RUNS = 6_000;
    static Object kept;

    public static void main(String[] args) throws Exception {
        Method run = Generated.define(NAME, generate()).getMethod("run", int.class);
        int sum = 0;
        for (int i = 0; i < RUNS; i++) {
            sum += (int) run.invoke(null, i);
        }
        Check.equal(CALLS * (RUNS * (RUNS - 1) / 2), sum);
        Check.done();
    }

    /** Called by the generated method: returns what it is given. */
    public static int step(int n) {
        if (n % 1000 == 999) {
            kept = new byte[n];
            Check.that(CallContext.current(), new Throwable());
        }
        return n;
    }

    /** {@code int run(int n) { int r = 0; r += step(n); … return r; }}, and as many additions of zero as fill the size. */
    private static byte[] generate() {
        ClassWriter writer = Generated.start(NAME);
        MethodVisitor code = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "run", "(I)I", null, null);
        code.visitCode();
        code.visitInsn(ICONST_0);
        code.visitVarInsn(ISTORE, 1);
        for (int call = 0; call < CALLS; call++) {
            Generated.nextLine(code);
            code.visitVarInsn(ILOAD, 1);
            code.visitVarInsn(ILOAD, 0);
            code.visitMethodInsn(INVOKESTATIC, "io/lucce/programs/LongMethod", "step", "(I)I", false);
            code.visitInsn(IADD);
            code.visitVarInsn(ISTORE, 1);
            // Three bytes each.
            code.visitIincInsn(1, 0);
            code.visitIincInsn(1, 0);
        }
        code.visitVarInsn(ILOAD, 1);
        code.visitInsn(IRETURN);
        code.visitMaxs(0, 0);
        code.visitEnd();
        return Generated.end(writer);
    }
}
