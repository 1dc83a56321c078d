import io.lucce.CallContext;
import io.lucce.programs.Check;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * A class with a method that is too large for hooks, and a Java agent that changes the class: the JVM forgets where it was to
 * stop in it, and is told again.
 */
public final class KeepsWatch implements ClassFileTransformer {
    private static final String NAME = "made/Large";
    private static final int ALMOST_ALL = 65_510;

    private static Instrumentation instrumentation;
    private static int line;
    static Object kept;

    public static void premain(String how, Instrumentation instrumentation) {
        KeepsWatch.instrumentation = instrumentation;
        instrumentation.addTransformer(new KeepsWatch(), true);
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> changed, ProtectionDomain domain, byte[] bytes) {
        return changed != null && NAME.equals(name) ? generate(line) : null;
    }

    public static void step() {
        kept = new byte[2];
        Check.that(CallContext.current(), new Throwable());
        deeper(3);
        Check.that(CallContext.current(), new Throwable());
    }

    private static void deeper(int depth) {
        kept = new byte[depth];
        if (depth > 0) {
            deeper(depth - 1);
        }
    }

    /** {@code run()} calls three times, on lines from {@code first} on. */
    private static byte[] generate(int first) {
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        writer.visit(Opcodes.V17, Opcodes.ACC_PUBLIC, NAME, null, "java/lang/Object", null);
        writer.visitSource("Large.java", null);
        MethodVisitor code =
                writer.visitMethod(Opcodes.ACC_PUBLIC | Opcodes.ACC_STATIC, "run", "()V", null, null);
        code.visitCode();
        for (int i = 0; i < ALMOST_ALL; i++) {
            code.visitInsn(Opcodes.NOP);
        }
        for (int i = 0; i < 3; i++) {
            Label here = new Label();
            code.visitLabel(here);
            code.visitLineNumber(first + i, here);
            code.visitMethodInsn(Opcodes.INVOKESTATIC, "KeepsWatch", "step", "()V", false);
        }
        code.visitInsn(Opcodes.RETURN);
        code.visitMaxs(0, 0);
        code.visitEnd();
        writer.visitEnd();
        return writer.toByteArray();
    }

    private static final class Loader extends ClassLoader {
        Loader() {
            super(KeepsWatch.class.getClassLoader());
        }

        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    private static void run(Class<?> large) throws Exception {
        kept = new byte[1];
        large.getMethod("run").invoke(null);
        Check.that(CallContext.current(), new Throwable());
    }

    public static void main(String[] args) throws Exception {
        line = 10;
        Class<?> large = new Loader().define(generate(line));
        run(large);
        for (int i = 0; i < 3; i++) {
            line += 10;
            instrumentation.retransformClasses(large);
            run(large);
            line += 10;
            instrumentation.redefineClasses(new ClassDefinition(large, generate(line)));
            run(large);
        }
        Check.done();
    }
}
