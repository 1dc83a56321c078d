package io.lucce.programs;

import java.lang.invoke.MethodHandles;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Handle;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** A class whose {@code call()} has an invokedynamic that {@link VmCalls#bootstrap} cannot link. */
final class BrokenCallSite {
    private BrokenCallSite() {}

    static Class<?> define() throws IllegalAccessException {
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        int access = Opcodes.ACC_PUBLIC | Opcodes.ACC_FINAL | Opcodes.ACC_SUPER;
        writer.visit(Opcodes.V11, access, "io/lucce/programs/Broken", null, "java/lang/Object", null);
        int method = Opcodes.ACC_PUBLIC | Opcodes.ACC_STATIC;
        MethodVisitor call = writer.visitMethod(method, "call", "()V", null, null);
        call.visitCode();
        String type = "(Ljava/lang/Object;Ljava/lang/String;Ljava/lang/Object;)Ljava/lang/Object;";
        Handle bootstrap = new Handle(Opcodes.H_INVOKESTATIC, "io/lucce/programs/VmCalls", "bootstrap", type, false);
        call.visitInvokeDynamicInsn("broken", "()V", bootstrap);
        call.visitInsn(Opcodes.RETURN);
        call.visitMaxs(0, 0);
        call.visitEnd();
        writer.visitEnd();
        return MethodHandles.lookup().defineClass(writer.toByteArray());
    }
}
