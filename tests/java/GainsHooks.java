import io.lucce.CallContext;
import io.lucce.programs.Check;
import java.io.InputStream;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.List;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Methods in which nothing happens get code that allocates and calls, while others go on that have called them before. The class
 * is changed by a Java agent, which redefines it or transforms it again, or by a debugger ({@code Debugs}).
 */
public final class GainsHooks implements ClassFileTransformer {
    private static final String NAME = "GainsHooks$Code";
    /** So many calls of each thread behind each change. */
    private static final int CALLS = 40;

    private static Instrumentation instrumentation;
    private static boolean changes;
    static volatile boolean isDone;
    static volatile int round;

    /** What a thread does. */
    private static final class Worker extends Thread {
        private final Runnable body;
        /** Of this round: how often the thread came to the new code, or to the old one. */
        volatile int calls;
        volatile int seen = -1;

        Worker(String name, Runnable body) {
            super(name);
            this.body = body;
        }

        @Override
        public void run() {
            kept(1);
            body.run();
            kept(2);
            compare(CallContext.current(), new Throwable());
        }
    }

    static Object kept;

    private static final class Place {
        final long number;
        final StackTraceElement[] frames;

        Place(long number, StackTraceElement[] frames) {
            this.number = number;
            this.frames = frames;
        }
    }

    private static final List<Place> PLACES = new ArrayList<>();

    /** The JVM does not know the lines of code that has been replaced: methods are compared. */
    static void compare(long number, Throwable here) {
        Place place = new Place(number, here.getStackTrace());
        synchronized (PLACES) {
            PLACES.add(place);
        }
    }

    private static List<String> methods(StackTraceElement[] frames) {
        List<String> methods = new ArrayList<>();
        for (StackTraceElement frame : frames) {
            methods.add(frame.getClassName() + "." + frame.getMethodName());
        }
        return methods;
    }

    static void kept(int size) {
        kept = new byte[size];
        if (size > 0) {
            kept(size - 1);
        }
    }

    /** What the changed methods call. */
    public static void entered() {
        Worker worker = (Worker) Thread.currentThread();
        if (worker.seen != round) {
            worker.seen = round;
            worker.calls = 0;
        }
        if (worker.calls < CALLS) {
            kept(3);
            compare(CallContext.current(), new Throwable());
            worker.calls++;
        }
    }

    /** Changed while its methods run. */
    static final class Code {
        static volatile int ticks;
        static volatile int chained;

        private static void tick() {
            ticks++;
        }

        /** Becomes one that calls because the other one does. */
        private static void chain() {
            tick();
            chained++;
        }

        private void own() {
            ticks++;
        }

        /** Nothing happens here, so it has no hooks. */
        static void loop() {
            while (!isDone) {
                tick();
            }
        }

        static void chains() {
            while (!isDone) {
                chain();
            }
        }

        static void owns(Code code) {
            while (!isDone) {
                code.own();
            }
        }

        /** It keeps nothing: the hook before its only call is its last one. */
        static void here() {
            loop();
            kept(4);
        }

        /** It has hooks, but not before each call. */
        static void hooked() {
            kept(2);
            while (!isDone) {
                tick();
                kept = new Object();
                chain();
            }
            compare(CallContext.current(), new Throwable());
        }

        static void recursive(int depth) {
            if (depth > 0) {
                recursive(depth - 1);
                kept(1);
            } else {
                loop();
            }
            compare(CallContext.current(), new Throwable());
        }
    }

    public static void premain(String how, Instrumentation instrumentation) {
        GainsHooks.instrumentation = instrumentation;
        if (how.equals("retransform")) {
            instrumentation.addTransformer(new GainsHooks(), true);
        }
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> changed, ProtectionDomain domain, byte[] bytes) {
        return changes && NAME.equals(name) ? changed(bytes) : null;
    }

    /** With an object and a call in front of the methods that have none. */
    private static byte[] changed(byte[] bytes) {
        ClassReader reader = new ClassReader(bytes);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        reader.accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(
                    int access, String name, String descriptor, String signature, String[] exceptions) {
                MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
                if (!name.equals("tick") && !name.equals("own")) {
                    return next;
                }
                return new MethodVisitor(Opcodes.ASM9, next) {
                    @Override
                    public void visitCode() {
                        super.visitCode();
                        super.visitTypeInsn(Opcodes.NEW, "java/lang/Object");
                        super.visitInsn(Opcodes.POP);
                        super.visitMethodInsn(Opcodes.INVOKESTATIC, "GainsHooks", "entered", "()V", false);
                    }
                };
            }
        }, 0);
        return writer.toByteArray();
    }

    /** The debugger waits here, and gives the class the code of the file. */
    private static void stop(String file) {}

    private static void change(String how, boolean forth) throws Exception {
        byte[] plain;
        try (InputStream in = GainsHooks.class.getResourceAsStream(NAME + ".class")) {
            plain = in.readAllBytes();
        }
        byte[] bytes = forth ? changed(plain) : plain;
        switch (how) {
            case "retransform":
                changes = forth;
                instrumentation.retransformClasses(Code.class);
                break;
            case "redefine":
                instrumentation.redefineClasses(new ClassDefinition(Code.class, bytes));
                break;
            default: {
                Path file = Files.createTempFile("Code", ".class");
                Files.write(file, bytes);
                stop(file.toString());
                Files.delete(file);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        String how = args[0];
        Code code = new Code();
        List<Worker> workers = new ArrayList<>();
        workers.add(new Worker("loop", Code::loop));
        workers.add(new Worker("chains", Code::chains));
        workers.add(new Worker("owns", () -> Code.owns(code)));
        workers.add(new Worker("here", Code::here));
        workers.add(new Worker("hooked", Code::hooked));
        workers.add(new Worker("recursive", () -> Code.recursive(5)));
        workers.forEach(Thread::start);
        while (Code.ticks < 10_000 || Code.chained < 1_000) {
            Thread.sleep(1);
        }
        for (int i = 0; i < 2; i++) {
            round++;
            change(how, true);
            for (Worker worker : workers) {
                while (worker.isAlive() && (worker.seen != round || worker.calls < CALLS)) {
                    Thread.sleep(1);
                }
            }
            // Frames of both versions go on.
            Worker late = new Worker("late" + i, Code::hooked);
            workers.add(late);
            late.start();
            while (late.isAlive() && (late.seen != round || late.calls < CALLS)) {
                Thread.sleep(1);
            }
            if (i == 0) {
                change(how, false);
            }
        }
        isDone = true;
        for (Worker worker : workers) {
            worker.join();
            Check.equal(CALLS, worker.calls);
        }
        for (Place place : PLACES) {
            Check.equal(methods(place.frames), methods(CallContext.decode(place.number)));
        }
        Check.that(CallContext.current(), new Throwable());
        Check.done();
    }
}
