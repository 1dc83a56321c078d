package com.acme;

import io.lucce.CallContext;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Connections are told where they were opened, and say so when they are left open. */
final class Pool {
    private static final Logger LOG = Logger.getLogger("com.acme");

    record Connection(String to, long openedAt) {}

    private final List<Connection> open = new ArrayList<>();

    Connection open(String to) {
        // One long per connection.
        Connection connection = new Connection(to, CallContext.current());
        open.add(connection);
        return connection;
    }

    void close(Connection connection) {
        open.remove(connection);
    }

    void shutDown() {
        LOG.info("shutting down");
        for (Connection left : open) {
            LOG.log(Level.WARNING, "connection to {0} is still open, opened at {1}",
                new Object[] {left.to(), CallContext.toString(left.openedAt())});
        }
    }

    public static void main(String[] args) {
        Pool pool = new Pool();
        Orders orders = new Orders(pool);
        orders.take(2);
        pool.shutDown();
    }
}

/** The last order forgets its connection. */
final class Orders {
    private final Pool pool;

    Orders(Pool pool) {
        this.pool = pool;
    }

    void take(int number) {
        if (number > 1) {
            pool.close(pool.open("database"));
            take(number - 1);
            return;
        }
        pool.open("database");
    }
}
