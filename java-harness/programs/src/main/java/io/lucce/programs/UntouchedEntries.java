package io.lucce.programs;

import static org.objectweb.asm.Opcodes.*;

import io.lucce.CallContext;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Type;

/**
 * Methods that stay without hooks and that the VM enters by itself: class initialisers above all, from callers of several
 * kinds. {@code large}: too large for hooks; {@code full}: there is no room in the constant pool; {@code unread}: the agent
 * cannot read the class, and the VM can (it must not verify it).
 */
public final class UntouchedEntries {
    private static final String HERE = "io/lucce/programs/UntouchedEntries";
    private static final String PACKAGE = "io/lucce/programs/generated/";
    private static final int ALMOST_ALL = 65_500;

    static Object kept;
    static int steps;
    private static int number;
    private static String kind;

    /** How the VM is made to initialise a class. */
    private enum Trigger { NEW, GET, PUT, CALL, SUBCLASS, SUBCLASS_FIELD, IMPLEMENTATION, BOOTSTRAP }

    /** Defines classes by the name that one asks for, once each. */
    private static final class Loader extends ClassLoader {
        private final Map<String, byte[]> classes = new HashMap<>();

        Loader() {
            super(UntouchedEntries.class.getClassLoader());
        }

        void put(String internal, byte[] bytes) {
            classes.put(internal.replace('/', '.'), bytes);
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            byte[] bytes = classes.remove(name);
            if (bytes == null) {
                throw new ClassNotFoundException(name);
            }
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    private static final Loader LOADER = new Loader();

    public static void main(String[] args) throws Throwable {
        kind = args[0];
        for (Trigger trigger : Trigger.values()) {
            for (boolean fails : new boolean[] {false, true}) {
                compiled(trigger, fails);
            }
        }
        int initializers = steps;
        Check.equal(true, initializers >= 2 * Trigger.values().length);
        reflected();
        nested();
        loading();
        threads();
        natives();
        Check.done();
    }

    // ---- what the generated classes call ----------------------------------------------------------

    /** Leaves the pointer of the thread above the caller's slot. */
    public static void before() {
        kept = new byte[240];
        deeper(3);
    }

    public static void step() {
        steps++;
        kept = new byte[241];
        Check.that(CallContext.current(), new Throwable());
        deeper(2);
        Check.that(CallContext.current(), new Throwable());
    }

    private static void deeper(int depth) {
        kept = new byte[depth];
        if (depth > 0) {
            deeper(depth - 1);
        } else {
            Check.that(CallContext.current(), new Throwable());
        }
    }

    // ---- compiled callers -------------------------------------------------------------------------

    /** Each method initialises a class of its own. */
    private static void compiled(Trigger trigger, boolean fails) throws Exception {
        String[] methods = fails
                ? new String[] {"catching", "aboveCatching", "passing"}
                : new String[] {"run", "fresh", "here", "aboveLeaf", "looping"};
        for (String method : methods) {
            String name = "Caller" + number++;
            LOADER.put(PACKAGE + name, caller(PACKAGE + name, trigger, fails));
            Class<?> caller = LOADER.loadClass((PACKAGE + name).replace('/', '.'));
            kept = new byte[242];
            try {
                caller.getMethod(method).invoke(null);
                Check.equal(false, method.equals("passing"));
            } catch (InvocationTargetException e) {
                Check.equal(true, method.equals("passing") && e.getCause() instanceof LinkageError);
            }
            kept = new byte[243];
            Check.that(CallContext.current(), new Throwable());
        }
    }

    private static byte[] caller(String name, Trigger trigger, boolean fails) {
        String target = PACKAGE + "Target" + number++;
        LOADER.put(target, target(target, fails, trigger == Trigger.IMPLEMENTATION));
        String sub = PACKAGE + "Sub" + number++;
        ClassWriter subclass = Generated.start(sub);
        subclass.visit(V17, ACC_PUBLIC, sub, null,
                trigger == Trigger.IMPLEMENTATION ? "java/lang/Object" : target,
                trigger == Trigger.IMPLEMENTATION ? new String[] {target} : null);
        LOADER.put(sub, Generated.end(subclass));
        ClassWriter writer = Generated.start(name);
        method(writer, "run", code -> {
            call(code, "before");
            trigger(code, trigger, target, sub);
            allocate(code);
            Generated.check(code);
        });
        method(writer, "fresh", code -> {
            trigger(code, trigger, target, sub);
            allocate(code);
            call(code, "step");
        });
        // No hook before an event: its slot is where the pointer says.
        method(writer, "here", code -> {
            trigger(code, trigger, target, sub);
            allocate(code);
        });
        method(writer, "leaf", code -> trigger(code, trigger, target, sub));
        method(writer, "aboveLeaf", code -> {
            Generated.nextLine(code);
            code.visitMethodInsn(INVOKESTATIC, name, "leaf", "()V", false);
            call(code, "step");
        });
        method(writer, "looping", code -> {
            Label again = new Label();
            code.visitInsn(ICONST_3);
            code.visitVarInsn(ISTORE, 0);
            code.visitLabel(again);
            call(code, "before");
            trigger(code, trigger, target, sub);
            allocate(code);
            Generated.check(code);
            code.visitIincInsn(0, -1);
            code.visitVarInsn(ILOAD, 0);
            code.visitJumpInsn(IFGT, again);
        });
        method(writer, "catching", code -> {
            call(code, "before");
            caught(code, () -> trigger(code, trigger, target, sub));
            allocate(code);
            Generated.check(code);
        });
        method(writer, "leafCatching", code -> caught(code, () -> trigger(code, trigger, target, sub)));
        method(writer, "aboveCatching", code -> {
            Generated.nextLine(code);
            code.visitMethodInsn(INVOKESTATIC, name, "leafCatching", "()V", false);
            call(code, "step");
        });
        method(writer, "passing", code -> {
            call(code, "before");
            trigger(code, trigger, target, sub);
        });
        return Generated.end(writer);
    }

    private interface Body {
        void write(MethodVisitor code);
    }

    private static void method(ClassWriter writer, String name, Body body) {
        MethodVisitor code = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, name, "()V", null, null);
        code.visitCode();
        body.write(code);
        code.visitInsn(RETURN);
        code.visitMaxs(0, 0);
        code.visitEnd();
    }

