import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import javax.management.ObjectName;

/**
 * Memory outside of the heap, in known numbers. Lines of expected results: {@code expect METHOD HOW BLOCKS BYTES LIVING-BLOCKS
 * LIVING-BYTES}. Arguments: the native library; {@code wait}, then the test kills the JVM; or a library
 * that allocates while it is loaded, a folder for copies of it, and their number.
 */
public class NativeMemory {
    static final List<Object> KEPT = new ArrayList<>();
    static sun.misc.Unsafe unsafe;

    static native void mallocKept(int count, int bytes);

    static native void mallocFreed(int count, int bytes);

    static native void callocKept(int count, int bytes);

    static native void reallocKept(int count, int bytes);

    static native void mmapHalf(int count, int bytes);

    static native void throwKept(int bytes);

    static native void criticalKept(byte[] array, int count, int bytes);

    static native void criticalChanged(byte[] array, int count, int bytes);

    static native void reallocarrayKept(int count, int bytes);

    static native void freeLast(int count);

    static native void foreignThread(int bytes);

    static native boolean forked();

    static void expect(String method, String how, long blocks, long bytes, long living, long livingBytes) {
        System.out.println("expect " + method + " " + how + " " + blocks + " " + bytes + " " + living + " " + livingBytes);
    }

    static void directKept() {
        KEPT.add(ByteBuffer.allocateDirect(1 << 20));
    }

    static void directDropped() {
        ByteBuffer.allocateDirect(64);
    }

    static void unsafeGrown() {
        long address = unsafe.allocateMemory(1000);
        address = unsafe.reallocateMemory(address, 5000);
        KEPT.add(unsafe.reallocateMemory(address, 3000));
    }

    static void unsafeFreed() throws Exception {
        long address = unsafe.allocateMemory(777_000);
        Thread other = new Thread(() -> unsafe.freeMemory(address));
        other.start();
        other.join();
    }

    static void fileMapped(Path file) throws Exception {
        try (RandomAccessFile opened = new RandomAccessFile(file.toFile(), "rw")) {
            KEPT.add(opened.getChannel().map(MapMode.READ_WRITE, 0, 1 << 16));
        }
    }

    static void fileUnmapped(Path file) throws Exception {
        try (RandomAccessFile opened = new RandomAccessFile(file.toFile(), "rw")) {
            MappedByteBuffer mapped = opened.getChannel().map(MapMode.READ_WRITE, 0, 1 << 16);
            unsafe.invokeCleaner(mapped);
        }
    }

    /** By reflection: JDK 17 has no such class. */
    static void arenaKept(Class<?> arena) throws Exception {
        Object opened = arena.getMethod("ofShared").invoke(null);
        KEPT.add(opened);
        KEPT.add(arena.getMethod("allocate", long.class).invoke(opened, 20_000L));
    }

    static void arenaClosed(Class<?> arena) throws Exception {
        Object opened = arena.getMethod("ofConfined").invoke(null);
        arena.getMethod("allocate", long.class).invoke(opened, 20_000L);
        arena.getMethod("close").invoke(opened);
    }

    static void direct() throws Exception {
        for (int i = 0; i < 120; i++) {
            directKept();
            for (int j = 0; j < 50; j++) directDropped();
        }
        expect("directKept", "(Unsafe)", 120, 120 << 20, 120, 120 << 20);
        for (int i = 0; i < 10; i++) {
            unsafeGrown();
            unsafeFreed();
        }
        expect("unsafeGrown", "(Unsafe)", 30, 90_000, 10, 30_000);
        expect("unsafeFreed", "(Unsafe)", 10, 7_770_000, 0, 0);
        Class<?> arena;
        try {
            arena = Class.forName("java.lang.foreign.Arena");
            arena.getMethod("ofShared");
        } catch (ClassNotFoundException e) {
            return;
        }
        if (Runtime.version().feature() < 22) return;
        for (int i = 0; i < 5; i++) {
            arenaKept(arena);
            arenaClosed(arena);
        }
        expect("arenaKept", "(Unsafe)", 5, 100_000, 5, 100_000);
        expect("arenaClosed", "(Unsafe)", 5, 100_000, 0, 0);
    }

    static void files() throws Exception {
        Path file = Files.createTempFile("lucce", ".mapped");
        for (int i = 0; i < 7; i++) {
            fileMapped(file);
            fileUnmapped(file);
        }
        Files.delete(file);
        expect("fileMapped", "(mapped_file)", 7, 7 << 16, 7, 7 << 16);
        expect("fileUnmapped", "(mapped_file)", 7, 7 << 16, 0, 0);
    }

