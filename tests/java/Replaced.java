import com.sun.jdi.Bootstrap;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.AttachingConnector;
import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * A class whose code is replaced while frames run it: lines move by a thousand, and every other time instructions change, too. It
 * throws exceptions, from several threads in the end, and says what their own traces are, as {@code STACK method:line;… COUNT}. Told {@code agent} a Java agent
 * redefines and retransforms the class, told {@code debugger} a debugger does.
 */
public final class Replaced implements ClassFileTransformer {
    private static final Map<String, Integer> COUNTS = new TreeMap<>();

    private static Instrumentation instrumentation;
    private static boolean isDebugged;
    private static byte[] plain;
    private static byte[] wanted;
    private static int replaced;

    public static final class Swap {
        static void tick() {
            try {
                throw new IllegalStateException();
            } catch (IllegalStateException e) {
                note(e);
            }
        }

        static void loop(int depth) throws Exception {
            for (int round = 0; round < 4; round++) {
                for (int i = 0; i < 40; i++) {
                    tick();
                }
                replace();
                tick();
                if (depth > 0) {
                    loop(depth - 1);
                }
                tick();
            }
        }

        static void storm() {
            for (int i = 0; i < 2000; i++) {
                tick();
            }
        }
    }

    public static void premain(String arguments, Instrumentation instrumentation) {
        Replaced.instrumentation = instrumentation;
        instrumentation.addTransformer(new Replaced(), true);
    }

    public static void main(String[] args) throws Exception {
        try (InputStream file = Replaced.class.getResourceAsStream("Replaced$Swap.class")) {
            plain = file.readAllBytes();
        }
        if (args[0].equals("debugger")) {
            Debugger.attach();
            isDebugged = true;
        }
        Swap.loop(2);
        // Its code was replaced before this thread began.
        Thread later = new Thread(Swap::tick);
        later.start();
        later.join();
        // Its code is replaced at any moment of what three threads do.
        List<Thread> storm = Stream.generate(() -> new Thread(Swap::storm)).limit(3).collect(Collectors.toList());
        storm.forEach(Thread::start);
        while (storm.stream().anyMatch(Thread::isAlive)) {
            replace();
        }
        COUNTS.forEach((stack, count) -> System.out.println("STACK " + stack + " " + count));
        System.out.println("OK " + replaced);
        if (isDebugged) {
            Debugger.jvm.dispose();
        }
    }

    static synchronized void note(Throwable thrown) {
        StringBuilder stack = new StringBuilder();
        for (StackTraceElement frame : thrown.getStackTrace()) {
            if (frame.getClassName().equals("Replaced$Swap")) {
                stack.append(frame.getMethodName()).append(':').append(frame.getLineNumber()).append(';');
            }
        }
        COUNTS.merge(stack.toString(), 1, Integer::sum);
    }

    static void replace() throws Exception {
        replaced++;
        wanted = changed(replaced * 1000 % 30_000, replaced % 2 == 0);
        if (isDebugged) {
            Debugger.redefine(wanted);
        } else if (replaced % 3 == 0) {
            instrumentation.retransformClasses(Swap.class);
        } else {
            instrumentation.redefineClasses(new ClassDefinition(Swap.class, wanted));
        }
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> changed, ProtectionDomain domain, byte[] bytes) {
        return changed != null && "Replaced$Swap".equals(name) ? wanted : null;
    }

    /** The class with its lines moved, and with instructions of its own, if these differ. */
    private static byte[] changed(int moved, boolean differs) {
        ClassReader reader = new ClassReader(plain);
        ClassWriter writer = new ClassWriter(reader, 0);
        ClassVisitor visitor = new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(
                    int access, String name, String descriptor, String signature, String[] exceptions) {
                MethodVisitor made = super.visitMethod(access, name, descriptor, signature, exceptions);
                return new MethodVisitor(Opcodes.ASM9, made) {
                    @Override
                    public void visitCode() {
                        super.visitCode();
                        if (differs) {
                            visitInsn(Opcodes.NOP);
                        }
                    }

                    @Override
                    public void visitLineNumber(int line, Label start) {
                        super.visitLineNumber(line + moved, start);
                    }
                };
            }
        };
        reader.accept(visitor, 0);
        return writer.toByteArray();
    }

    /** Of this JVM itself. Run-time images may lack what it takes, so nothing else names its types. */
    private static final class Debugger {
        static VirtualMachine jvm;

        /** By the socket that the JVM's debugging agent listens at. */
        static void attach() throws Exception {
            Class<?> support = Class.forName("jdk.internal.vm.VMSupport");
            Properties properties = (Properties) support.getMethod("getAgentProperties").invoke(null);
            String address = properties.getProperty("sun.jdwp.listenerAddress");
            String port = address.substring(address.lastIndexOf(':') + 1);
            for (AttachingConnector connector : Bootstrap.virtualMachineManager().attachingConnectors()) {
                if (connector.name().equals("com.sun.jdi.SocketAttach")) {
                    var arguments = connector.defaultArguments();
                    arguments.get("hostname").setValue("127.0.0.1");
                    arguments.get("port").setValue(port);
                    jvm = connector.attach(arguments);
                    return;
                }
            }
            throw new IOException("no connector by socket");
        }

        static void redefine(byte[] bytes) {
            jvm.redefineClasses(Map.of(jvm.classesByName("Replaced$Swap").get(0), bytes));
        }
    }
}