    private static void caught(MethodVisitor code, Runnable body) {
        Label from = new Label();
        Label to = new Label();
        Label handler = new Label();
        Label after = new Label();
        code.visitTryCatchBlock(from, to, handler, "java/lang/Throwable");
        code.visitLabel(from);
        body.run();
        code.visitLabel(to);
        code.visitJumpInsn(GOTO, after);
        code.visitLabel(handler);
        code.visitInsn(POP);
        code.visitLabel(after);
    }

    private static void call(MethodVisitor code, String name) {
        Generated.nextLine(code);
        code.visitMethodInsn(INVOKESTATIC, HERE, name, "()V", false);
    }

    private static void allocate(MethodVisitor code) {
        Generated.nextLine(code);
        code.visitTypeInsn(NEW, "java/lang/Object");
        code.visitInsn(POP);
    }

    private static void trigger(MethodVisitor code, Trigger trigger, String target, String sub) {
        Generated.nextLine(code);
        switch (trigger) {
            case NEW -> {
                code.visitTypeInsn(NEW, target);
                code.visitInsn(POP);
            }
            case GET -> {
                code.visitFieldInsn(GETSTATIC, target, "value", "Ljava/lang/Object;");
                code.visitInsn(POP);
            }
            case PUT -> {
                code.visitInsn(ACONST_NULL);
                code.visitFieldInsn(PUTSTATIC, target, "value", "Ljava/lang/Object;");
            }
            case CALL -> code.visitMethodInsn(INVOKESTATIC, target, "touch", "()V", false);
            case SUBCLASS, IMPLEMENTATION -> {
                code.visitTypeInsn(NEW, sub);
                code.visitInsn(POP);
            }
            case SUBCLASS_FIELD -> {
                code.visitFieldInsn(GETSTATIC, sub, "value", "Ljava/lang/Object;");
                code.visitInsn(POP);
            }
            case BOOTSTRAP -> {
                String descriptor = "(Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/String;Ljava/lang/invoke/MethodType;)"
                        + "Ljava/lang/invoke/CallSite;";
                Handle handle = new Handle(H_INVOKESTATIC, target, "bootstrap", descriptor, false);
                code.visitInvokeDynamicInsn("touch", "()V", handle);
            }
        }
    }

    // ---- methods that stay as they are ------------------------------------------------------------

