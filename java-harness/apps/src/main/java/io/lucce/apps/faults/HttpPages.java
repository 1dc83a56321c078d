package io.lucce.apps.faults;

import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;

/** Pages that get the parts of an answer from a server on loopback: one by one, or all in one call. */
final class HttpPages {
    /** Runs of each page. */
    static final int RUNS = 30;
    /** Calls of each client for each run. */
    static final int PARTS = 5;
    private static long sum;
    private static Object kept;

    private HttpPages() {}

    /** What each run of a page makes once. */
    private static final class View {}

    private abstract static class Page implements Runnable {
        URI server;
        int parts;

        abstract int load(int part);

        final void loadAll() {
            for (int part = 0; part < parts; part++) {
                sum += load(part);
            }
        }
    }

    private static final class JdkPage extends Page {
        private final HttpClient client = HttpClient.newHttpClient();

        @Override
        public void run() {
            kept = new View();
            loadAll();
        }

        @Override
        int load(int part) {
            HttpRequest request = HttpRequest.newBuilder(server.resolve("/" + part)).build();
            try {
                return client.send(request, HttpResponse.BodyHandlers.ofString()).body().length();
            } catch (Exception failed) {
                throw new IllegalStateException(failed);
            }
        }
    }

    private static final class UrlPage extends Page {
        @Override
        public void run() {
            kept = new View();
            loadAll();
        }

        @Override
        int load(int part) {
            try {
                HttpURLConnection connection =
                        (HttpURLConnection) server.resolve("/" + part).toURL().openConnection();
                try (InputStream in = connection.getInputStream()) {
                    return in.readAllBytes().length;
                }
            } catch (Exception failed) {
                throw new IllegalStateException(failed);
            }
        }
    }

    private static final class ApachePage extends Page {
        private final CloseableHttpClient client = HttpClients.createDefault();

        @Override
        public void run() {
            kept = new View();
            loadAll();
        }

        @Override
        int load(int part) {
            HttpGet request = new HttpGet(server.resolve("/" + part));
            try {
                return client.execute(request, answer -> answer.getEntity().getContent().readAllBytes().length);
            } catch (Exception failed) {
                throw new IllegalStateException(failed);
            }
        }
    }

    /** A pool's thread runs the pages, so that the page is the entry. */
    static void serve(boolean isOneCall) throws Exception {
        // Without it, the server waits 40 ms for each answer.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        InetAddress loopback = InetAddress.getLoopbackAddress();
        HttpServer server = HttpServer.create(new InetSocketAddress(loopback, 0), 0);
        byte[] answer = "part".getBytes(StandardCharsets.UTF_8);
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
        URI address = URI.create("http://localhost:" + server.getAddress().getPort());
        ExecutorService pool = Executors.newSingleThreadExecutor();
        for (Page page : new Page[] {new JdkPage(), new UrlPage(), new ApachePage()}) {
            page.server = address;
            page.parts = isOneCall ? 1 : PARTS;
            for (int run = 0; run < (isOneCall ? RUNS * PARTS : RUNS); run++) {
                pool.submit(page).get();
            }
        }
        pool.shutdown();
        server.stop(0);
    }
}
