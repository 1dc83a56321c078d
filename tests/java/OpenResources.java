import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.DatagramChannel;
import java.nio.channels.FileChannel;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Timer;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Opens resources, leaves some open, closes others, and drops some. Prints for each method what became of them: `open`, `closed`
 * or `collected`, method, number, class.
 *
 * <p>With a file's name, waits until the file exists before it begins, and until it is gone before it ends.
 */
public class OpenResources {
    static final List<Object> kept = new ArrayList<>();
    static final List<WeakReference<Object>> dropped = new ArrayList<>();
    static final Cleaner CLEANER = Cleaner.create();
    static Path folder;
    static Path file;

    /** Resources of the program itself: see the option `resource=` of the test. */
    static final class Store {
        static Store open() {
            return new Store();
        }

        void shut() {}
    }

    static final class Pool {
        private final List<Object> free = new ArrayList<>();

        Object take(long key) {
            return free.isEmpty() ? new Object() : free.remove(0);
        }

        void giveBack(long key, Object taken) {
            free.add(taken);
        }
    }

    /** Closes the first only: its loop begins at its first instruction. */
    static final class Chain {
        private final Chain next;

        private Chain(Chain next) {
            this.next = next;
        }

        static Chain link(Chain next) {
            return new Chain(next);
        }

        static void unlink(Chain chain) {
            while (chain != null) chain = chain.next;
        }
    }

    interface Action {
        void run() throws Exception;
    }

    static void repeat(int times, Action action) throws Exception {
        for (int i = 0; i < times; i++) action.run();
    }

    static void expect(String state, String method, int number, String type) {
        System.out.println(state + " " + method + " " + number + " " + type);
    }

    static void leakStream() throws Exception { kept.add(new FileInputStream(file.toFile())); }

    static void closeStream() throws Exception {
        try (InputStream in = new FileInputStream(file.toFile())) { in.read(); }
    }

    static void failStream() {
        try {
            new FileInputStream("/there/is/none").close();
        } catch (Exception expected) {
            kept.size();
        }
    }

    static void dropStream() throws Exception {
        dropped.add(new WeakReference<>(new FileInputStream(file.toFile())));
    }

    static void leakOutput() throws Exception { kept.add(new FileOutputStream(folder.resolve("out").toFile())); }

    static void leakRandom() throws Exception { kept.add(new RandomAccessFile(file.toFile(), "r")); }

    static void closeRandom() throws Exception { new RandomAccessFile(file.toFile(), "r").close(); }

    static void leakChannel() throws Exception { kept.add(Files.newByteChannel(file)); }

    static void closeChannel() throws Exception { Files.newByteChannel(file).close(); }

    static void leakLines() throws Exception {
        Stream<String> lines = Files.lines(file);
        kept.add(lines);
        lines.iterator().next();
    }

    static void closeLines() throws Exception {
        try (Stream<String> lines = Files.lines(file)) { lines.count(); }
    }

    static void leakDirectory() throws Exception { kept.add(Files.newDirectoryStream(folder)); }

