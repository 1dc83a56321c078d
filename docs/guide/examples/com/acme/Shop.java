package com.acme;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Orders are taken from a stock and written to invoices. */
public final class Shop {
    private final Map<String, Integer> stock = new HashMap<>();
    private final List<Integer> sizes = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Shop shop = new Shop();
        for (int item = 0; item < 20; item++) {
            shop.stock.put("item " + item, 1_000_000);
        }
        int orders = Integer.parseInt(args[0]);
        ExecutorService workers = Executors.newFixedThreadPool(4);
        for (int n = 0; n < orders; n++) {
            int order = n;
            workers.execute(() -> shop.order(order));
        }
        workers.shutdown();
        workers.awaitTermination(10, TimeUnit.MINUTES);
        System.out.println(shop.sizes.size() + " orders");
    }

    private void order(int number) {
        List<String> items = new ArrayList<>();
        for (int n = 0; n < 10; n++) {
            items.add("item " + (number + n) % 20);
        }
        items.forEach(this::take);
        String invoice = invoice(number, items);
        synchronized (sizes) {
            sizes.add(invoice.length());
        }
    }

    private synchronized void take(String item) {
        int left = stock.get(item);
        if (left % 50 == 0) {
            reorder(item);
        }
        stock.put(item, left - 1);
    }

    private void reorder(String item) {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static String invoice(int number, List<String> items) {
        String invoice = "invoice " + number + "\n";
        for (String item : items) {
            invoice += "1 × " + item + "\n";
        }
        return invoice;
    }
}