    /** With a field {@code value}, a method {@code touch} and an initialiser that calls. */
    private static byte[] target(String name, boolean fails, boolean isInterface) {
        ClassWriter writer = Generated.start(name);
        int access = isInterface ? ACC_PUBLIC | ACC_INTERFACE | ACC_ABSTRACT : ACC_PUBLIC;
        writer.visit(V17, access, name, null, "java/lang/Object", null);
        int fieldAccess = ACC_PUBLIC | ACC_STATIC | (isInterface ? ACC_FINAL : 0);
        writer.visitField(fieldAccess, "value", "Ljava/lang/Object;", null, null).visitEnd();
        method(writer, "touch", code -> {});
        // Only an interface with such a method is initialised with the classes that implement it.
        MethodVisitor given = writer.visitMethod(ACC_PUBLIC, "given", "()V", null, null);
        given.visitCode();
        given.visitInsn(RETURN);
        given.visitMaxs(0, 1);
        given.visitEnd();
        MethodVisitor bootstrap = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "bootstrap",
                "(Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/String;Ljava/lang/invoke/MethodType;)"
                        + "Ljava/lang/invoke/CallSite;", null, null);
        bootstrap.visitCode();
        body(bootstrap);
        bootstrap.visitVarInsn(ALOAD, 0);
        bootstrap.visitVarInsn(ALOAD, 2);
        bootstrap.visitMethodInsn(INVOKESTATIC, HERE, "link",
                "(Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/invoke/MethodType;)Ljava/lang/invoke/CallSite;", false);
        bootstrap.visitInsn(ARETURN);
        bootstrap.visitMaxs(0, 0);
        bootstrap.visitEnd();
        untouched(writer, ACC_STATIC, "<clinit>", code -> {
            body(code);
            if (fails) {
                code.visitTypeInsn(NEW, "java/lang/IllegalStateException");
                code.visitInsn(DUP);
                code.visitMethodInsn(INVOKESPECIAL, "java/lang/IllegalStateException", "<init>", "()V", false);
                code.visitInsn(ATHROW);
            } else {
                code.visitInsn(RETURN);
            }
        });
        return bytes(writer);
    }

    public static java.lang.invoke.CallSite link(MethodHandles.Lookup lookup, MethodType type) throws Exception {
        step();
        MethodHandle nothing = MethodHandles.lookup().findStatic(UntouchedEntries.class, "step", type);
        return new java.lang.invoke.ConstantCallSite(nothing);
    }

    private static void body(MethodVisitor code) {
        call(code, "step");
        allocate(code);
        call(code, "step");
        Generated.check(code);
    }

    private static void untouched(ClassWriter writer, int access, String name, Body body) {
        untouched(writer, access, name, "()V", body);
    }

    private static void untouched(ClassWriter writer, int access, String name, String descriptor, Body body) {
        MethodVisitor code = writer.visitMethod(access, name, descriptor, null, null);
        code.visitCode();
        if (kind.equals("large")) {
            for (int bytes = 0; bytes < ALMOST_ALL; bytes++) {
                code.visitInsn(NOP);
            }
        }
        body.write(code);
        code.visitMaxs(0, 0);
        code.visitEnd();
    }

    /** The class as the kind of the run wants it. */
    private static byte[] bytes(ClassWriter writer) {
        byte[] bytes = Generated.end(writer);
        return switch (kind) {
            case "full" -> withFullPool(bytes);
            case "unread" -> withShortSourceFile(bytes);
            default -> bytes;
        };
    }

    /** With so many more constants that there is no room for another one. */
    private static byte[] withFullPool(byte[] bytes) {
        ClassReader reader = new ClassReader(bytes);
        int more = 65_535 - reader.getItemCount();
        int end = reader.header;
        byte[] full = new byte[bytes.length + more * INTEGER];
        System.arraycopy(bytes, 0, full, 0, end);
        for (int i = 0; i < more; i++) {
            int at = end + i * INTEGER;
            full[at] = 3;
            full[at + 3] = (byte) (i >> 8);
            full[at + 4] = (byte) i;
        }
        System.arraycopy(bytes, end, full, end + more * INTEGER, bytes.length - end);
        full[8] = (byte) 0xff;
        full[9] = (byte) 0xff;
        return full;
    }

    /** A constant of this kind takes so many bytes. */
    private static final int INTEGER = 5;

