package io.lucce.programs;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.objectweb.asm.AnnotationVisitor;
import org.objectweb.asm.Attribute;
import org.objectweb.asm.ByteVector;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Class files that no compiler writes: beyond their limits, malformed where the JVM does not look, with hostile names.
 * Prints of each what the JVM makes of it, for comparison with a JVM without the agent. With {@code guarded}, by a
 * loader that knows only a few classes, and says which it is asked for; with {@code sound}, only what runs.
 */
public final class OddClasses implements Opcodes {
    static Object kept;
    static int taken;

    /** What the classes call. */
    public static void take() {
        taken++;
        kept = new int[3];
        deeper();
    }

    private static void deeper() {
        kept = new Object();
    }

    /** Prints the frames that the JVM shows. */
    public static void frames() {
        StringBuilder text = new StringBuilder();
        for (StackTraceElement frame : new Throwable().getStackTrace()) {
            if (frame.getClassName().startsWith("Odd")) {
                text.append(' ').append(frame.getMethodName()).append(':').append(frame.getLineNumber());
            }
        }
        System.out.println("frames" + text);
    }

    private interface Code {
        void write(MethodVisitor m);
    }

    private static final String HERE = "io/lucce/programs/OddClasses";
    private static final Map<String, byte[]> CLASSES = new LinkedHashMap<>();
    private static final Set<String> SOUND = new java.util.HashSet<>();

    private static ClassWriter begin(int version) {
        ClassWriter c = new ClassWriter(0);
        c.visit(version, ACC_PUBLIC | ACC_SUPER, "Odd", null, "java/lang/Object", null);
        c.visitSource("Odd.java", null);
        return c;
    }

    private static MethodVisitor go(ClassWriter c) {
        MethodVisitor m = c.visitMethod(ACC_PUBLIC | ACC_STATIC, "go", "()V", null, null);
        m.visitCode();
        return m;
    }

    private static void call(MethodVisitor m, String name, int line) {
        Label here = new Label();
        m.visitLabel(here);
        m.visitLineNumber(line, here);
        m.visitMethodInsn(INVOKESTATIC, HERE, name, "()V", false);
    }

    private static void body(MethodVisitor m) {
        m.visitTypeInsn(NEW, "java/lang/Object");
        m.visitInsn(DUP);
        m.visitMethodInsn(INVOKESPECIAL, "java/lang/Object", "<init>", "()V", false);
        m.visitInsn(POP);
        call(m, "take", 11);
        call(m, "take", 12);
    }

    private static void finish(String name, boolean sound, ClassWriter c) {
        c.visitEnd();
        put(name, sound, c.toByteArray());
    }

    private static void put(String name, boolean sound, byte[] bytes) {
        CLASSES.put(name, bytes);
        if (sound) {
            SOUND.add(name);
        }
    }

    private static void limit(String name, int version, int stack, int locals, Code code) {
        ClassWriter c = begin(version);
        MethodVisitor m = go(c);
        code.write(m);
        body(m);
        m.visitInsn(RETURN);
        m.visitMaxs(stack, locals);
        m.visitEnd();
        finish(name + "-" + version, false, c);
    }

