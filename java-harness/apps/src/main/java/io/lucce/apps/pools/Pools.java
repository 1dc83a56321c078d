package io.lucce.apps.pools;

import com.sun.net.httpserver.HttpServer;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.apache.commons.dbcp2.BasicDataSource;
import org.apache.commons.pool2.BasePooledObjectFactory;
import org.apache.commons.pool2.ObjectPool;
import org.apache.commons.pool2.PooledObject;
import org.apache.commons.pool2.impl.DefaultPooledObject;
import org.apache.commons.pool2.impl.GenericObjectPool;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.ClassicHttpResponse;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.io.entity.EntityUtils;

/** Takes from pools of libraries. One method of each pair forgets to give back; its number and class are printed. */
public final class Pools {
    private static final int FORGOTTEN = 3;
    private static final int USED = 20;
    private static final List<Object> kept = new ArrayList<>();

    private Pools() {}

    private interface Action {
        void run() throws Exception;
    }

    private static void repeat(int times, Action action) throws Exception {
        for (int i = 0; i < times; i++) action.run();
    }

    private static void left(String method, int number, String type) {
        System.out.println("left " + method + " " + number + " " + type);
    }

    private static void useHikari(DataSource pool) throws SQLException {
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("select 1");
        }
    }

    private static void forgetHikari(DataSource pool) throws SQLException {
        Connection connection = pool.getConnection();
        kept.add(connection);
        connection.createStatement().execute("select 2");
    }

    private static void useDbcp(DataSource pool) throws SQLException {
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement("select 1");
                ResultSet rows = statement.executeQuery()) {
            rows.next();
        }
    }

    private static void forgetDbcp(DataSource pool) throws SQLException {
        Connection connection = pool.getConnection();
        PreparedStatement statement = connection.prepareStatement("select 2");
        ResultSet rows = statement.executeQuery();
        kept.add(rows);
        kept.add(statement);
        kept.add(connection);
    }

    private static void usePool(ObjectPool<StringBuilder> pool) throws Exception {
        pool.returnObject(pool.borrowObject());
    }

    private static void forgetPool(ObjectPool<StringBuilder> pool) throws Exception {
        kept.add(pool.borrowObject());
    }

    private static void useBuffer(ByteBufAllocator allocator) {
        ByteBuf buffer = allocator.directBuffer(2000);
        buffer.retain().release();
        buffer.writeLong(1).release();
    }

    private static void forgetBuffer(ByteBufAllocator allocator) {
        allocator.directBuffer(8000).writeLong(1);
    }

    private static void forgetUnpooled(ByteBufAllocator allocator) {
        allocator.heapBuffer(64).writeLong(1);
    }

    private static void useApache(CloseableHttpClient client, URI server) throws Exception {
        try (ClassicHttpResponse response = open(client, server)) {
            EntityUtils.consume(response.getEntity());
        }
    }

    private static void forgetApache(CloseableHttpClient client, URI server) throws Exception {
        kept.add(open(client, server));
    }

    private static ClassicHttpResponse open(CloseableHttpClient client, URI server) throws Exception {
        return client.executeOpen(HttpHost.create(server), new HttpGet(server), null);
    }

    private static void useJdk(HttpClient client, URI server) throws Exception {
        try (InputStream body = get(client, server)) {
            body.readAllBytes();
        }
    }

    private static void forgetJdk(HttpClient client, URI server) throws Exception {
        kept.add(get(client, server));
    }

    private static InputStream get(HttpClient client, URI server) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(server).build();
        return client.send(request, HttpResponse.BodyHandlers.ofInputStream()).body();
    }

    private static void tryPools() throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:hikari");
        config.setMaximumPoolSize(FORGOTTEN + 1);
        HikariDataSource hikari = new HikariDataSource(config);
        repeat(USED, () -> useHikari(hikari));
        repeat(FORGOTTEN, () -> forgetHikari(hikari));
        left("forgetHikari", FORGOTTEN, "com.zaxxer.hikari.pool.HikariProxyConnection");
        left("forgetHikari", FORGOTTEN, "org.h2.jdbc.JdbcStatement");

        BasicDataSource dbcp = new BasicDataSource();
        dbcp.setUrl("jdbc:h2:mem:dbcp");
        repeat(USED, () -> useDbcp(dbcp));
        repeat(FORGOTTEN, () -> forgetDbcp(dbcp));
        left("forgetDbcp", FORGOTTEN, "org.apache.commons.dbcp2.PoolingDataSource$PoolGuardConnectionWrapper");
        left("forgetDbcp", FORGOTTEN, "org.h2.jdbc.JdbcPreparedStatement");
        left("forgetDbcp", FORGOTTEN, "org.h2.jdbc.JdbcResultSet");

        ObjectPool<StringBuilder> pool = new GenericObjectPool<>(new BasePooledObjectFactory<StringBuilder>() {
            @Override
            public StringBuilder create() {
                return new StringBuilder();
            }

            @Override
            public PooledObject<StringBuilder> wrap(StringBuilder builder) {
                return new DefaultPooledObject<>(builder);
            }
        });
        repeat(USED, () -> usePool(pool));
        repeat(FORGOTTEN, () -> forgetPool(pool));
        left("forgetPool", FORGOTTEN, "java.lang.StringBuilder");
    }

    private static void tryBuffers() throws Exception {
        PooledByteBufAllocator pooled = new PooledByteBufAllocator(true);
        repeat(100 * USED, () -> useBuffer(pooled));
        repeat(FORGOTTEN, () -> forgetBuffer(pooled));
        left("forgetBuffer", FORGOTTEN, "io.netty.buffer.PooledUnsafeDirectByteBuf");
        UnpooledByteBufAllocator unpooled = new UnpooledByteBufAllocator(false);
        repeat(USED, () -> useBuffer(unpooled));
        repeat(FORGOTTEN, () -> forgetUnpooled(unpooled));
        left("forgetUnpooled", FORGOTTEN, "io.netty.buffer.UnpooledByteBufAllocator$InstrumentedUnpooledUnsafeHeapByteBuf");
    }

    private static void tryClients() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        // More than a client reads ahead.
        byte[] body = new byte[1 << 20];
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, body.length);
            try {
                exchange.getResponseBody().write(body);
            } finally {
                exchange.close();
            }
        });
        server.setExecutor(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            thread.start();
        });
        server.start();
        URI address = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
        CloseableHttpClient apache = HttpClients.createDefault();
        HttpClient jdk = HttpClient.newHttpClient();
        repeat(USED, () -> useApache(apache, address));
        repeat(FORGOTTEN, () -> forgetApache(apache, address));
        left("forgetApache", FORGOTTEN, "org.apache.hc.client5.http.impl.classic.InternalExecRuntime");
        repeat(USED, () -> useJdk(jdk, address));
        repeat(FORGOTTEN, () -> forgetJdk(jdk, address));
        // A thread of the client opens it.
        left("-", FORGOTTEN, "jdk.internal.net.http.ResponseSubscribers$HttpResponseInputStream");
    }

    public static void main(String[] args) throws Exception {
        tryPools();
        tryBuffers();
        tryClients();
        System.out.println("ended");
        // The clients' threads may go on.
        System.exit(0);
    }
}