    /** The VM reads two bytes of the attribute, whatever its length says, where it does not verify a class. */
    private static byte[] withShortSourceFile(byte[] bytes) {
        ClassReader reader = new ClassReader(bytes);
        byte[] wanted = "SourceFile".getBytes(StandardCharsets.ISO_8859_1);
        for (int i = 1; i < reader.getItemCount(); i++) {
            int at = reader.getItem(i);
            boolean found = at > 0 && bytes[at - 1] == 1 && bytes[at + 1] == wanted.length && bytes[at] == 0;
            for (int j = 0; found && j < wanted.length; j++) {
                found = bytes[at + 2 + j] == wanted[j];
            }
            int last = bytes.length - 8;
            if (found && bytes[last] == (byte) (i >> 8) && bytes[last + 1] == (byte) i) {
                bytes[last + 5] = 0;
                return bytes;
            }
        }
        throw new AssertionError("SourceFile is not the last attribute");
    }

    // ---- callers in the JDK -----------------------------------------------------------------------

    private static Class<?> newTarget(boolean fails) throws ClassNotFoundException {
        String target = PACKAGE + "Target" + number++;
        LOADER.put(target, target(target, fails, false));
        return Class.forName(target.replace('/', '.'), false, LOADER);
    }

    private static void reflected() throws Throwable {
        for (boolean fails : new boolean[] {false, true}) {
            Class<?> type = newTarget(fails);
            attempt(fails, () -> Class.forName(type.getName(), true, LOADER));
            Class<?> read = newTarget(fails);
            attempt(fails, () -> read.getField("value").get(null));
            Class<?> called = newTarget(fails);
            attempt(fails, () -> called.getMethod("touch").invoke(null));
            Class<?> got = newTarget(fails);
            MethodHandle getter = MethodHandles.lookup().findStaticGetter(got, "value", Object.class);
            attempt(fails, () -> getter.invoke());
            Class<?> touched = newTarget(fails);
            MethodHandle touch = MethodHandles.lookup().findStatic(touched, "touch", MethodType.methodType(void.class));
            attempt(fails, () -> touch.invoke());
            Class<?> ensured = newTarget(fails);
            attempt(fails, () -> MethodHandles.lookup().ensureInitialized(ensured));
        }
    }

    private interface Action {
        void run() throws Throwable;
    }

    private static void attempt(boolean fails, Action action) throws Throwable {
        before();
        try {
            action.run();
            Check.equal(false, fails);
        } catch (LinkageError e) {
            Check.equal(true, fails);
            Check.that(CallContext.current(), new Throwable());
        }
        kept = new byte[244];
        Check.that(CallContext.current(), new Throwable());
    }

    /** The initialiser of a class begins that of another one, before and after it has called. */
    private static void nested() throws Throwable {
        String inner = PACKAGE + "Target" + number++;
        String other = PACKAGE + "Target" + number++;
        String outer = PACKAGE + "Outer" + number++;
        LOADER.put(inner, target(inner, false, false));
        LOADER.put(other, target(other, true, false));
        ClassWriter writer = Generated.start(outer);
        writer.visitField(ACC_PUBLIC | ACC_STATIC, "value", "Ljava/lang/Object;", null, null).visitEnd();
        untouched(writer, ACC_STATIC, "<clinit>", code -> {
            trigger(code, Trigger.GET, inner, inner);
            call(code, "step");
            caught(code, () -> trigger(code, Trigger.GET, other, other));
            call(code, "step");
            Generated.check(code);
            code.visitInsn(RETURN);
        });
        LOADER.put(outer, bytes(writer));
        attempt(false, () -> Class.forName(outer.replace('/', '.'), true, LOADER));
    }

    // ---- other methods that the VM enters ---------------------------------------------------------