    static void closeDirectory() throws Exception {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) { files.iterator().hasNext(); }
    }

    static void leakMapping() throws Exception {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            kept.add(channel.map(FileChannel.MapMode.READ_ONLY, 0, 4));
        }
    }

    static Path makeZip() throws Exception {
        Path zip = folder.resolve("some.zip");
        try (ZipOutputStream out = new ZipOutputStream(new FileOutputStream(zip.toFile()))) {
            out.putNextEntry(new ZipEntry("entry"));
            out.write(1);
        }
        return zip;
    }

    static void leakZip(Path zip) throws Exception { kept.add(new ZipFile(zip.toFile())); }

    static void closeZip(Path zip) throws Exception { new ZipFile(zip.toFile()).close(); }

    static void leakSockets() throws Exception {
        ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
        kept.add(server);
        kept.add(new Socket(InetAddress.getLoopbackAddress(), server.getLocalPort()));
        kept.add(server.accept());
    }

    static void closeSockets() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
                Socket client = new Socket(InetAddress.getLoopbackAddress(), server.getLocalPort());
                Socket accepted = server.accept();
                OutputStream out = accepted.getOutputStream()) {
            out.write(1);
            client.getInputStream().read();
        }
    }

    static void leakChannels() throws Exception {
        ServerSocketChannel server = ServerSocketChannel.open();
        kept.add(server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0)));
        kept.add(SocketChannel.open(server.getLocalAddress()));
        kept.add(server.accept());
        kept.add(DatagramChannel.open());
        kept.add(Selector.open());
    }

    static void closeChannels() throws Exception {
        try (ServerSocketChannel server = ServerSocketChannel.open()) {
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            SocketChannel.open(server.getLocalAddress()).close();
            server.accept().close();
        }
        DatagramChannel.open().close();
        Selector.open().close();
    }

    static void leakProcess() throws Exception { kept.add(new ProcessBuilder("sleep", "60").start()); }

    static void closeProcess() throws Exception { new ProcessBuilder("true").start().waitFor(); }

    static void leakExecutors() {
        kept.add(Executors.newFixedThreadPool(1));
        kept.add(new ForkJoinPool(1));
        kept.add(new Timer(true));
    }

    static void closeExecutors() {
        ExecutorService executor = Executors.newFixedThreadPool(1);
        executor.shutdown();
        new ForkJoinPool(1).shutdownNow();
        new Timer(true).cancel();
    }

    static void leakCleanable() { kept.add(CLEANER.register(kept, () -> {})); }

    static void closeCleanable() { CLEANER.register(new Object(), () -> {}).clean(); }

    static void dropCleanable() {
        Object owner = new Object();
        CLEANER.register(owner, () -> {});
        dropped.add(new WeakReference<>(owner));
    }

    static Object newArena() throws Exception {
        return Class.forName("java.lang.foreign.Arena").getMethod("ofConfined").invoke(null);
    }

    static void leakArena() throws Exception { kept.add(newArena()); }

    static void closeArena() throws Exception {
        try (AutoCloseable arena = (AutoCloseable) newArena()) { kept.size(); }
    }

    static void leakStore() { kept.add(Store.open()); }

    static void closeStore() { Store.open().shut(); }

    static void leakTaken(Pool pool) { kept.add(pool.take(1)); }

    static void closeTaken(Pool pool) { pool.giveBack(1, pool.take(1)); }

    static void leakFirst() {
        Chain chain = null;
        for (int i = 0; i < 3; i++) kept.add(chain = Chain.link(chain));
        Chain.unlink(chain);
    }

    /** Waits until the VM has collected what was dropped, and has reported it. */
    static void collect() throws Exception {
        for (int round = 0; round < 100; round++) {
            System.gc();
            Thread.sleep(50);
            if (round > 4 && dropped.stream().allMatch(reference -> reference.get() == null)) return;
        }
        throw new IllegalStateException("nothing was collected");
    }

    static void await(Path go, boolean isThere) throws Exception {
        while (Files.exists(go) != isThere) Thread.sleep(20);
    }

    public static void main(String[] args) throws Exception {
        Path go = args.length > 0 ? Path.of(args[0]) : null;
        if (go != null) {
            System.out.println("waits");
            await(go, true);
        }
        openAll();
        System.out.println("ready");
        if (go != null) await(go, false);
    }

    static void openAll() throws Exception {
        folder = Files.createTempDirectory("open");
        file = Files.writeString(folder.resolve("text"), "one\ntwo\n");
        Path zip = makeZip();
        String channel = "sun.nio.ch.FileChannelImpl";
        String cleanable = "jdk.internal.ref.CleanerImpl$PhantomCleanableRef";
        repeat(3, OpenResources::leakStream);
        expect("open", "leakStream", 3, "java.io.FileInputStream");
        repeat(40, OpenResources::closeStream);
        expect("closed", "closeStream", 40, "java.io.FileInputStream");
        repeat(5, OpenResources::failStream);
        repeat(7, OpenResources::dropStream);
        expect("collected", "dropStream", 7, "java.io.FileInputStream");
        repeat(2, OpenResources::leakOutput);
        expect("open", "leakOutput", 2, "java.io.FileOutputStream");
        repeat(4, OpenResources::leakRandom);
        expect("open", "leakRandom", 4, "java.io.RandomAccessFile");
        repeat(5, OpenResources::closeRandom);
        expect("closed", "closeRandom", 5, "java.io.RandomAccessFile");
        repeat(6, OpenResources::leakChannel);
        expect("open", "leakChannel", 6, channel);
        repeat(3, OpenResources::closeChannel);
        expect("closed", "closeChannel", 3, channel);
        repeat(5, OpenResources::leakLines);
        expect("open", "leakLines", 5, channel);
        repeat(2, OpenResources::closeLines);
        expect("closed", "closeLines", 2, channel);
        repeat(4, OpenResources::leakDirectory);
        expect("open", "leakDirectory", 4, "sun.nio.fs.UnixDirectoryStream");
        repeat(3, OpenResources::closeDirectory);
        expect("closed", "closeDirectory", 3, "sun.nio.fs.UnixDirectoryStream");
        repeat(3, OpenResources::leakMapping);
        expect("open", "leakMapping", 3, "java.nio.DirectByteBufferR");
        expect("closed", "leakMapping", 3, channel);
        repeat(2, () -> leakZip(zip));
        expect("open", "leakZip", 2, "java.util.zip.ZipFile");
        closeZip(zip);
        expect("closed", "closeZip", 1, "java.util.zip.ZipFile");
        repeat(2, OpenResources::leakSockets);
        expect("open", "leakSockets", 2, "java.net.ServerSocket");
        expect("open", "leakSockets", 4, "java.net.Socket");
        repeat(3, OpenResources::closeSockets);
        expect("closed", "closeSockets", 3, "java.net.ServerSocket");
        expect("closed", "closeSockets", 6, "java.net.Socket");
        repeat(2, OpenResources::leakChannels);
        expect("open", "leakChannels", 2, "sun.nio.ch.ServerSocketChannelImpl");
        expect("open", "leakChannels", 4, "sun.nio.ch.SocketChannelImpl");
        expect("open", "leakChannels", 2, "sun.nio.ch.DatagramChannelImpl");
        expect("open", "leakChannels", 2, "sun.nio.ch.EPollSelectorImpl");
        repeat(3, OpenResources::closeChannels);
        expect("closed", "closeChannels", 3, "sun.nio.ch.ServerSocketChannelImpl");
        expect("closed", "closeChannels", 6, "sun.nio.ch.SocketChannelImpl");
        expect("closed", "closeChannels", 3, "sun.nio.ch.DatagramChannelImpl");
        expect("closed", "closeChannels", 3, "sun.nio.ch.EPollSelectorImpl");
        leakProcess();
        expect("open", "leakProcess", 1, "java.lang.ProcessImpl");
        repeat(3, OpenResources::closeProcess);
        expect("closed", "closeProcess", 3, "java.lang.ProcessImpl");
        repeat(2, OpenResources::leakExecutors);
        repeat(3, OpenResources::closeExecutors);
        for (String type : new String[] {"concurrent.ThreadPoolExecutor", "concurrent.ForkJoinPool", "Timer"}) {
            expect("open", "leakExecutors", 2, "java.util." + type);
            expect("closed", "closeExecutors", 3, "java.util." + type);
        }
        repeat(2, OpenResources::leakCleanable);
        expect("open", "leakCleanable", 2, cleanable);
        repeat(3, OpenResources::closeCleanable);
        expect("closed", "closeCleanable", 3, cleanable);
        repeat(4, OpenResources::dropCleanable);
        expect("collected", "dropCleanable", 4, cleanable);
        if (Runtime.version().feature() >= 22) {
            repeat(2, OpenResources::leakArena);
            expect("open", "leakArena", 2, "jdk.internal.foreign.ConfinedSession");
            repeat(3, OpenResources::closeArena);
            expect("closed", "closeArena", 3, "jdk.internal.foreign.ConfinedSession");
        }
        repeat(2, OpenResources::leakStore);
        expect("open", "leakStore", 2, "OpenResources$Store");
        repeat(3, OpenResources::closeStore);
        expect("closed", "closeStore", 3, "OpenResources$Store");
        Pool pool = new Pool();
        repeat(3, () -> closeTaken(pool));
        expect("closed", "closeTaken", 3, "java.lang.Object");
        repeat(2, () -> leakTaken(pool));
        expect("open", "leakTaken", 2, "java.lang.Object");
        leakFirst();
        expect("open", "leakFirst", 2, "OpenResources$Chain");
        expect("closed", "leakFirst", 1, "OpenResources$Chain");
        collect();
    }
}
