import io.lucce.CallContext;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Defines a class again and again, each time in a loader of its own, runs it and lets go of it: {@code same} the same
 * class, {@code named} each time under another name. Then: how many, and of which a number is kept. Says by how much the process has grown behind the first of them.
 * At the end it decodes numbers of classes that are gone.
 */
public final class ComingAndGoing {
    /** What is defined. It makes four {@code AtomicLong}s. */
    public static final class Made implements Callable<Object> {
        static final Object shared = new Object();
        final Object own = new int[1];

        @Override
        public Object call() {
            return step(3);
        }

        private Object step(int depth) {
            Object here = new AtomicLong(depth);
            if (depth > 0) {
                return new Object[] {here, step(depth - 1)};
            }
            return ComingAndGoing.seen();
        }
    }

    private static final class Loader extends ClassLoader {
        Loader() {
            super(ComingAndGoing.class.getClassLoader());
        }

        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    /** A number and what it must decode to. */
    private static final class Known {
        final long number;
        final StackTraceElement[] frames;

        Known(long number, StackTraceElement[] frames) {
            this.number = number;
            this.frames = frames;
        }
    }

    private static final String NAME = "ComingAndGoing$Made";
    private static final int FIRST = 5_000;
    /** In KB. A process that has grown by less is not read again. */
    private static final long ENOUGH = 24 << 10;
    private static int every;
    private static final List<Known> known = new ArrayList<>();
    private static int count;

    /** Called by each class, so that its frames are below. */
    public static Object seen() {
        if (count % every == 0) {
            long number = CallContext.current(); StackTraceElement[] frames = new Throwable().getStackTrace();
            known.add(new Known(number, frames));
        }
        return null;
    }

    private static byte[] named(byte[] template, String name) throws IOException {
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
                    out.writeUTF(names ? "No" + text : text.replace(NAME, name));
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

    private static long resident() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        throw new IOException("no VmRSS");
    }

    public static void main(String[] args) throws Exception {
        boolean same = args[0].equals("same");
        int classes = Integer.parseInt(args[1]);
        every = Integer.parseInt(args[2]);
        byte[] template;
        try (InputStream in = ComingAndGoing.class.getResourceAsStream(NAME + ".class")) {
            template = in.readAllBytes();
        }
        long before = 0;
        for (count = 1; count <= classes; count++) {
            byte[] bytes = named(template, same ? "made/Same" : "made/Made" + count);
            ((Callable<?>) new Loader().define(bytes).getConstructor().newInstance()).call();
            if (count == FIRST) {
                System.gc();
                before = resident();
            }
        }
        long grown = Long.MAX_VALUE;
        // The VM gives back what a compilation or many loaders took, but not at once.
        for (int i = 0; i < 20 && grown > ENOUGH; i++) {
            if (i > 0) {
                Thread.sleep(250);
            }
            System.gc();
            grown = Math.min(grown, resident() - before);
        }
        System.out.println("grown by " + grown + " KB");
        var loaded = java.lang.management.ManagementFactory.getClassLoadingMXBean();
        System.out.println("loaded " + loaded.getLoadedClassCount() + ", unloaded " + loaded.getUnloadedClassCount());
        for (Known each : known) {
            StackTraceElement[] found = CallContext.decode(each.number);
            String expected = text(each.frames), decoded = text(found);
            if (!expected.equals(decoded)) {
                throw new AssertionError("expected\n" + expected + "decoded\n" + decoded);
            }
        }
        System.out.println("decoded " + known.size());
    }

    private static String text(StackTraceElement[] frames) {
        StringBuilder text = new StringBuilder();
        for (StackTraceElement frame : frames) {
            text.append(frame.getClassName()).append('.').append(frame.getMethodName());
            text.append('(').append(frame.getFileName()).append(':').append(frame.getLineNumber()).append(")\n");
        }
        return text.toString();
    }
}
