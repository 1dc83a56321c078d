package io.lucce.apps;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.zip.CRC32;

/** A mix of orders, payments, deliveries and queries like TPC-C's, on a database in memory. */
public final class H2Mix {
    private static final int DISTRICTS = 5;
    private static final int CUSTOMERS = 60;
    private static final int ITEMS = 500;

    private static final String[] SCHEMA = {
        "CREATE TABLE warehouse (w_id INT PRIMARY KEY, w_name VARCHAR(20), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2))",
        "CREATE TABLE district (d_w_id INT, d_id INT, d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next INT, PRIMARY KEY (d_w_id, d_id))",
        "CREATE TABLE customer (c_w_id INT, c_d_id INT, c_id INT, c_last VARCHAR(20), c_balance DECIMAL(12,2), c_payments INT, c_data VARCHAR(200), PRIMARY KEY (c_w_id, c_d_id, c_id))",
        "CREATE INDEX customer_last ON customer (c_w_id, c_d_id, c_last)",
        "CREATE TABLE item (i_id INT PRIMARY KEY, i_name VARCHAR(30), i_price DECIMAL(6,2))",
        "CREATE TABLE stock (s_w_id INT, s_i_id INT, s_quantity INT, s_ytd INT, s_data VARCHAR(60), PRIMARY KEY (s_w_id, s_i_id))",
        "CREATE TABLE orders (o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_carrier INT, o_lines INT, PRIMARY KEY (o_w_id, o_d_id, o_id))",
        "CREATE TABLE order_line (l_w_id INT, l_d_id INT, l_o_id INT, l_number INT, l_i_id INT, l_quantity INT, l_amount DECIMAL(10,2), PRIMARY KEY (l_w_id, l_d_id, l_o_id, l_number))",
        "CREATE TABLE history (h_w_id INT, h_d_id INT, h_c_id INT, h_amount DECIMAL(8,2))",
    };

    private final Driver driver;

    private H2Mix(Driver driver) {
        this.driver = driver;
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver("H2Mix", args);
        driver.run(new H2Mix(driver)::iteration);
    }

    /** One terminal and one warehouse per task: the result does not depend on who runs first. */
    private String iteration(CRC32 checksum) throws Exception {
        String url = "jdbc:h2:mem:mix" + System.nanoTime() + ";DB_CLOSE_DELAY=0";
        int warehouses = 4;
        int transactions = driver.scaled(3000);
        try (Connection keeper = DriverManager.getConnection(url)) {
            load(keeper, warehouses);
            List<Callable<Terminal>> tasks = new ArrayList<>();
            for (int w = 1; w <= warehouses; w++) {
                int warehouse = w;
                tasks.add(() -> {
                    try (Connection connection = DriverManager.getConnection(url)) {
                        Terminal terminal = new Terminal(connection, warehouse);
                        terminal.run(transactions / warehouses);
                        return terminal;
                    }
                });
            }
            int refused = 0;
            for (Terminal terminal : driver.parallel(tasks)) {
                refused += terminal.refused;
            }
            audit(keeper, checksum);
            return warehouses + " warehouses, " + transactions + " transactions, " + refused + " rolled back";
        }
    }

    private static void load(Connection connection, int warehouses) throws SQLException {
        Random random = new Random(42);
        try (Statement statement = connection.createStatement()) {
            for (String ddl : SCHEMA) {
                statement.execute(ddl);
            }
        }
        connection.setAutoCommit(false);
        try (PreparedStatement item = connection.prepareStatement("INSERT INTO item VALUES (?, ?, ?)")) {
            for (int i = 1; i <= ITEMS; i++) {
                set(item, i, "item " + Integer.toString(random.nextInt(1 << 20), 36), (100 + random.nextInt(9900)) / 100.0);
                item.addBatch();
            }
            item.executeBatch();
        }
        for (int w = 1; w <= warehouses; w++) {
            update(connection, "INSERT INTO warehouse VALUES (?, ?, ?, 0)", w, "warehouse " + w, random.nextInt(2000) / 10000.0);
            for (int i = 1; i <= ITEMS; i++) {
                update(connection, "INSERT INTO stock VALUES (?, ?, ?, 0, ?)", w, i, 10 + random.nextInt(90), "stock " + random.nextLong());
            }
            for (int d = 1; d <= DISTRICTS; d++) {
                update(connection, "INSERT INTO district VALUES (?, ?, ?, 0, 1)", w, d, random.nextInt(2000) / 10000.0);
                for (int c = 1; c <= CUSTOMERS; c++) {
                    update(connection, "INSERT INTO customer VALUES (?, ?, ?, ?, 0, 0, ?)", w, d, c, last(c), "customer " + random.nextLong());
                }
            }
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    private static String last(int customer) {
        String[] syllables = {"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"};
        return syllables[customer / 10 % 10] + syllables[customer % 10];
    }

    private static void set(PreparedStatement statement, Object... values) throws SQLException {
        for (int i = 0; i < values.length; i++) {
            statement.setObject(i + 1, values[i]);
        }
    }

    private static int update(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            set(statement, values);
            return statement.executeUpdate();
        }
    }

    private static long query(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            set(statement, values);
            try (ResultSet rows = statement.executeQuery()) {
                return rows.next() ? Math.round(rows.getDouble(1) * 100) : 0;
            }
        }
    }

