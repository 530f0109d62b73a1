import java.io.*;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

/** `quarrier serve` as JDBC programs use it: statements in both protocols, batches, cursors, metadata, COPY, cancel. */
class Jdbc {
    static void same(Object found, Object expected) {
        if (!Objects.equals(found, expected)) throw new AssertionError(found + " instead of " + expected);
    }

    static Connection open(String port, String options) throws SQLException {
        return DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + port + "/quarrier?user=ann" + options);
    }

    public static void main(String[] arguments) throws Exception {
        for (String options : List.of("", "&preferQueryMode=simple", "&binaryTransfer=false", "&prepareThreshold=1")) {
            try (Connection db = open(arguments[0], options)) {
                write(db, "t" + Math.abs(options.hashCode()));
            } catch (Exception error) {
                throw new Exception("with '" + options + "'", error);
            }
        }
        try (Connection db = open(arguments[0], "")) {
            describe(db);
            fetchInParts(db);
            copy(db);
            cancel(db);
        }
        System.out.println("all is well");
    }

    static void write(Connection db, String table) throws SQLException {
        try (Statement statement = db.createStatement()) {
            statement.execute("CREATE TABLE " + table
                + " (id bigint NOT NULL, word text, price numeric(12, 4), ok boolean, at timestamp, on_day date, ratio double precision)");
        }
        String insert = "INSERT INTO " + table + " VALUES (?, ?, ?, ?, ?, ?, ?)";
        try (PreparedStatement statement = db.prepareStatement(insert)) {
            for (int id = 0; id < 20; id++) {
                statement.setLong(1, id);
                statement.setString(2, id % 3 == 0 ? null : "w" + id);
                statement.setBigDecimal(3, new BigDecimal("1.2500").multiply(BigDecimal.valueOf(id)));
                statement.setBoolean(4, id % 2 == 0);
                statement.setTimestamp(5, Timestamp.valueOf("2024-01-31 10:00:00.25"));
                statement.setDate(6, java.sql.Date.valueOf("2024-01-31"));
                statement.setDouble(7, id / 4.0);
                statement.addBatch();
            }
            same(Arrays.stream(statement.executeBatch()).sum(), 20);
        }
        try (PreparedStatement statement = db.prepareStatement(
                "SELECT id, word, price, ok, at, on_day, ratio FROM " + table + " WHERE id >= ? AND word LIKE ? ORDER BY id")) {
            // Often enough for the driver to prepare it on the server, and to change to binary.
            for (int round = 0; round < 8; round++) {
                statement.setInt(1, 17);
                statement.setString(2, "w%");
                try (ResultSet rows = statement.executeQuery()) {
                    same(rows.getMetaData().getColumnTypeName(3), "numeric");
                    same(rows.next(), true);
                    same(rows.getLong("id"), 17L);
                    same(rows.getString("word"), "w17");
                    same(rows.getBigDecimal("price"), new BigDecimal("21.2500"));
                    same(rows.getBoolean("ok"), false);
                    same(rows.getTimestamp("at"), Timestamp.valueOf("2024-01-31 10:00:00.25"));
                    same(rows.getDate("on_day"), java.sql.Date.valueOf("2024-01-31"));
                    same(rows.getDouble("ratio"), 4.25);
                    same(rows.next(), true);
                    same(rows.getLong(1), 19L);
                    same(rows.next(), false);
                }
            }
        }
        try (Statement statement = db.createStatement()) {
            statement.executeQuery("SELECT nothing FROM " + table);
            throw new AssertionError("a column that is not there");
        } catch (SQLException error) {
            same(error.getSQLState(), "42703");
        }
    }

    static void describe(Connection db) throws SQLException {
        DatabaseMetaData data = db.getMetaData();
        same(data.getDatabaseProductName(), "PostgreSQL");
        try (Statement statement = db.createStatement()) {
            statement.execute("CREATE TABLE described (id bigint NOT NULL, word text, price numeric(12, 4))");
        }
        List<String> found = new ArrayList<>();
        try (ResultSet tables = data.getTables(null, "public", "described", new String[] {"TABLE"})) {
            while (tables.next()) found.add(tables.getString("TABLE_NAME"));
        }
        same(found, List.of("described"));
        found.clear();
        try (ResultSet columns = data.getColumns(null, "public", "described", null)) {
            while (columns.next()) {
                found.add(columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME") + " " + columns.getInt("NULLABLE")
                    + " " + columns.getInt("COLUMN_SIZE") + " " + columns.getInt("DECIMAL_DIGITS"));
            }
        }
        same(found, List.of("id int8 0 19 0", "word text 1 2147483647 0", "price numeric 1 12 4"));
        try (ResultSet schemas = data.getSchemas()) {
            Set<String> names = new HashSet<>();
            while (schemas.next()) names.add(schemas.getString(1));
            same(names.contains("public"), true);
        }
        for (ResultSet rows : List.of(data.getPrimaryKeys(null, "public", "described"), data.getIndexInfo(null, "public", "described", false, true),
                data.getImportedKeys(null, "public", "described"), data.getTypeInfo(), data.getCatalogs(), data.getTableTypes())) {
            rows.close();
        }
    }

    static void fetchInParts(Connection db) throws SQLException {
        db.setAutoCommit(false);
        try (Statement statement = db.createStatement()) {
            statement.setFetchSize(100);
            long sum = 0;
            try (ResultSet rows = statement.executeQuery("SELECT value FROM generate_series(1, 5000)")) {
                while (rows.next()) sum += rows.getLong(1);
            }
            same(sum, 12_502_500L);
        }
        db.commit();
        db.setAutoCommit(true);
    }

    static void copy(Connection db) throws Exception {
        try (Statement statement = db.createStatement()) {
            statement.execute("CREATE TABLE copied (id bigint, word text)");
        }
        CopyManager manager = db.unwrap(PGConnection.class).getCopyAPI();
        same(manager.copyIn("COPY copied FROM STDIN (FORMAT csv)", new StringReader("1,a\n2,\"b, c\"\n")), 2L);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        same(manager.copyOut("COPY (SELECT * FROM copied ORDER BY id) TO STDOUT", out), 2L);
        same(out.toString(StandardCharsets.UTF_8), "1\ta\n2\tb, c\n");
    }

    static void cancel(Connection db) throws Exception {
        try (Statement statement = db.createStatement()) {
            Timer timer = new Timer(true);
            timer.schedule(new TimerTask() {
                @Override public void run() {
                    try {
                        statement.cancel();
                    } catch (SQLException error) {
                        throw new IllegalStateException(error);
                    }
                }
            }, 300);
            statement.executeQuery("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a.value + b.value = -1");
            throw new AssertionError("it was not cancelled");
        } catch (SQLException error) {
            same(error.getSQLState(), "57014");
        }
        try (Statement statement = db.createStatement(); ResultSet rows = statement.executeQuery("SELECT 1")) {
            same(rows.next(), true);
        }
    }
}
