import io.lucce.CallContext;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.Arrays;
import java.util.concurrent.Callable;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * A Java agent, and a program with a class that its loader cannot read again: an agent that changes it is given it with hooks. Told
 * {@code twice}, the agent changes it two times and it asks for numbers behind each; told {@code full}, the agent fills its
 * constant pool and redefines it with that.
 */
public final class Silenced implements ClassFileTransformer {
    public static StackTraceElement[] expected;

    private static final String NAME = "Silenced$Asks";
    private static final String MADE = "made/Asks";

    private static Instrumentation instrumentation;
    private static byte[] given;
    private static boolean changes;

    public static final class Asks implements Callable<long[]> {
        @Override
        public long[] call() {
            return number(3);
        }

        private long[] number(int depth) {
            if (depth > 0) {
                return number(depth - 1);
            }
            long number = CallContext.current(); StackTraceElement[] frames = new Throwable().getStackTrace();
            CallContext.event("asked", 5);
            Silenced.expected = frames;
            return new long[] {number};
        }
    }

    private static final class Loader extends ClassLoader {
        Loader() {
            super(Silenced.class.getClassLoader());
        }

        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    public static void premain(String how, Instrumentation instrumentation) {
        Silenced.instrumentation = instrumentation;
        instrumentation.addTransformer(new Silenced(), true);
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> changed, ProtectionDomain domain, byte[] bytes) {
        if (changed == null || !MADE.equals(name)) {
            return null;
        }
        given = bytes;
        return changes ? changed(bytes) : null;
    }

    /** With a call in front of each method. */
    private static byte[] changed(byte[] bytes) {
        ClassReader reader = new ClassReader(bytes);
        ClassWriter writer = new ClassWriter(reader, 0);
        reader.accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(
                    int access, String name, String descriptor, String signature, String[] exceptions) {
                MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
                return new MethodVisitor(Opcodes.ASM9, next) {
                    @Override
                    public void visitCode() {
                        super.visitCode();
                        super.visitMethodInsn(Opcodes.INVOKESTATIC, "Silenced", "entered", "()V", false);
                    }
                };
            }
        }, 0);
        return writer.toByteArray();
    }

    private static volatile Object last;

    /** Allocates. */
    public static void entered() {
        last = new int[3];
    }

    /** As many constants as a class can have. */
    private static final int FULL = 65_535;
    /** Enough for hooks. */
    private static final int ROOM = 100;

    /** With so many constants. */
    private static byte[] filled(byte[] bytes, int constants) {
        ClassReader reader = new ClassReader(bytes);
        ClassWriter writer = new ClassWriter(reader, 0);
        reader.accept(writer, 0);
        int i = 1 << 30;
        while (writer.newConst(i) < constants - 1) {
            i++;
        }
        return writer.toByteArray();
    }

    private static byte[] renamed() throws IOException {
        byte[] template;
        try (InputStream in = Silenced.class.getResourceAsStream(NAME + ".class")) {
            template = in.readAllBytes();
        }
        var in = new DataInputStream(new ByteArrayInputStream(template));
        var bytes = new ByteArrayOutputStream();
        var out = new DataOutputStream(bytes);
        out.writeLong(in.readLong());
        int constants = in.readUnsignedShort();
        out.writeShort(constants);
        for (int i = 1; i < constants; i++) {
            int tag = in.readUnsignedByte();
            out.writeByte(tag);
            switch (tag) {
                case 1: {
                    String text = in.readUTF();
                    // Another class than its host knows.
                    boolean names = text.equals("NestHost") || text.equals("InnerClasses");
                    out.writeUTF(names ? "No" + text : text.replace(NAME, MADE));
                    break;
                }
                case 7:
                case 8:
                case 16:
                case 19:
                case 20:
                    out.writeShort(in.readUnsignedShort());
                    break;
                case 15:
                    out.writeByte(in.readUnsignedByte());
                    out.writeShort(in.readUnsignedShort());
                    break;
                case 5:
                case 6:
                    out.writeLong(in.readLong());
                    i++;
                    break;
                default:
                    out.writeInt(in.readInt());
            }
        }
        in.transferTo(out);
        return bytes.toByteArray();
    }

    public static void main(String[] args) throws Exception {
        boolean fills = args[0].equals("full");
        // Filled here, for the VM takes long to redefine a class with so many constants that it has not had.
        byte[] bytes = fills ? filled(renamed(), FULL - ROOM) : renamed();
        Class<?> made = new Loader().define(bytes);
        Callable<?> asks = (Callable<?>) made.getConstructor().newInstance();
        ask(asks);
        changes = !fills;
        instrumentation.retransformClasses(made);
        if (fills) {
            instrumentation.redefineClasses(new ClassDefinition(made, filled(given, FULL)));
            asks.call();
        } else {
            ask(asks);
            instrumentation.retransformClasses(made);
            ask(asks);
        }
        System.out.println("OK " + args[0]);
    }

    private static void ask(Callable<?> asks) throws Exception {
        long number = ((long[]) asks.call())[0];
        StackTraceElement[] found = CallContext.decode(number);
        if (!Arrays.equals(names(expected), names(found))) {
            throw new AssertionError(Arrays.toString(expected) + " decoded as " + Arrays.toString(found));
        }
    }

    private static Object[] names(StackTraceElement[] frames) {
        return Arrays.stream(frames)
                .map(one -> one.getClassName() + "." + one.getMethodName() + ":" + one.getLineNumber())
                .toArray();
    }
}
