package io.lucce.programs;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.MulticastSocket;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.DatagramChannel;
import java.nio.channels.FileChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;

/**
 * Reads and writes files and sockets, and knows how often at which line, and how many bytes: prints
 * {@code (what)|line|count|bytes} at its end. {@code --virtual}: in virtual threads, where who connects waits
 * elsewhere.
 */
public final class Io {
    private static final int ROUNDS = 5;
    private static final boolean IS_OLD = Runtime.version().feature() < 17;
    private static final Map<String, long[]> expected = new TreeMap<>();
    private static boolean virtual;

    private Io() {}

    private static void note(String what, int line, long bytes) {
        synchronized (expected) {
            long[] sums = expected.computeIfAbsent("(" + what + ")|" + line, any -> new long[2]);
            sums[0]++;
            sums[1] += bytes;
        }
    }

    private static int line() {
        return new Throwable().getStackTrace()[1].getLineNumber();
    }

    private static void streams(File file, int size) throws IOException {
        byte[] bytes = new byte[size];
        try (OutputStream out = new FileOutputStream(file)) {
            note("file write", line() + 1, size);
            out.write(bytes);
            note("file write", line() + 1, size - 2);
            out.write(bytes, 1, size - 2);
            note("file write", line() + 1, 1);
            out.write(7);
        }
        try (InputStream in = new FileInputStream(file)) {
            note("file read", line() + 1, size);
            Check.equal(size, in.read(bytes));
            note("file read", line() + 1, size - 2);
            Check.equal(size - 2, in.read(bytes, 2, size - 2));
            note("file read", line() + 1, 1);
            Check.equal(7, in.read());
            note("file read", line() + 1, 0);
            Check.equal(-1, in.read());
            note("file read", line() + 1, 0);
            Check.equal(-1, in.read(bytes));
        }
    }

    private static void random(File file, int size) throws IOException {
        byte[] bytes = new byte[size];
        try (RandomAccessFile random = new RandomAccessFile(file, "rw")) {
            random.setLength(0);
            note("file write", line() + 1, size);
            random.write(bytes);
            note("file write", line() + 1, size - 3);
            random.write(bytes, 0, size - 3);
            note("file write", line() + 1, 1);
            random.write(3);
            random.seek(0);
            note("file read", line() + 1, size);
            Check.equal(size, random.read(bytes));
            note("file read", line() + 1, size - 3);
            Check.equal(size - 3, random.read(bytes, 0, size - 3));
            note("file read", line() + 1, 1);
            Check.equal(3, random.read());
            note("file read", line() + 1, 0);
            Check.equal(-1, random.read());
        }
    }

    private static void channel(File file, int size) throws IOException {
        ByteBuffer direct = ByteBuffer.allocateDirect(size);
        ByteBuffer heap = ByteBuffer.allocate(size);
        Path path = file.toPath();
        try (FileChannel channel =
                FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
            note("file write", line() + 1, size);
            Check.equal(size, channel.write(direct));
            note("file write", line() + 1, size);
            Check.equal(size, channel.write(heap, size));
            direct.clear();
            heap.clear();
            note("file write", line() + 1, 2 * size);
            Check.equal(2L * size, channel.write(new ByteBuffer[] {direct, heap}));
            direct.clear();
            heap.clear();
            channel.position(0);
            note("file read", line() + 1, size);
            Check.equal(size, channel.read(direct));
            note("file read", line() + 1, size);
            Check.equal(size, channel.read(heap, 1));
            direct.clear();
            heap.clear();
            note("file read", line() + 1, 2 * size);
            Check.equal(2L * size, channel.read(new ByteBuffer[] {direct, heap}));
            try (FileChannel copy = FileChannel.open(
                    Path.of(file + ".copy"), StandardOpenOption.WRITE, StandardOpenOption.CREATE)) {
                note("file transfer", line() + 1, 2 * size);
                Check.equal(2L * size, channel.transferTo(size, 2 * size, copy));
            }
        }
    }

    private static <T> FutureTask<T> start(Callable<T> work) {
        FutureTask<T> task = new FutureTask<>(work);
        Runnable runnable = task;
        Thread thread = virtual ? Virtual.thread(runnable) : new Thread(runnable, "io");
        thread.start();
        return task;
    }

    /** For JDK 21 and later, by reflection: this class is compiled for 17. */
    private static final class Virtual {
        static Thread thread(Runnable work) {
            try {
                Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
                Class<?> type = Class.forName("java.lang.Thread$Builder");
                return (Thread) type.getMethod("unstarted", Runnable.class).invoke(builder, work);
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
            }
        }
    }

    private static void sockets(int size) throws Exception {
        InetAddress local = InetAddress.getLoopbackAddress();
        try (ServerSocket server = new ServerSocket(0, 1, local)) {
            FutureTask<Integer> answered = start(() -> answer(server, size));
            Socket socket = new Socket();
            InetSocketAddress address = new InetSocketAddress(local, server.getLocalPort());
            noteConnect(line() + 1);
            socket.connect(address);
            try (socket) {
                byte[] bytes = new byte[size];
                note("socket write", line() + 1, size);
                socket.getOutputStream().write(bytes);
                note("socket read", line() + 1, 2);
                Check.equal(2, socket.getInputStream().read(bytes));
                waitInVain(socket);
            }
            Check.equal(0, answered.get());
        }
    }

    private static void waitInVain(Socket socket) throws IOException {
        socket.setSoTimeout(1);
        try {
            Check.wrong("read " + socket.getInputStream().read());
        } catch (SocketTimeoutException e) {
            // It waited, and nothing was read.
        }
    }

