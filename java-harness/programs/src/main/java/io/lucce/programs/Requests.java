package io.lucce.programs;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import io.grpc.stub.StreamObserver;
import io.lucce.CallContext;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletMapping;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.jms.Message;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestMethod;

/**
 * Receives requests of all kinds, and knows what it does for each: prints {@code tags|requests|markers|bytes} for each name
 * at its end.
 */
public final class Requests {
    private static final Map<String, long[]> expected = new TreeMap<>();
    private static final String NONE = "(no tag)";
    private static final int THREADS = 6;
    private static final int ROUNDS = 15;

    private Requests() {}

    /** What is counted, and nothing else makes: 16 bytes. */
    static final class Marker {}

    /** A request of this name began. */
    private static synchronized void began(String name) {
        expected.computeIfAbsent(name, key -> new long[3])[0]++;
    }

    /** Makes markers under these tags, one and an array of them. */
    private static void work(String name, int length) {
        Object first = new Marker();
        Object more = new Marker[length];
        Check.that(CallContext.current(), new Throwable());
        synchronized (Requests.class) {
            long[] sums = expected.computeIfAbsent(name, key -> new long[3]);
            sums[1] += 2;
            // A header of 16 bytes, references of 4, rounded up to 8.
            sums[2] += 16 + (16 + 4L * length + 7) / 8 * 8;
        }
        if (first == more) throw new AssertionError();
    }

    // ---- com.sun.net.httpserver ---------------------------------------------------------------------

    /** A handler with a class of its own. */
    static final class Items implements HttpHandler {
        @Override
        public void handle(HttpExchange exchange) throws IOException {
            String name = "request=" + exchange.getRequestMethod() + " /items";
            began(name);
            // The agent's own name stays.
            try (CallContext.Tag tag = CallContext.requestTag("another")) {
                work(name, 3);
            }
            answer(exchange);
        }
    }

    private static void orders(HttpExchange exchange) throws IOException {
        String method = exchange.getRequestMethod();
        String name = "request=" + (method.equals("BREW") ? "OTHER" : method) + " /orders";
        began(name);
        work(name, 10);
        nested(name, 5);
        answer(exchange);
    }

    private static void nested(String name, int depth) {
        if (depth > 0) {
            nested(name, depth - 1);
        } else {
            try (CallContext.Tag tag = CallContext.tag("customer", "c1")) {
                work("customer=c1, " + name, 1);
            }
        }
    }

    private static void fails(HttpExchange exchange) {
        began("request=GET /fails");
        work("request=GET /fails", 2);
        throw new IllegalStateException("expected");
    }

    private static void answer(HttpExchange exchange) throws IOException {
        exchange.sendResponseHeaders(204, -1);
        exchange.close();
    }