    /** The VM asks a loader whose {@code loadClass} stays as it is. */
    private static void loading() throws Throwable {
        String name = PACKAGE + "OwnLoader";
        ClassWriter writer = Generated.start(name);
        writer.visit(V17, ACC_PUBLIC, name, null, "java/lang/ClassLoader", null);
        MethodVisitor init = writer.visitMethod(ACC_PUBLIC, "<init>", "(Ljava/lang/ClassLoader;)V", null, null);
        init.visitCode();
        init.visitVarInsn(ALOAD, 0);
        init.visitVarInsn(ALOAD, 1);
        init.visitMethodInsn(INVOKESPECIAL, "java/lang/ClassLoader", "<init>", "(Ljava/lang/ClassLoader;)V", false);
        init.visitInsn(RETURN);
        init.visitMaxs(0, 0);
        init.visitEnd();
        MethodVisitor define = writer.visitMethod(ACC_PUBLIC, "define", "([B)Ljava/lang/Class;", null, null);
        define.visitCode();
        define.visitVarInsn(ALOAD, 0);
        define.visitInsn(ACONST_NULL);
        define.visitVarInsn(ALOAD, 1);
        define.visitInsn(ICONST_0);
        define.visitVarInsn(ALOAD, 1);
        define.visitInsn(ARRAYLENGTH);
        define.visitMethodInsn(
                INVOKEVIRTUAL, name, "defineClass", "(Ljava/lang/String;[BII)Ljava/lang/Class;", false);
        define.visitInsn(ARETURN);
        define.visitMaxs(0, 0);
        define.visitEnd();
        untouched(writer, ACC_PUBLIC, "loadClass", "(Ljava/lang/String;)Ljava/lang/Class;", code -> {
            call(code, "step");
            Generated.nextLine(code);
            code.visitVarInsn(ALOAD, 1);
            code.visitMethodInsn(INVOKESTATIC, HERE, "find", "(Ljava/lang/String;)Ljava/lang/Class;", false);
            code.visitInsn(ARETURN);
        });
        LOADER.put(name, bytes(writer));
        Class<?> type = LOADER.loadClass(name.replace('/', '.'));
        Object loader = type.getConstructor(ClassLoader.class).newInstance(UntouchedEntries.class.getClassLoader());
        String caller = PACKAGE + "Loads";
        String missing = PACKAGE + "Missing";
        ClassWriter calls = Generated.start(caller);
        method(calls, "found", code -> {
            call(code, "before");
            trigger(code, Trigger.NEW, HERE + "$Plain", null);
            allocate(code);
            Generated.check(code);
        });
        method(calls, "missing", code -> {
            call(code, "before");
            caught(code, () -> trigger(code, Trigger.NEW, missing, null));
            allocate(code);
            Generated.check(code);
        });
        method(calls, "leaf", code -> caught(code, () -> trigger(code, Trigger.NEW, missing + "2", null)));
        method(calls, "aboveLeaf", code -> {
            Generated.nextLine(code);
            code.visitMethodInsn(INVOKESTATIC, caller, "leaf", "()V", false);
            call(code, "step");
        });
        Class<?> made = (Class<?>) type.getMethod("define", byte[].class).invoke(loader, Generated.end(calls));
        for (String method : new String[] {"found", "missing", "aboveLeaf"}) {
            made.getMethod(method).invoke(null);
            Check.that(CallContext.current(), new Throwable());
        }
    }

    public static final class Plain {}

    public static Class<?> find(String name) throws ClassNotFoundException {
        kept = new byte[245];
        Check.that(CallContext.current(), new Throwable());
        if (name.contains("Missing")) {
            throw new ClassNotFoundException(name);
        }
        return Class.forName(name, false, UntouchedEntries.class.getClassLoader());
    }

    /** The first method of a thread stays as it is, and another one that native code calls. */
    private static Class<?> runner() throws ClassNotFoundException {
        String name = PACKAGE + "Runner" + number++;
        ClassWriter writer = Generated.start(name);
        writer.visit(V17, ACC_PUBLIC, name, null, "java/lang/Thread", null);
        MethodVisitor init = writer.visitMethod(ACC_PUBLIC, "<init>", "()V", null, null);
        init.visitCode();
        init.visitVarInsn(ALOAD, 0);
        init.visitMethodInsn(INVOKESPECIAL, "java/lang/Thread", "<init>", "()V", false);
        init.visitInsn(RETURN);
        init.visitMaxs(0, 0);
        init.visitEnd();
        String target = PACKAGE + "Target" + number++;
        LOADER.put(target, target(target, false, false));
        untouched(writer, ACC_PUBLIC, "run", code -> {
            trigger(code, Trigger.GET, target, null);
            body(code);
            code.visitInsn(RETURN);
        });
        LOADER.put(name, bytes(writer));
        return LOADER.loadClass(name.replace('/', '.'));
    }

    private static void threads() throws Throwable {
        Thread thread = (Thread) runner().getConstructor().newInstance();
        thread.start();
        thread.join();
        Check.that(CallContext.current(), new Throwable());
    }

    private static void natives() throws Throwable {
        if (System.getProperty("lucce.native") == null) {
            return;
        }
        NativeLibrary.load();
        Runnable once = (Runnable) runner().getConstructor().newInstance();
        NativeLibrary.twice(once);
        Check.that(CallContext.current(), new Throwable());
        for (boolean fails : new boolean[] {false, true}) {
            Class<?> type = newTarget(fails);
            // It clears what is thrown.
            attempt(false, () -> Check.equal(!fails, NativeLibrary.initialize(type)));
        }
    }
}
