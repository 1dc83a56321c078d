package io.lucce.apps.faults;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** A server on loopback that answers the commands of Redis clients: {@code GET} with a word, all others but {@code HELLO} with OK. */
final class RedisServer {
    private final ServerSocket socket;

    private RedisServer(ServerSocket socket) {
        this.socket = socket;
    }

    static RedisServer start() throws IOException {
        RedisServer server = new RedisServer(new ServerSocket(0, 50, InetAddress.getLoopbackAddress()));
        startDaemon(server::accept);
        return server;
    }

    int port() {
        return socket.getLocalPort();
    }

    void close() throws IOException {
        socket.close();
    }

    private static void startDaemon(Runnable body) {
        Thread thread = new Thread(body, "redis");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        while (!socket.isClosed()) {
            try {
                Socket client = socket.accept();
                client.setTcpNoDelay(true);
                startDaemon(() -> answer(client));
            } catch (IOException closed) {
                if (!socket.isClosed()) {
                    throw new UncheckedIOException(closed);
                }
            }
        }
    }

    private static void answer(Socket client) {
        try (client) {
            DataInputStream in = new DataInputStream(new BufferedInputStream(client.getInputStream()));
            OutputStream out = client.getOutputStream();
            for (String command = readCommand(in); command != null; command = readCommand(in)) {
                String answer = answerTo(command);
                out.write(answer.getBytes(StandardCharsets.US_ASCII));
                out.flush();
            }
        } catch (IOException gone) {
            // The client has closed its connection.
        }
    }

    private static String answerTo(String command) {
        switch (command) {
            case "GET":
                return "$4\r\npart\r\n";
            // Clients then use the older protocol.
            case "HELLO":
                return "-ERR unknown command\r\n";
            default:
                return "+OK\r\n";
        }
    }

    /** Reads an array of strings and returns the first. Null: the connection ends. */
    private static String readCommand(DataInputStream in) throws IOException {
        String head = readLine(in);
        if (head == null) {
            return null;
        }
        String command = "";
        int words = Integer.parseInt(head.substring(1));
        for (int word = 0; word < words; word++) {
            byte[] bytes = new byte[Integer.parseInt(readLine(in).substring(1)) + 2];
            in.readFully(bytes);
            if (word == 0) {
                command = new String(bytes, 0, bytes.length - 2, StandardCharsets.US_ASCII).toUpperCase(Locale.ROOT);
            }
        }
        return command;
    }

    private static String readLine(DataInputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                return null;
            }
            if (next != '\r') {
                line.append((char) next);
            }
        }
        return line.toString();
    }
}
