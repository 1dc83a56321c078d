package io.lucce.shop;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;

/** Sends requests to the shop of the same process, checks the answers, and ends the program. */
@Component
public class ShopClient {
    private static final int CLIENTS = 4;

    private final ServletWebServerApplicationContext context;
    private final AuditTrail audit;

    /** Requests of each kind; 0: none, and the program goes on serving. */
    private final int requests;

    ShopClient(
            ServletWebServerApplicationContext context,
            AuditTrail audit,
            @Value("${shop.requests:0}") int requests) {
        this.context = context;
        this.audit = audit;
        this.requests = requests;
    }

    @EventListener(ApplicationReadyEvent.class)
    void sendRequests() throws Exception {
        if (requests == 0) {
            return;
        }
        String address = "http://127.0.0.1:" + context.getWebServer().getPort();
        HttpClient client = HttpClient.newHttpClient();
        ExecutorService clients = Executors.newFixedThreadPool(CLIENTS);
        List<Future<Integer>> sent = new ArrayList<>();
        for (int number = 0; number < CLIENTS; number++) {
            int share = requests / CLIENTS + (number < requests % CLIENTS ? 1 : 0);
            Callable<Integer> task = () -> sendShare(client, address, share);
            sent.add(clients.submit(task));
        }
        int failed = 0;
        for (Future<Integer> result : sent) {
            failed += result.get();
        }
        clients.shutdown();
        boolean isRight = failed == 0 && audit.size() == requests;
        System.out.println((isRight ? "OK " : "FAILED ") + requests + " requests of each kind, " + failed + " wrong answers");
        int code = SpringApplication.exit(context, () -> isRight ? 0 : 1);
        System.exit(code);
    }

    /** The number of wrong answers. */
    private static int sendShare(HttpClient client, String address, int share) throws Exception {
        int failed = 0;
        for (int request = 0; request < share; request++) {
            int customer = request % ShopData.CUSTOMERS;
            HttpRequest.Builder total = HttpRequest.newBuilder(URI.create(address + "/customers/" + customer + "/total"));
            String expected = "{\"customer\":" + customer + ",\"cents\":" + ShopData.expectedTotal() + "}";
            if (!body(client, total.build()).equals(expected)) {
                failed++;
            }
            HttpRequest.Builder reserve = HttpRequest.newBuilder(URI.create(address + "/stock/pen/reservations"));
            body(client, reserve.POST(BodyPublishers.noBody()).build());
            body(client, HttpRequest.newBuilder(URI.create(address + "/stock/pen")).build());
        }
        return failed;
    }

    private static String body(HttpClient client, HttpRequest request) throws IOException, InterruptedException {
        var answer = client.send(request, BodyHandlers.ofString());
        if (answer.statusCode() != 200) {
            throw new IOException(request.uri() + ": status " + answer.statusCode());
        }
        return answer.body();
    }
}
