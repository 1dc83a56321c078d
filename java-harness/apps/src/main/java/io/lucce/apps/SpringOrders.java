package io.lucce.apps;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.zip.CRC32;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.beans.factory.support.BeanDefinitionBuilder;
import org.springframework.cache.CacheManager;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.cache.concurrent.ConcurrentMapCacheManager;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Scope;
import org.springframework.context.event.EventListener;
import org.springframework.context.support.PropertySourcesPlaceholderConfigurer;
import org.springframework.core.env.MapPropertySource;
import org.springframework.expression.Expression;
import org.springframework.expression.spel.standard.SpelExpressionParser;

/** Starts Spring application contexts and has their beans take orders. */
public final class SpringOrders {
    private final Driver driver;

    private SpringOrders(Driver driver) {
        this.driver = driver;
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("SpringOrders", args);
        driver.run(new SpringOrders(driver)::iteration);
    }

    private String iteration(CRC32 checksum) throws Exception {
        int contexts = driver.scaled(40);
        List<Callable<String>> tasks = new ArrayList<>();
        for (int i = 0; i < contexts; i++) {
            int seed = i;
            tasks.add(() -> serve(seed));
        }
        for (String result : driver.parallel(tasks)) {
            checksum.update(result.getBytes(StandardCharsets.UTF_8));
        }
        return contexts + " contexts, 300 orders in each";
    }

    private static String serve(int seed) {
        try (var context = new AnnotationConfigApplicationContext()) {
            Map<String, Object> settings = Map.of("shop.articles", 40, "shop.discount", "0.05");
            context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("shop", settings));
            context.register(Shop.class);
            // Beans without a class of their own, each with the one before it.
            for (int i = 0; i < 60; i++) {
                var shelf = BeanDefinitionBuilder.genericBeanDefinition(Shelf.class).addConstructorArgValue(i);
                if (i > 0) {
                    shelf.addPropertyReference("next", "shelf" + (i - 1));
                }
                context.registerBeanDefinition("shelf" + i, shelf.getBeanDefinition());
            }
            context.refresh();
            Random random = new Random(seed);
            Orders orders = context.getBean(Orders.class);
            for (int i = 0; i < 300; i++) {
                Order order = context.getBean(Order.class);
                for (int line = random.nextInt(5); line >= 0; line--) {
                    order.lines.merge("article " + random.nextInt(40), 1 + random.nextInt(9), Integer::sum);
                }
                orders.place(order);
            }
            return context.getBean(Ledger.class) + " " + context.getBean("shelf59");
        }
    }

    /** What the shop consists of. */
    @Configuration
    @EnableCaching
    @Import({Prices.class, Orders.class, Ledger.class})
    static class Shop {
        @Bean
        static PropertySourcesPlaceholderConfigurer settings() {
            return new PropertySourcesPlaceholderConfigurer();
        }

        @Bean
        CacheManager caches() {
            return new ConcurrentMapCacheManager("prices");
        }

        @Bean
        @Scope("prototype")
        Order order() {
            return new Order();
        }
    }

    /** A bean that is defined by hand. */
    public static final class Shelf {
        private final int number;
        private Shelf next;

        public Shelf(int number) {
            this.number = number;
        }

        public void setNext(Shelf next) {
            this.next = next;
        }

        @Override
        public String toString() {
            return next == null ? "" + number : next + "," + number;
        }
    }

    /** What is asked for, by article. */
    public static class Order {
        final Map<String, Integer> lines = new TreeMap<>();

        public Map<String, Integer> getLines() {
            return lines;
        }
    }

    /** Spring puts a cache before it. */
    static class Prices {
        private final int articles;

        Prices(@Value("${shop.articles}") int articles) {
            this.articles = articles;
        }

        @Cacheable("prices")
        public BigDecimal of(String article) {
            int number = Integer.parseInt(article.substring("article ".length()));
            return BigDecimal.valueOf(100L * (number % articles) + 99, 2);
        }
    }

    static final class Placed {
        private final Order order;
        private final BigDecimal total;

        Placed(Order order, BigDecimal total) {
            this.order = order;
            this.total = total;
        }

        public Order order() {
            return order;
        }

        public BigDecimal total() {
            return total;
        }
    }

    static class Orders {
        private static final Expression PIECES =
                new SpelExpressionParser().parseExpression("lines.?[value > 4].size() + 10 * lines.size()");
        private final Prices prices;
        private final ApplicationEventPublisher events;
        private final BigDecimal discount;

        Orders(Prices prices, ApplicationEventPublisher events, @Value("#{${shop.discount} * 2}") BigDecimal discount) {
            this.prices = prices;
            this.events = events;
            this.discount = discount;
        }

        void place(Order order) {
            BigDecimal total = BigDecimal.ZERO;
            for (var line : order.lines.entrySet()) {
                total = total.add(prices.of(line.getKey()).multiply(BigDecimal.valueOf(line.getValue())));
            }
            if (PIECES.getValue(order, Integer.class) > 30) {
                total = total.subtract(total.multiply(discount));
            }
            events.publishEvent(new Placed(order, total));
        }
    }

    static class Ledger {
        private BigDecimal total = BigDecimal.ZERO;
        private int orders;

        @EventListener
        void placed(Placed event) {
            total = total.add(event.total());
            orders++;
        }

        @EventListener(condition = "#a0.order.lines.size() > 4")
        void large(Placed event) {
            orders += 1000;
        }

        @Override
        public String toString() {
            return orders + " " + total;
        }
    }
}