    private static void limits(int version) {
        limit("store", version, 2, 0, m -> {
            m.visitLdcInsn(0x414141414000L);
            m.visitVarInsn(LSTORE, 0);
        });
        limit("load", version, 3, 0, m -> {
            m.visitVarInsn(LLOAD, 0);
            m.visitInsn(POP2);
        });
        limit("second", version, 2, 2, m -> {
            m.visitInsn(LCONST_1);
            m.visitVarInsn(LSTORE, 1);
        });
        limit("wide", version, 2, 299, m -> {
            m.visitInsn(DCONST_1);
            m.visitVarInsn(DSTORE, 299);
        });
        limit("iinc", version, 2, 1, m -> {
            m.visitInsn(ICONST_1);
            m.visitVarInsn(ISTORE, 1);
            m.visitIincInsn(1, 1);
        });
        limit("stack", version, 2, 0, m -> {
            m.visitInsn(LCONST_1);
            m.visitInsn(ICONST_0);
            m.visitInsn(POP);
            m.visitInsn(POP2);
        });
        limit("dup", version, 2, 0, m -> {
            m.visitInsn(LCONST_1);
            m.visitInsn(DUP2);
            m.visitInsn(POP2);
            m.visitInsn(POP2);
        });
        ClassWriter c = begin(version);
        MethodVisitor m = go(c);
        m.visitInsn(LCONST_1);
        m.visitMethodInsn(INVOKESTATIC, "Odd", "x", "(J)V", false);
        m.visitInsn(RETURN);
        m.visitMaxs(2, 0);
        m.visitEnd();
        for (int locals = 1; locals < 3; locals++) {
            ClassWriter both = begin(version);
            MethodVisitor first = go(both);
            first.visitInsn(LCONST_1);
            first.visitMethodInsn(INVOKESTATIC, "Odd", "x", "(J)V", false);
            first.visitInsn(RETURN);
            first.visitMaxs(2, 0);
            first.visitEnd();
            MethodVisitor x = both.visitMethod(ACC_PUBLIC | ACC_STATIC, "x", "(J)V", null, null);
            x.visitCode();
            body(x);
            x.visitInsn(RETURN);
            x.visitMaxs(2, locals);
            x.visitEnd();
            finish("arguments-" + locals + "-" + version, locals == 2, both);
        }
        // Falls off its end, into what is behind it, with a Throwable.
        c = begin(version);
        m = c.visitMethod(ACC_STATIC, "<clinit>", "()V", null, null);
        m.visitCode();
        body(m);
        m.visitInsn(ACONST_NULL);
        m.visitMaxs(3, 0);
        m.visitEnd();
        m = go(c);
        m.visitInsn(RETURN);
        m.visitMaxs(0, 0);
        m.visitEnd();
        finish("falls-" + version, false, c);
    }

    /** The operand of the instruction, or the index of SourceFile, becomes the first one behind the pool. */
    private static void indices() {
        for (int op : new int[] {LDC, GETSTATIC, CHECKCAST, INVOKESTATIC, NEW}) {
            ClassWriter c = begin(V1_8);
            MethodVisitor m = go(c);
            body(m);
            switch (op) {
                case LDC:
                    m.visitLdcInsn(77777);
                    break;
                case GETSTATIC:
                    m.visitFieldInsn(GETSTATIC, "Odd", "o", "I");
                    break;
                case NEW:
                    m.visitTypeInsn(NEW, "Odd");
                    break;
                case CHECKCAST:
                    m.visitInsn(ACONST_NULL);
                    m.visitTypeInsn(CHECKCAST, "Odd");
                    break;
                default:
                    m.visitMethodInsn(INVOKESTATIC, "Odd", "none", "()I", false);
            }
            m.visitInsn(POP);
            m.visitInsn(RETURN);
            m.visitMaxs(2, 0);
            m.visitEnd();
            c.visitEnd();
            byte[] bytes = c.toByteArray();
            int count = new ClassReader(bytes).getItemCount();
            // The operand is in front of pop, return, and no handlers.
            for (int at = bytes.length - 6; at > 0; at--) {
                if (bytes[at] == (byte) POP && bytes[at + 1] == (byte) RETURN && bytes[at + 2] == 0 && bytes[at + 3] == 0) {
                    bytes[at - 1] = (byte) count;
                    if (op != LDC) {
                        bytes[at - 2] = (byte) (count >> 8);
                    }
                    break;
                }
            }
            put("index-" + op, false, bytes);
        }
        ClassWriter c = begin(V1_8);
        MethodVisitor m = go(c);
        m.visitInsn(RETURN);
        m.visitMaxs(0, 0);
        m.visitEnd();
        c.visitEnd();
        byte[] bytes = c.toByteArray();
        bytes[bytes.length - 1] = (byte) new ClassReader(bytes).getItemCount();
        put("index-source", false, bytes);
    }

