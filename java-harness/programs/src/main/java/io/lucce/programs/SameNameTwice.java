package io.lucce.programs;

import static org.objectweb.asm.Opcodes.ACC_PUBLIC;
import static org.objectweb.asm.Opcodes.ACC_STATIC;
import static org.objectweb.asm.Opcodes.ILOAD;
import static org.objectweb.asm.Opcodes.INVOKESTATIC;
import static org.objectweb.asm.Opcodes.IRETURN;

import io.lucce.CallContext;
import java.lang.reflect.Method;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;

/** Loaders that define classes of the same name whose code, lines and methods differ. */
public final class SameNameTwice {
    static final String NAME = "io.lucce.programs.generated.Twin";

    public static void main(String[] args) throws Exception {
        Method[] methods = new Method[20];
        for (int i = 0; i < methods.length; i++) {
            methods[i] = define(i).getMethod("run", int.class);
        }
        for (int round = 0; round < Repeats.of(50); round++) {
            for (int i = 0; i < methods.length; i++) {
                Check.equal(round + i, methods[i].invoke(null, round));
                Check.that(CallContext.current(), new Throwable());
            }
        }
        Fresh[] loaders = {new Fresh(Fresh.class.getPackageName() + ".Bridge"), new Fresh(BridgeMethods.class.getName())};
        for (Fresh loader : loaders) {
            Class<?> copy = loader.loadClass(BridgeMethods.class.getName());
            Check.equal(false, copy == BridgeMethods.class);
            Method generic = copy.getDeclaredMethod("generic", int.class);
            generic.setAccessible(true);
            for (int i = 0; i < 20; i++) {
                generic.invoke(null, i);
                BridgeMethods.generic(i);
                Check.that(CallContext.current(), new Throwable());
            }
        }
        Check.done();
    }

    /** Called by the twins. */
    public static int called(int n) {
        Check.that(CallContext.current(), new Throwable());
        return n;
    }

    private static Class<?> define(int variant) throws Exception {
        byte[] bytes = twin(variant);
        return new ClassLoader(SameNameTwice.class.getClassLoader()) {
            @Override
            protected Class<?> findClass(String name) {
                return defineClass(name, bytes, 0, bytes.length);
            }
        }.loadClass(NAME);
    }

    /** run(n) calls a method of a name of its own, on lines of its own, which checks and counts. */
    static byte[] twin(int variant) {
        ClassWriter writer = Generated.start(NAME);
        writer.visitSource("Twin" + variant % 3 + ".java", null);
        Generated.line = 100 * (variant + 1);
        String target = NAME.replace('.', '/');
        for (int i = 0; i < variant; i++) {
            MethodVisitor other = writer.visitMethod(ACC_STATIC, "other" + i, "()V", null, null);
            other.visitCode();
            Generated.check(other);
            other.visitInsn(org.objectweb.asm.Opcodes.RETURN);
            other.visitMaxs(0, 0);
            other.visitEnd();
        }
        MethodVisitor step = writer.visitMethod(ACC_STATIC, "step" + variant, "(I)I", null, null);
        step.visitCode();
        Generated.check(step);
        step.visitVarInsn(ILOAD, 0);
        step.visitMethodInsn(INVOKESTATIC, "io/lucce/programs/SameNameTwice", "called", "(I)I", false);
        Generated.push(step, variant);
        step.visitInsn(org.objectweb.asm.Opcodes.IADD);
        step.visitInsn(IRETURN);
        step.visitMaxs(0, 0);
        step.visitEnd();
        MethodVisitor run = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "run", "(I)I", null, null);
        run.visitCode();
        for (int i = 0; i < variant; i++) {
            Generated.nextLine(run);
            run.visitMethodInsn(INVOKESTATIC, target, "other" + i, "()V", false);
        }
        run.visitVarInsn(ILOAD, 0);
        Generated.nextLine(run);
        run.visitMethodInsn(INVOKESTATIC, target, "step" + variant, "(I)I", false);
        run.visitInsn(IRETURN);
        run.visitMaxs(0, 0);
        run.visitEnd();
        return Generated.end(writer);
    }
}