    private static void serve() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 50);
        ExecutorService pool = Executors.newFixedThreadPool(4);
        server.setExecutor(pool);
        server.createContext("/items", new Items());
        server.createContext("/orders", Requests::orders);
        server.createContext("/fails", exchange -> fails(exchange));
        server.start();
        int port = server.getAddress().getPort();
        List<Thread> clients = new ArrayList<>();
        for (int n = 0; n < THREADS; n++) {
            int client = n;
            clients.add(new Thread(() -> ask(port, client), "client-" + n));
        }
        for (Thread client : clients) client.start();
        for (Thread client : clients) client.join();
        // Between two requests the pool's threads have no tag.
        pool.submit(() -> work(NONE, 4)).get();
        pool.submit(() -> {
            try (CallContext.Tag tag = CallContext.requestTag("of a tracer")) {
                work("request=of a tracer", 2);
            }
            work(NONE, 3);
        }).get();
        server.stop(0);
        pool.shutdown();
    }

    private static void ask(int port, int client) {
        for (int round = 0; round < ROUNDS; round++) {
            send(port, "GET /items/" + client + "-" + round);
            send(port, "POST /items?customer=" + client);
            send(port, "GET /orders/" + round + "/secret");
            send(port, "BREW /orders/x");
            send(port, "GET /fails/" + round);
        }
    }

    private static void send(int port, String line) {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            String text = line + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
            InputStream in = socket.getInputStream();
            while (in.read() >= 0) {
                // Until the server closes the connection.
            }
        } catch (IOException e) {
            // The server closes it if a handler has thrown.
        }
    }

    // ---- servlets and Spring ------------------------------------------------------------------------

    /** A request for a servlet. */
    record Asked(String method, String mapping) implements HttpServletRequest {
        @Override
        public String getMethod() {
            return method;
        }

        @Override
        public HttpServletMapping getHttpServletMapping() {
            if (mapping == null) throw new IllegalStateException("no mapping");
            return () -> mapping;
        }
    }

    /** Nothing is answered. */
    static final class Answer implements HttpServletResponse {}

    /** A controller of Spring, as its class file shows it. */
    @RequestMapping("/shop")
    static final class Shop {
        @GetMapping("/orders/{id}")
        Object order(int id) {
            began("request=GET /shop/orders/{id}");
            work("request=GET /shop/orders/{id}", 7);
            // One handler calls another: it is the same request.
            if (id % 2 == 1) items();
            return id;
        }

        @RequestMapping(path = {"items", "/goods"}, method = {RequestMethod.GET, RequestMethod.POST})
        String items() {
            boolean isInner = StackWalker.getInstance().walk(frames -> frames.skip(1).findFirst().orElseThrow().getMethodName().equals("order"));
            String name = isInner ? "request=GET /shop/orders/{id}" : "request=GET|POST /shop/items|goods";
            if (!isInner) began(name);
            work(name, 8);
            return "";
        }

        @RequestMapping
        void any() {
            began("request=PUT /shop");
            work("request=PUT /shop", 9);
            throw new UnsupportedOperationException("expected");
        }
    }

    /** Calls handlers by their names. */
    static final class Dispatcher extends HttpServlet {
        private final Shop shop = new Shop();

        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response) {
            Asked asked = (Asked) request;
            work("request=" + asked.method() + " /", 5);
            switch (asked.method()) {
                case "GET" -> {
                    shop.order(1);
                    shop.order(2);
                    // The name stays until the request ends.
                    work("request=GET /shop/orders/{id}", 6);
                    synchronized (Requests.class) {
                        // It is one request, although two handlers were called.
                        expected.get("request=GET /shop/orders/{id}")[0]--;
                    }
                }
                case "PUT" -> shop.any();
                default -> began("request=" + asked.method() + " /");
            }
        }
    }

    /** A servlet without handlers. */
    static final class Plain extends HttpServlet {
        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response) {
            String mapping = ((Asked) request).mapping();
            String name = "request=GET " + (mapping == null ? "jakarta.servlet.http.HttpServlet" : mapping);
            began(name);
            work(name, 11);
        }
    }

    private static void servlets() {
        Dispatcher dispatcher = new Dispatcher();
        Answer answer = new Answer();
        for (int n = 0; n < 20; n++) {
            dispatcher.service((jakarta.servlet.ServletRequest) new Asked("GET", "/"), answer);
            dispatcher.service((jakarta.servlet.ServletRequest) new Asked("DELETE", "/"), answer);
            try {
                dispatcher.service((jakarta.servlet.ServletRequest) new Asked("PUT", "/"), answer);
                throw new AssertionError("nothing was thrown");
            } catch (UnsupportedOperationException e) {
                work(NONE, 12);
            }
            new Plain().service((jakarta.servlet.ServletRequest) new Asked("GET", "/static/*"), answer);
            new Plain().service((jakarta.servlet.ServletRequest) new Asked("GET", null), answer);
            work(NONE, 13);
            new Shop().items();
        }
    }

    // ---- others -------------------------------------------------------------------------------------

    /** A resource of JAX-RS. */
    @Path("rest")
    static final class Resource {
        @GET
        @Path("/{id}/")
        public void get() {
            began("request=GET /rest/{id}");
            work("request=GET /rest/{id}", 14);
        }
    }

    /** The generated classes of a service of gRPC. */
    static final class GreeterGrpc {
        /** The base class of services. */
        abstract static class GreeterImplBase {
            void greet(String name, StreamObserver<String> observer) {}
        }
    }

    /** A service of gRPC. */
    static final class Greeter extends GreeterGrpc.GreeterImplBase {
        @Override
        void greet(String name, StreamObserver<String> observer) {
            began("request=grpc Greeter/greet");
            work("request=grpc Greeter/greet", 15);
        }
    }

    /** Listeners and jobs. */
    static final class Listeners {
        @KafkaListener(topics = {"orders", "returns"})
        void records(String value) {
            began("request=kafka orders|returns");
            work("request=kafka orders|returns", 16);
        }

        @KafkaListener
        void all(String value) {
            String name = "request=kafka io.lucce.programs.Requests$Listeners.all";
            began(name);
            work(name, 17);
        }

        @JmsListener(destination = "mail")
        void mail() {
            began("request=jms mail");
            work("request=jms mail", 18);
        }

        public void onMessage(Message message) {
            String name = "request=jms io.lucce.programs.Requests$Listeners";
            began(name);
            work(name, 19);
        }

        @Scheduled(fixedRate = 1000)
        static int clean(int depth) {
            String name = "request=scheduled io.lucce.programs.Requests$Listeners.clean";
            if (depth == 3) began(name);
            work(name, 20);
            // The outermost call is the request.
            return depth == 0 ? 0 : clean(depth - 1);
        }
    }

    private static void others() {
        Listeners listeners = new Listeners();
        for (int n = 0; n < 20; n++) {
            new Resource().get();
            new Greeter().greet("x", null);
            listeners.records("r");
            listeners.all("r");
            listeners.mail();
            listeners.onMessage(null);
            Listeners.clean(3);
            work(NONE, 21);
        }
    }

    public static void main(String[] args) throws Exception {
        servlets();
        others();
        serve();
        Thread[] threads = new Thread[4];
        for (int n = 0; n < threads.length; n++) {
            threads[n] = new Thread(() -> {
                servlets();
                others();
            });
            threads[n].start();
        }
        for (Thread thread : threads) thread.join();
        expected.forEach((tags, sums) -> System.out.println(tags + "#" + sums[0] + "#" + sums[1] + "#" + sums[2]));
        Check.done();
    }
}