    static void libraries() throws Exception {
        System.out.println("forked " + forked());
        mallocKept(200, 1000);
        expect("mallocKept", "(malloc)", 200, 200_000, 200, 200_000);
        mallocFreed(300, 2000);
        expect("mallocFreed", "(malloc)", 300, 600_000, 0, 0);
        callocKept(30, 100);
        expect("callocKept", "(malloc)", 1, 3000, 1, 3000);
        reallocKept(10, 100);
        expect("reallocKept", "(malloc)", 10, 5500, 1, 1000);
        mmapHalf(4, 1 << 16);
        expect("mmapHalf", "(mmap)", 4, 4 << 16, 4, 2 << 16);
        try {
            throwKept(700);
            throw new AssertionError("nothing thrown");
        } catch (IllegalStateException e) {
            expect("throwKept", "(malloc)", 1, 700, 1, 700);
        }
        criticalKept(new byte[100], 50, 900);
        Thread other = new Thread(() -> freeLast(20));
        other.start();
        other.join();
        expect("criticalKept", "(malloc)", 50, 45_000, 30, 27_000);
        criticalChanged(new byte[100], 5, 900);
        // The failed attempts allocate nothing.
        expect("criticalChanged", "(malloc)", 15, 5 * 3600, 10, 5 * 2700);
        reallocarrayKept(10, 100);
        expect("reallocarrayKept", "(malloc)", 10, 5500, 1, 1000);
        foreignThread(123_456);
    }

    /** What the VM itself says. */
    static void oracles() throws Exception {
        for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            System.out.println("pool " + pool.getName().split(" ")[0] + " " + pool.getCount() + " " + pool.getMemoryUsed());
        }
        ObjectName command = new ObjectName("com.sun.management:type=DiagnosticCommand");
        Object[] arguments = {new String[] {"summary", "scale=b"}};
        String[] types = {String[].class.getName()};
        String tracked = (String) ManagementFactory.getPlatformMBeanServer().invoke(command, "vmNativeMemory", arguments, types);
        boolean isOther = false;
        for (String line : tracked.split("\n")) {
            if (line.contains("reserved=")) isOther = line.contains(" Other ");
            if (isOther && line.contains("(malloc=")) {
                System.out.println("tracked " + line.replaceAll(".*malloc=([0-9]+).*", "$1"));
                isOther = false;
            }
        }
    }

    /** The libraries' constructors allocate, while the VM looks for natives of the boot loader and collects. */
    static void loaded(Path library, Path folder, int count) throws Exception {
        Thread[] loaders = new Thread[3];
        for (int i = 0; i < loaders.length; i++) {
            int first = i;
            loaders[i] = new Thread(() -> {
                for (int n = first; n < count; n += loaders.length) loadCopy(library, folder.resolve("copy" + n + ".so"));
            });
        }
        AtomicBoolean isDone = new AtomicBoolean();
        AtomicInteger missing = new AtomicInteger();
        Thread natives = new Thread(() -> {
            while (!isDone.get()) {
                if (!BootNatives.isMissing()) throw new AssertionError("a native method is there");
                missing.incrementAndGet();
            }
        });
        natives.start();
        for (Thread loader : loaders) loader.start();
        int collections = 0;
        for (Thread loader : loaders) {
            while (loader.isAlive()) {
                System.gc();
                collections++;
            }
        }
        isDone.set(true);
        natives.join();
        System.out.println("missing " + (missing.get() > 0) + ", collected " + (collections > 0));
    }

    static void loadCopy(Path library, Path copy) {
        try {
            Files.copy(library, copy);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        System.load(copy.toString());
    }

    public static void main(String[] args) throws Exception {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        unsafe = (sun.misc.Unsafe) field.get(null);
        System.load(args[0]);
        if (args.length > 3) {
            loaded(Path.of(args[1]), Path.of(args[2]), Integer.parseInt(args[3]));
            return;
        }
        direct();
        // The cleaner frees dropped buffers.
        for (int i = 0; i < 50 && pool() > 120; i++) {
            System.gc();
            Thread.sleep(20);
        }
        expect("directDropped", "(Unsafe)", 6000, 6000 * 64, 0, 0);
        files();
        libraries();
        Thread.sleep(300);
        oracles();
        System.out.println("ready");
        if (args.length > 1) Thread.sleep(Long.MAX_VALUE);
    }

    static long pool() {
        for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            if (pool.getName().equals("direct")) return pool.getCount();
        }
        return 0;
    }
}