    private static void annotations() {
        for (String kind : List.of("two", "zero", "deep", "tag")) {
            ClassWriter c = begin(V17);
            MethodVisitor m = go(c);
            AnnotationVisitor first = m.visitAnnotation("LMarkXYZ;", true);
            if (kind.equals("deep")) {
                List<AnnotationVisitor> all = new ArrayList<>();
                AnnotationVisitor inner = first;
                for (int i = 0; i < 300; i++) {
                    inner = inner.visitAnnotation("v", "LMarkXYZ;");
                    all.add(inner);
                }
                Collections.reverse(all);
                all.forEach(AnnotationVisitor::visitEnd);
            } else if (kind.equals("tag")) {
                first.visit("v", 7);
            }
            first.visitEnd();
            body(m);
            m.visitInsn(RETURN);
            m.visitMaxs(2, 0);
            m.visitEnd();
            c.visitEnd();
            byte[] bytes = c.toByteArray();
            if (!kind.equals("deep")) {
                damage(bytes, kind);
            }
            put("annotation-" + kind, true, bytes);
        }
        for (String hidden : List.of(
                "Ljava/lang/invoke/LambdaForm$Hidden;",
                "Ljdk/internal/vm/annotation/Hidden;",
                "Ljdk/internal/vm/annotation/ChangesCurrentThread;")) {
            ClassWriter c = begin(V17);
            MethodVisitor m = go(c);
            m.visitAnnotation(hidden, true).visitEnd();
            body(m);
            call(m, "frames", 13);
            m.visitInsn(RETURN);
            m.visitMaxs(2, 0);
            m.visitEnd();
            finish("hidden-" + hidden.replaceAll("[/;$]", "-"), true, c);
        }
    }

    private static void damage(byte[] b, String kind) {
        ClassReader r = new ClassReader(b);
        int index = -1;
        for (int i = 1; i < r.getItemCount(); i++) {
            int o = r.getItem(i);
            if (o > 0 && b[o - 1] == 1) {
                int len = (b[o] & 255) << 8 | b[o + 1] & 255;
                String text = new String(b, o + 2, len, java.nio.charset.StandardCharsets.ISO_8859_1);
                index = text.equals("RuntimeVisibleAnnotations") ? i : index;
            }
        }
        for (int i = r.header; i + 8 < b.length; i++) {
            int at = (b[i] & 255) << 8 | b[i + 1] & 255;
            if (at == index && b[i + 2] == 0 && b[i + 3] == 0 && b[i + 4] == 0) {
                switch (kind) {
                    case "two":
                        b[i + 7] = 2;
                        break;
                    case "zero":
                        b[i + 7] = 0;
                        break;
                    default:
                        b[i + 14] = '?';
                }
                return;
            }
        }
    }

    private static Attribute inCode(String name, byte... contents) {
        return new Attribute(name) {
            @Override
            public boolean isCodeAttribute() {
                return true;
            }

            @Override
            protected ByteVector write(ClassWriter c, byte[] code, int length, int stack, int locals) {
                return new ByteVector().putByteArray(contents, 0, contents.length);
            }
        };
    }

    private static void attributes() {
        byte[] ranges = {0, 1, 0x40, 0, 1, -1, -1, 0, 9, 0, 0, 0, 0, 1, 0, 0};
        byte[] frames = {0, 3, (byte) 200};
        for (int version : new int[] {V1_4, V1_5, V1_6, V1_7, V17}) {
            ClassWriter c = begin(version);
            MethodVisitor m = go(c);
            m.visitAttribute(inCode("StackMapTable", frames));
            body(m);
            m.visitInsn(RETURN);
            m.visitMaxs(2, 0);
            m.visitEnd();
            finish("frames-" + version, version < V1_6, c);
        }
        ClassWriter c = begin(V17);
        MethodVisitor m = go(c);
        m.visitAttribute(inCode("RuntimeVisibleTypeAnnotations", ranges));
        body(m);
        m.visitInsn(RETURN);
        m.visitMaxs(2, 0);
        m.visitEnd();
        finish("ranges", true, c);
    }

    private static void pools() {
        for (int free : new int[] {0, 3, 8, 12, 20, 100}) {
            ClassWriter c = begin(V17);
            MethodVisitor m = go(c);
            body(m);
            for (int i = 0; i < 200; i++) {
                call(m, "take", 20 + i);
            }
            call(m, "frames", 500);
            m.visitInsn(RETURN);
            m.visitMaxs(2, 0);
            m.visitEnd();
            int have = new ClassReader(c.toByteArray()).getItemCount();
            for (int i = 0; have < 65535 - free; have++) {
                c.newConst(1_000_000 + i++);
            }
            finish("pool-" + free, true, c);
        }
    }

    private static void names() {
        String[] names = {
            "a b", "\u00fc\ud83d\ude00", "\ud800", "\udc00x", "\\ud800", "\\\ud800", "x\0y", "-", "\"q\"", "a\nb", "\\",
            "pub", "enter", "\uffff",
        };
        ClassWriter c = begin(V17);
        for (String name : names) {
            MethodVisitor m = c.visitMethod(ACC_PUBLIC | ACC_STATIC, name, "()V", null, null);
            m.visitCode();
            body(m);
            m.visitInsn(RETURN);
            m.visitMaxs(2, 0);
            m.visitEnd();
        }
        MethodVisitor m = go(c);
        for (String name : names) {
            m.visitMethodInsn(INVOKESTATIC, "Odd", name, "()V", false);
        }
        m.visitInsn(RETURN);
        m.visitMaxs(0, 0);
        m.visitEnd();
        finish("names", true, c);
    }