    private static void audit(Connection connection, CRC32 checksum) throws SQLException {
        String[] sums = {
            "SELECT SUM(w_ytd) FROM warehouse", "SELECT SUM(d_ytd) + SUM(d_next) FROM district",
            "SELECT SUM(c_balance) + SUM(c_payments) FROM customer", "SELECT SUM(s_quantity) + SUM(s_ytd) FROM stock",
            "SELECT COUNT(*) FROM orders", "SELECT SUM(l_amount) FROM order_line", "SELECT SUM(h_amount) FROM history",
            "SELECT MAX(total) FROM (SELECT c.c_last, SUM(l.l_amount) AS total FROM customer c JOIN orders o ON o.o_w_id = c.c_w_id"
                    + " AND o.o_d_id = c.c_d_id AND o.o_c_id = c.c_id JOIN order_line l ON l.l_w_id = o.o_w_id AND l.l_d_id = o.o_d_id"
                    + " AND l.l_o_id = o.o_id GROUP BY c.c_last)",
        };
        for (String sum : sums) {
            Driver.add(checksum, query(connection, sum));
        }
    }

    /** Thrown where TPC-C wants a transaction to be rolled back. */
    private static final class UnknownItem extends Exception {
        private static final long serialVersionUID = 1;

        UnknownItem(int item) {
            super("no item " + item);
        }
    }

    private static final class Terminal {
        private final Connection connection;
        private final int warehouse;
        private final Random random;
        int refused;

        Terminal(Connection connection, int warehouse) throws SQLException {
            this.connection = connection;
            this.warehouse = warehouse;
            random = new Random(warehouse);
            connection.setAutoCommit(false);
        }

        void run(int transactions) throws SQLException {
            for (int t = 0; t < transactions; t++) {
                try {
                    int kind = random.nextInt(100);
                    if (kind < 45) {
                        order();
                    } else if (kind < 88) {
                        payment();
                    } else if (kind < 92) {
                        status();
                    } else if (kind < 96) {
                        delivery();
                    } else {
                        stockLevel();
                    }
                    connection.commit();
                } catch (UnknownItem e) {
                    refused++;
                    connection.rollback();
                }
            }
        }

        private int district() {
            return 1 + random.nextInt(DISTRICTS);
        }

        private void order() throws SQLException, UnknownItem {
            int district = district();
            int customer = 1 + random.nextInt(CUSTOMERS);
            int order = (int) (query(connection, "SELECT d_next FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE", warehouse, district) / 100);
            update(connection, "UPDATE district SET d_next = d_next + 1 WHERE d_w_id = ? AND d_id = ?", warehouse, district);
            int lines = 5 + random.nextInt(11);
            update(connection, "INSERT INTO orders VALUES (?, ?, ?, ?, NULL, ?)", warehouse, district, order, customer, lines);
            for (int line = 1; line <= lines; line++) {
                int item = random.nextInt(500) == 0 ? -1 : 1 + random.nextInt(ITEMS);
                long cents = query(connection, "SELECT i_price FROM item WHERE i_id = ?", item);
                if (cents == 0) {
                    throw new UnknownItem(item);
                }
                int quantity = 1 + random.nextInt(10);
                update(connection, "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= ? + 10 THEN s_quantity - ? ELSE s_quantity + 91 - ? END,"
                        + " s_ytd = s_ytd + ? WHERE s_w_id = ? AND s_i_id = ?", quantity, quantity, quantity, quantity, warehouse, item);
                update(connection, "INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, ?)", warehouse, district, order, line, item, quantity, cents * quantity / 100.0);
            }
        }

        private void payment() throws SQLException {
            int district = district();
            double amount = (100 + random.nextInt(500_000)) / 100.0;
            update(connection, "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", amount, warehouse);
            update(connection, "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", amount, warehouse, district);
            int customer = 1 + random.nextInt(CUSTOMERS);
            if (random.nextInt(100) < 60) {
                customer = (int) (query(connection, "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_id",
                        warehouse, district, last(customer)) / 100);
            }
            update(connection, "UPDATE customer SET c_balance = c_balance - ?, c_payments = c_payments + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                    amount, warehouse, district, customer);
            update(connection, "INSERT INTO history VALUES (?, ?, ?, ?)", warehouse, district, customer, amount);
        }

        private void status() throws SQLException {
            int district = district();
            int customer = 1 + random.nextInt(CUSTOMERS);
            long order = query(connection, "SELECT MAX(o_id) FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?", warehouse, district, customer) / 100;
            query(connection, "SELECT SUM(l_amount) FROM order_line WHERE l_w_id = ? AND l_d_id = ? AND l_o_id = ?", warehouse, district, order);
        }

        private void delivery() throws SQLException {
            for (int district = 1; district <= DISTRICTS; district++) {
                long order = query(connection, "SELECT MIN(o_id) FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_carrier IS NULL", warehouse, district) / 100;
                if (order == 0) {
                    continue;
                }
                update(connection, "UPDATE orders SET o_carrier = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", 1 + random.nextInt(10), warehouse, district, order);
                long cents = query(connection, "SELECT SUM(l_amount) FROM order_line WHERE l_w_id = ? AND l_d_id = ? AND l_o_id = ?", warehouse, district, order);
                long customer = query(connection, "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", warehouse, district, order) / 100;
                update(connection, "UPDATE customer SET c_balance = c_balance + ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", cents / 100.0, warehouse, district, customer);
            }
        }

        private void stockLevel() throws SQLException {
            int district = district();
            long next = query(connection, "SELECT d_next FROM district WHERE d_w_id = ? AND d_id = ?", warehouse, district) / 100;
            query(connection, "SELECT COUNT(DISTINCT s.s_i_id) FROM order_line l JOIN stock s ON s.s_w_id = l.l_w_id AND s.s_i_id = l.l_i_id"
                    + " WHERE l.l_w_id = ? AND l.l_d_id = ? AND l.l_o_id >= ? AND s.s_quantity < ?", warehouse, district, next - 20, 10 + random.nextInt(11));
        }
    }
}