    private static void noteConnect(int line) {
        if (!virtual) {
            note("socket connect", line, 0);
        }
    }

    private static int answer(ServerSocket server, int size) throws IOException {
        note("socket accept", line() + 1, 0);
        Socket socket = server.accept();
        try (socket) {
            byte[] bytes = new byte[2 * size];
            note("socket read", line() + 1, size);
            Check.equal(size, socket.getInputStream().read(bytes));
            note("socket write", line() + 1, 2);
            socket.getOutputStream().write(bytes, 0, 2);
            note("socket read", line() + 1, 0);
            return socket.getInputStream().read(bytes) + 1;
        }
    }

    private static void channels(ServerSocketChannel server, SocketChannel client, int size) throws Exception {
        try (server; client) {
            FutureTask<Integer> answered = start(() -> answer(server, size));
            if (server.getLocalAddress() instanceof InetSocketAddress) {
                noteConnect(line() + 1);
                client.connect(server.getLocalAddress());
            } else {
                client.connect(server.getLocalAddress());
            }
            ByteBuffer direct = ByteBuffer.allocateDirect(size);
            note("socket write", line() + 1, size);
            Check.equal(size, client.write(direct));
            direct.clear();
            note("socket read", line() + 1, size - 1);
            Check.equal(size - 1, client.read(direct));
            if (client.getLocalAddress() instanceof InetSocketAddress) {
                waitInVain(client.socket());
            }
            client.shutdownOutput();
            Check.equal(-1, answered.get());
        }
    }

    private static int answer(ServerSocketChannel server, int size) throws IOException {
        try (SocketChannel channel = server.accept()) {
            ByteBuffer heap = ByteBuffer.allocate(2 * size);
            note("socket read", line() + 1, size);
            Check.equal(size, channel.read(heap));
            ByteBuffer[] two = {ByteBuffer.allocate(1), ByteBuffer.allocate(size - 2)};
            note("socket write", line() + 1, size - 1);
            Check.equal(size - 1L, channel.write(two));
            note("socket read", line() + 1, 0);
            return channel.read(heap);
        }
    }

    private static void datagrams(int size) throws Exception {
        InetAddress local = InetAddress.getLoopbackAddress();
        try (DatagramSocket to = new DatagramSocket(0, local);
                DatagramChannel from = DatagramChannel.open().bind(new InetSocketAddress(local, 0))) {
            ByteBuffer bytes = ByteBuffer.allocateDirect(size);
            note("socket write", line() + 1, size);
            from.send(bytes, to.getLocalSocketAddress());
            note("socket read", line() + 1, size);
            to.receive(new DatagramPacket(new byte[2 * size], 2 * size));
            from.connect(to.getLocalSocketAddress());
            bytes.clear();
            note("socket write", line() + 1, size);
            from.write(bytes);
            note("socket read", line() + 1, size);
            to.receive(new DatagramPacket(new byte[2 * size], 2 * size));
            note("socket write", line() + 1, size - 4);
            to.send(new DatagramPacket(new byte[size - 4], size - 4, from.getLocalAddress()));
            bytes.clear();
            note("socket read", line() + 1, size - 4);
            from.receive(bytes);
            if (IS_OLD) {
                send(new DatagramPacket(new byte[size], size - 5, to.getLocalSocketAddress()));
                note("socket read", line() + 1, size - 5);
                to.receive(new DatagramPacket(new byte[size], size));
            }
        }
    }

    /** By a method that later JDKs may lack. */
    @SuppressWarnings({"deprecation", "removal"})
    private static void send(DatagramPacket packet) throws IOException {
        try (MulticastSocket socket = new MulticastSocket(0)) {
            note("socket write", line() + 1, packet.getLength());
            socket.send(packet, (byte) 1);
        }
    }

    /** Channels of sockets in the file system. */
    interface UnixChannels {
        ServerSocketChannel listen(Path path) throws Exception;

        SocketChannel open() throws Exception;
    }

    /** Null: JDK 11 has none. */
    private static UnixChannels unixChannels() throws Exception {
        return IS_OLD ? null : (UnixChannels) Class.forName("io.lucce.programs.NewerChannels").getConstructor().newInstance();
    }

    private static void rounds(File folder) throws Exception {
        File file = new File(folder, "io-" + ProcessHandle.current().pid());
        Path path = new File(folder, "io.sock").toPath();
        UnixChannels unix = unixChannels();
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        for (int round = 0; round < ROUNDS; round++) {
            int size = 100 + round;
            streams(file, size);
            random(file, size);
            channel(file, size);
            sockets(size);
            channels(ServerSocketChannel.open().bind(any), SocketChannel.open(), size);
            if (unix != null) {
                java.nio.file.Files.deleteIfExists(path);
                channels(unix.listen(path), unix.open(), size);
            }
            datagrams(size);
        }
        new File(file + ".copy").delete();
        file.delete();
    }

    public static void main(String[] args) throws Exception {
        virtual = args.length > 0 && args[0].equals("--virtual");
        // Loads the class now: reading the jar file is not what the lines below are to do.
        Check.equal(0, expected.size());
        File folder = java.nio.file.Files.createTempDirectory("lucce-io").toFile();
        FutureTask<Void> work = start(() -> {
            rounds(folder);
            return null;
        });
        work.get();
        java.nio.file.Files.deleteIfExists(folder.toPath().resolve("io.sock"));
        folder.delete();
        expected.forEach((key, sums) -> System.out.println(key + "|" + sums[0] + "|" + sums[1]));
    }
}
