package io.lucce.programs;

import static org.objectweb.asm.Opcodes.ACC_PUBLIC;
import static org.objectweb.asm.Opcodes.DUP;
import static org.objectweb.asm.Opcodes.INVOKESPECIAL;
import static org.objectweb.asm.Opcodes.INVOKESTATIC;
import static org.objectweb.asm.Opcodes.NEW;
import static org.objectweb.asm.Opcodes.V11;

import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;

/** What the programs that write classes have in common. */
final class Generated {
    static int line;

    private Generated() {}

    static ClassWriter start(String name) {
        return start(name, V11);
    }

    static ClassWriter start(String name, int version) {
        int compute = (version & 0xffff) < 50 ? ClassWriter.COMPUTE_MAXS : ClassWriter.COMPUTE_FRAMES;
        ClassWriter writer = new ClassWriter(compute) {
            @Override
            protected String getCommonSuperClass(String a, String b) {
                return "java/lang/Object";
            }
        };
        line = 1;
        writer.visit(version, ACC_PUBLIC, name.replace('.', '/'), null, "java/lang/Object", null);
        writer.visitSource(name.substring(name.lastIndexOf('.') + 1) + ".java", null);
        return writer;
    }

    static byte[] end(ClassWriter writer) {
        writer.visitEnd();
        return writer.toByteArray();
    }

    /** Defines the class in a loader of its own. */
    static Class<?> define(String name, byte[] bytes) throws ClassNotFoundException {
        return new ClassLoader(Generated.class.getClassLoader()) {
            @Override
            protected Class<?> findClass(String wanted) throws ClassNotFoundException {
                if (!wanted.equals(name)) {
                    throw new ClassNotFoundException(wanted);
                }
                return defineClass(name, bytes, 0, bytes.length);
            }
        }.loadClass(name);
    }

    static void nextLine(MethodVisitor code) {
        Label here = new Label();
        code.visitLabel(here);
        code.visitLineNumber(line++, here);
    }

    static void push(MethodVisitor code, int number) {
        code.visitLdcInsn(number);
    }

    /** {@code Check.that(CallContext.current(), new Throwable());} on a line of its own. */
    static void check(MethodVisitor code) {
        nextLine(code);
        code.visitMethodInsn(INVOKESTATIC, "io/lucce/CallContext", "current", "()J", false);
        code.visitTypeInsn(NEW, "java/lang/Throwable");
        code.visitInsn(DUP);
        code.visitMethodInsn(INVOKESPECIAL, "java/lang/Throwable", "<init>", "()V", false);
        code.visitMethodInsn(INVOKESTATIC, "io/lucce/programs/Check", "that", "(JLjava/lang/Throwable;)V", false);
    }
}
