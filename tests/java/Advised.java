import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Proxy;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * A Java agent that puts a call in front of every method of the programs: as they are loaded, or, told {@code loaded},
 * later, and then in front of those of a class of the JDK, too.
 */
public final class Advised implements ClassFileTransformer {
    private static final int API = Opcodes.ASM9;
    private static final ThreadLocal<Object> LAST = new ThreadLocal<>();

    private static Class<?> generated;

    private final boolean onlyLoaded;

    private Advised(boolean onlyLoaded) {
        this.onlyLoaded = onlyLoaded;
    }

    @SuppressWarnings("deprecation")
    public static void premain(String how, Instrumentation instrumentation) throws Exception {
        boolean loaded = "loaded".equals(how);
        instrumentation.addTransformer(new Advised(loaded), loaded || "retransform".equals(how));
        if (loaded) {
            ClassLoader loader = ClassLoader.getSystemClassLoader();
            Class<?> check = Class.forName("io.lucce.programs.Check", false, loader);
            instrumentation.retransformClasses(check, ArrayList.class);
            // The class that runs programs, and their names.
            for (String name : System.getProperty("sun.java.command").split(" ")) {
                boolean isWhole = name.indexOf('.') >= 0;
                Class<?> program = Class.forName(isWhole ? name : "io.lucce.programs." + name, false, loader);
                instrumentation.retransformClasses(program);
                // Once more: it begins anew with what was there before.
                instrumentation.retransformClasses(program);
            }
            // The bytes of this one cannot be read again. It is not called.
            generated = Proxy.getProxyClass(loader, Runnable.class);
            instrumentation.retransformClasses(generated);
        }
    }

    /** Calls others, and they allocate. */
    public static void entered() {
        LAST.set(text(System.nanoTime()));
    }

    private static String text(long time) {
        return Long.toString(time).substring(1);
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> changed, ProtectionDomain domain, byte[] bytes) {
        boolean ofJdk = onlyLoaded && changed != null && (changed == ArrayList.class || changed == generated);
        if (name == null || onlyLoaded && changed == null || !ofJdk && !name.startsWith("io/lucce/programs/")) {
            return null;
        }
        ClassReader reader = new ClassReader(bytes);
        ClassWriter writer = new ClassWriter(reader, ofJdk ? ClassWriter.COMPUTE_MAXS : 0);
        reader.accept(new ClassVisitor(API, writer) {
            @Override
            public MethodVisitor visitMethod(
                    int access, String name, String descriptor, String signature, String[] exceptions) {
                return new Front(super.visitMethod(access, name, descriptor, signature, exceptions), ofJdk);
            }
        }, 0);
        return writer.toByteArray();
    }

    private static final class Front extends MethodVisitor {
        private final boolean ofJdk;

        Front(MethodVisitor next, boolean ofJdk) {
            super(API, next);
            this.ofJdk = ofJdk;
        }

        @Override
        public void visitCode() {
            super.visitCode();
            if (ofJdk) {
                // The boot loader does not know this class.
                super.visitLdcInsn(12345L);
                super.visitMethodInsn(Opcodes.INVOKESTATIC, "java/lang/Long", "toString", "(J)Ljava/lang/String;", false);
                super.visitInsn(Opcodes.POP);
            } else {
                super.visitMethodInsn(Opcodes.INVOKESTATIC, "Advised", "entered", "()V", false);
            }
        }
    }
}