    /** Code in an interface, also in its initialiser. */
    private static void interfaces() {
        ClassWriter c = new ClassWriter(0);
        c.visit(V17, ACC_PUBLIC | ACC_INTERFACE | ACC_ABSTRACT, "Odd", null, "java/lang/Object", null);
        c.visitSource("Odd.java", null);
        c.visitField(ACC_PUBLIC | ACC_STATIC | ACC_FINAL, "o", "Ljava/lang/Object;", null, null).visitEnd();
        MethodVisitor m = c.visitMethod(ACC_STATIC, "<clinit>", "()V", null, null);
        m.visitCode();
        body(m);
        m.visitInsn(RETURN);
        m.visitMaxs(2, 0);
        m.visitEnd();
        m = go(c);
        body(m);
        call(m, "frames", 13);
        m.visitInsn(RETURN);
        m.visitMaxs(2, 0);
        m.visitEnd();
        finish("interface", true, c);
    }

    /** Methods of which each calls the next, and one whose variables are many more than it uses. */
    private static void large() {
        ClassWriter c = begin(V17);
        MethodVisitor m;
        for (int i = 0; i < 10_000; i++) {
            m = c.visitMethod(ACC_PUBLIC | ACC_STATIC, "m" + i, "()V", null, null);
            m.visitCode();
            if (i + 1 < 10_000) {
                m.visitMethodInsn(INVOKESTATIC, "Odd", "m" + (i + 1), "()V", false);
            }
            m.visitInsn(RETURN);
            m.visitMaxs(0, 0);
            m.visitEnd();
        }
        m = go(c);
        body(m);
        for (int i = 0; i < 8000; i++) {
            Label next = new Label();
            m.visitInsn(ICONST_0);
            m.visitJumpInsn(IFEQ, next);
            m.visitLabel(next);
            m.visitFrame(F_SAME, 0, null, 0, null);
        }
        body(m);
        m.visitInsn(RETURN);
        m.visitMaxs(2, 65_000);
        m.visitEnd();
        finish("large", true, c);
    }

    /** Knows a few classes; tells of all others that it is asked for. */
    private static final class Loader extends ClassLoader {
        private static final Set<String> KNOWN =
                Set.of("java.lang.Object", "java.lang.Throwable", OddClasses.class.getName());
        private final byte[] odd;
        private final boolean guarded;

        Loader(byte[] odd, boolean guarded) {
            this.odd = odd;
            this.guarded = guarded;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            Class<?> known = findLoadedClass(name);
            if (known != null) {
                return known;
            }
            if (name.equals("Odd")) {
                return defineClass(null, odd, 0, odd.length);
            }
            if (guarded) {
                System.out.println("asked for " + name);
                if (!KNOWN.contains(name)) {
                    throw new ClassNotFoundException("not allowed: " + name);
                }
            }
            return super.loadClass(name, resolve);
        }
    }

    public static void main(String[] args) throws Exception {
        List<String> how = Arrays.asList(args);
        limits(V1_5);
        limits(V17);
        indices();
        annotations();
        attributes();
        pools();
        names();
        interfaces();
        large();
        for (Map.Entry<String, byte[]> one : CLASSES.entrySet()) {
            if (SOUND.contains(one.getKey()) || !how.contains("sound")) {
                run(one.getKey(), new Loader(one.getValue(), how.contains("guarded")));
            }
        }
        for (java.lang.reflect.Method method : Object.class.getDeclaredMethods()) {
            if (method.getName().contains("lucce")) {
                System.out.println("reflection shows " + method);
            }
        }
    }

    private static void run(String name, Loader loader) throws Exception {
        int before = taken;
        String result;
        try {
            Class.forName("Odd", true, loader).getMethod("go").invoke(null);
            result = "ran";
        } catch (Throwable e) {
            Throwable cause = e instanceof java.lang.reflect.InvocationTargetException ? e.getCause() : e;
            result = cause.getClass().getName();
        }
        System.out.println(name + ": " + result + ", " + (taken - before) + " calls");
    }
}
