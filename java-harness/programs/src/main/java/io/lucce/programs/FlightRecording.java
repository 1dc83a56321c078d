package io.lucce.programs;

import io.lucce.CallContext;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import jdk.jfr.Event;
import jdk.jfr.Recording;

/** Flight Recorder puts code of its own into classes that have been loaded, and into those of events. */
public final class FlightRecording {
    private static final String[] EVENTS = {
        "jdk.FileRead", "jdk.FileWrite", "jdk.FileForce", "jdk.SocketRead", "jdk.SocketWrite", "jdk.ThreadSleep",
        "jdk.JavaExceptionThrow", "jdk.JavaErrorThrow", "jdk.ThreadPark", "io.lucce.programs.FlightRecording$Own",
    };

    /** An event of the program. */
    private static final class Own extends Event {
        String text;
        long number;
        Class<?> type;
    }

    public static void main(String[] args) throws Exception {
        Path file = Files.createTempFile("lucce", "recorded");
        try (Recording recording = new Recording()) {
            use(file, 0);
            for (String event : EVENTS) {
                recording.enable(event).withoutThreshold();
            }
            recording.start();
            for (int i = 1; i <= 20; i++) {
                use(file, i);
            }
            recording.stop();
            use(file, 21);
        } finally {
            Files.delete(file);
        }
        Check.done();
    }

    private static void use(Path file, int round) throws Exception {
        channel(file);
        streams(file);
        sockets();
        channels();
        Check.equal(round, thrown(round));
        own(round);
        Thread.sleep(1);
        Check.that(CallContext.current(), new Throwable());
    }

    private static void channel(Path file) throws IOException {
        var options = List.of(StandardOpenOption.READ, StandardOpenOption.WRITE);
        try (FileChannel channel = FileChannel.open(file, options.toArray(StandardOpenOption[]::new))) {
            channel.write(ByteBuffer.allocate(10_000));
            channel.write(new ByteBuffer[] {ByteBuffer.allocate(10), ByteBuffer.allocate(20)});
            channel.position(0);
            Check.that(CallContext.current(), new Throwable());
            Check.equal(5_000, channel.read(ByteBuffer.allocate(5_000)));
            channel.force(true);
            Check.that(CallContext.current(), new Throwable());
        }
    }

    private static void streams(Path file) throws IOException {
        try (FileOutputStream out = new FileOutputStream(file.toFile())) {
            out.write(new byte[30_000]);
            out.write(3);
            Check.that(CallContext.current(), new Throwable());
        }
        try (FileInputStream in = new FileInputStream(file.toFile())) {
            Check.equal(30_000, in.read(new byte[30_000]));
            Check.equal(3, in.read());
            Check.equal(-1, in.read());
            Check.that(CallContext.current(), new Throwable());
        }
        try (RandomAccessFile random = new RandomAccessFile(file.toFile(), "rw")) {
            Check.equal(30_001, random.read(new byte[40_000]));
            random.write(new byte[9_000]);
            Check.that(CallContext.current(), new Throwable());
        }
    }

    private static void sockets() throws IOException {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                Socket there = new Socket(server.getInetAddress(), server.getLocalPort());
                Socket here = server.accept()) {
            there.getOutputStream().write(new byte[20_000]);
            Check.equal(20_000, here.getInputStream().readNBytes(20_000).length);
            Check.that(CallContext.current(), new Throwable());
        }
    }

    private static void channels() throws IOException {
        try (ServerSocketChannel server = ServerSocketChannel.open()) {
            server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            try (SocketChannel there = SocketChannel.open(server.getLocalAddress());
                    SocketChannel here = server.accept()) {
                Check.equal(100, there.write(ByteBuffer.allocate(100)));
                Check.equal(100, here.read(ByteBuffer.allocate(100)));
                Check.that(CallContext.current(), new Throwable());
            }
        }
    }

    private static int thrown(int round) {
        try {
            throw new IllegalStateException("round " + round);
        } catch (IllegalStateException e) {
            Check.that(CallContext.current(), new Throwable());
            return Integer.parseInt(e.getMessage().substring(6));
        }
    }

    private static void own(int round) {
        Own own = new Own();
        own.begin();
        own.text = "own event " + round;
        own.number = round;
        own.type = FlightRecording.class;
        own.end();
        Check.that(CallContext.current(), new Throwable());
        if (own.shouldCommit()) {
            Check.that(CallContext.current(), new Throwable());
            own.commit();
        }
        Check.that(CallContext.current(), new Throwable());
    }
}
