package io.lucce.apps.faults;

import com.sun.net.httpserver.HttpServer;
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.sync.RedisCommands;
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
import java.util.concurrent.TimeUnit;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import redis.clients.jedis.Jedis;

/** Pages that get the parts of an answer from servers on loopback: one by one, or all in one call. */
public final class RemotePages {
    /** Runs of each page. */
    static final int RUNS = 30;
    /** Calls of each client for each run. */
    static final int PARTS = 5;
    private static long sum;
    private static Object kept;

    private RemotePages() {}

    /** What each run of a page makes once. */
    private static final class View {}

    private abstract static class Page implements Runnable {
        int parts;

        abstract int load(int part);

        final void loadAll() {
            for (int part = 0; part < parts; part++) {
                sum += load(part);
            }
        }
    }

    private abstract static class HttpPage extends Page {
        final URI server;

        HttpPage(URI server) {
            this.server = server;
        }
    }

    private static final class JdkPage extends HttpPage {
        private final HttpClient client = HttpClient.newHttpClient();
        JdkPage(URI server) {
            super(server);
        }

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

    private static final class UrlPage extends HttpPage {
        UrlPage(URI server) {
            super(server);
        }

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

    private static final class ApachePage extends HttpPage {
        private final CloseableHttpClient client = HttpClients.createDefault();
        ApachePage(URI server) {
            super(server);
        }

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

    private static final class OkPage extends HttpPage {
        private final OkHttpClient client = new OkHttpClient();
        OkPage(URI server) {
            super(server);
        }

        @Override
        public void run() {
            kept = new View();
            loadAll();
        }

        @Override
        int load(int part) {
            Request request = new Request.Builder().url(server + "/" + part).build();
            try (Response answer = client.newCall(request).execute()) {
                return answer.body().bytes().length;
            } catch (Exception failed) {
                throw new IllegalStateException(failed);
            }
        }
    }

    private static final class JedisPage extends Page {
        private final Jedis client;

        JedisPage(int port) {
            client = new Jedis(InetAddress.getLoopbackAddress().getHostAddress(), port);
        }

        @Override
        public void run() {
            kept = new View();
            loadAll();
        }

        @Override
        int load(int part) {
            return client.get("part" + part).length();
        }
    }

    private static final class LettucePage extends Page {
        private final RedisCommands<String, String> client;

        LettucePage(RedisClient client) {
            this.client = client.connect().sync();
        }

        @Override
        public void run() {
            kept = new View();
            loadAll();
        }

        @Override
        int load(int part) {
            return client.get("part" + part).length();
        }
    }

    /** {@code apart}: each part has its own call; {@code together}: each page makes one call. */
    public static void main(String[] args) throws Exception {
        serve(args[0].equals("together"));
        System.out.println(sum > 0);
    }

    /** A pool's thread runs the pages, so that the page is the entry. */
    private static void serve(boolean isOneCall) throws Exception {
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
        RedisServer redis = RedisServer.start();
        RedisClient lettuce = RedisClient.create("redis://127.0.0.1:" + redis.port());
        ExecutorService pool = Executors.newSingleThreadExecutor();
        Page[] pages = {
            new JdkPage(address),
            new UrlPage(address),
            new ApachePage(address),
            new OkPage(address),
            new JedisPage(redis.port()),
            new LettucePage(lettuce)
        };
        for (Page page : pages) {
            page.parts = isOneCall ? 1 : PARTS;
            for (int run = 0; run < (isOneCall ? RUNS * PARTS : RUNS); run++) {
                pool.submit(page).get();
            }
        }
        pool.shutdown();
        lettuce.shutdown(0, 1, TimeUnit.SECONDS);
        redis.close();
        server.stop(0);
    }
}
