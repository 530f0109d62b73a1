//! Clients that write to the tables of a data folder: CREATE TABLE, INSERT, COPY, POST.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::harness::{Folder, text};
use crate::serve::{Served, serve};

fn served() -> (Folder, Served) {
    let folder = Folder::new();
    let served = serve(&folder, &["--data", "d", "--segment", "4M"]);
    (folder, served)
}

const QUOTES: &str = "CREATE TABLE quotes (id bigint NOT NULL, symbol text, price numeric(12, 4), \
                      ok boolean, at timestamp, on_day date, ratio double precision)";

#[test]
fn tables_are_created_and_rows_inserted() {
    let (folder, served) = served();
    assert_eq!(served.ask(QUOTES), "CREATE TABLE\n");
    assert_eq!(served.ask("CREATE TABLE IF NOT EXISTS quotes (a int)"), "CREATE TABLE\n");
    assert_eq!(served.ask("SELECT count(*) FROM quotes"), "0\n");
    assert_eq!(served.ask("INSERT INTO quotes (id) VALUES (1)"), "INSERT 0 1\n");
    let sql = "INSERT INTO quotes VALUES \
               (2, 'a''b', 1.00005, true, '2024-01-31 10:00:00.5', '2024-01-31', 1e300), \
               (-3, '2024-01-31', -7, false, '2024-02-29', DEFAULT, NULL)";
    assert_eq!(served.ask(sql), "INSERT 0 2\n");
    let expected = "-3|2024-01-31|-7.0000|f|2024-02-29 00:00:00||\n\
                    1||||||\n\
                    2|a'b|1.0001|t|2024-01-31 10:00:00.5|2024-01-31|1e+300\n";
    assert_eq!(served.ask("SELECT * FROM quotes ORDER BY id"), expected);
    let sql =
        "INSERT INTO quotes (symbol, id) SELECT upper(symbol), id + 10 FROM quotes WHERE id > 0";
    assert_eq!(served.ask(sql), "INSERT 0 2\n");
    assert_eq!(
        served.ask("SELECT id, symbol FROM quotes WHERE id > 9 ORDER BY id"),
        "11|\n12|A'B\n"
    );
    assert_eq!(served.ask("INSERT INTO quotes (id) VALUES (1 + 2)"), "INSERT 0 1\n");
    let described = text(&served.psql(&["-c", "\\d quotes"]).stdout);
    let columns = "id|bigint||not null|\nsymbol|text|||\nprice|numeric(12,4)|||\n";
    assert!(described.starts_with(columns), "{described}");
    assert_eq!(text(&served.psql(&["-c", "\\dt"]).stdout), "public|quotes|table|quarrier\n");
    assert_eq!(served.end(), Some(0));
    let served = serve(&folder, &["--data", "d", "--segment", "4M"]);
    assert_eq!(served.ask("SELECT * FROM quotes WHERE id < 3 ORDER BY id"), expected);
    assert_eq!(served.end(), Some(0));
    let output = folder.run(&[
        "-q",
        "--format",
        "csv",
        "--data",
        "d",
        "SELECT max(symbol) AS m FROM quotes",
    ]);
    assert_eq!(text(&output.stdout), "m\na'b\n", "{}", text(&output.stderr));
}

#[test]
fn invalid_rows_have_sqlstates_and_change_nothing() {
    let (_folder, served) = served();
    served.ask(QUOTES);
    for (sql, code) in [
        (QUOTES, "42P07"),
        ("CREATE TABLE t (a numeric)", "0A000"),
        ("CREATE TABLE t (a varchar(3))", "0A000"),
        ("CREATE TABLE t (a int PRIMARY KEY)", "0A000"),
        ("CREATE TABLE t (a int) WITH (retention = 'a while')", "22023"),
        ("CREATE TABLE t (a int) WITH (fillfactor = 70)", "0A000"),
        ("CREATE TABLE t (a int, A text)", "42611"),
        ("CREATE TABLE t (a int", "42601"),
        ("CREATE TABLE other.t (a int)", "3F000"),
        ("CREATE VIEW v AS SELECT 1", "0A000"),
        ("INSERT INTO nowhere VALUES (1)", "42P01"),
        ("INSERT INTO quotes (nothing) VALUES (1)", "42703"),
        ("INSERT INTO quotes (id, id) VALUES (1, 2)", "42701"),
        ("INSERT INTO quotes (id, symbol) VALUES (1)", "42601"),
        ("INSERT INTO quotes (id) VALUES (1, 2)", "42601"),
        ("INSERT INTO quotes (id) VALUES (1), (2, 3)", "42601"),
        ("INSERT INTO quotes (id) VALUES ('x')", "22P02"),
        ("INSERT INTO quotes (id) VALUES (9223372036854775808)", "22003"),
        ("INSERT INTO quotes (id) VALUES (true)", "42804"),
        ("INSERT INTO quotes (id, price) VALUES (1, 123456789.5)", "22003"),
        ("INSERT INTO quotes (symbol) VALUES ('no id')", "23502"),
        ("INSERT INTO quotes (id, at) VALUES (1, 'soon')", "22P02"),
        ("INSERT INTO quotes (id) VALUES (1), (NULL)", "23502"),
        ("INSERT INTO quotes (id) SELECT symbol FROM quotes", ""),
        ("INSERT INTO quotes (id) VALUES (1) ON CONFLICT DO NOTHING", "0A000"),
        ("INSERT INTO quotes (id) VALUES (1) RETURNING id", "0A000"),
        ("UPDATE quotes SET id = 1", "0A000"),
        ("DELETE FROM quotes", "0A000"),
    ] {
        if code.is_empty() {
            // A string for a numeric column, so no row is stored.
            assert_eq!(served.ask(sql), "INSERT 0 0\n");
            continue;
        }
        let said = served.refused(sql);
        assert!(said.contains(&format!("ERROR:  {code}:")), "{sql}: {said}");
    }
    assert_eq!(served.ask("SELECT count(*) FROM quotes"), "0\n");
}

#[test]
fn the_state_of_the_log_is_a_table() {
    let (_folder, served) = served();
    let log = "SELECT last_mark, segments, bytes > 0, has_room, stopped IS NULL FROM quarrier.log";
    assert_eq!(served.ask(log), "0|1|t|t|t\n");
    served.ask(QUOTES);
    served.ask("INSERT INTO quotes (id) VALUES (1), (2), (3)");
    assert_eq!(served.ask(log), "3|1|t|t|t\n");
}

/// Runs psql with this standard input.
fn fed(served: &Served, sql: &str, input: &[u8]) -> String {
    let (postgres, _) = served.addresses();
    let (host, port) = postgres.split_once(':').unwrap();
    let mut child = Command::new("psql")
        .args(["-X", "-At", "-h", host, "-p", port, "-U", "ann", "-d", "quarrier"])
        .args(["-v", "VERBOSITY=verbose", "-c", sql])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn rows_are_copied_in_and_out_in_every_format() {
    let (folder, served) = served();
    served.ask(QUOTES);
    served.ask(&QUOTES.replace("quotes", "others"));
    let lines = "1\ta\\tb\t1.50\tt\t2024-01-31 10:00:00.25\t2024-01-31\t0.5\n\
                 2\t\\N\t\\N\tf\t\\N\t\\N\t\\N\n";
    assert_eq!(fed(&served, "\\copy quotes from pstdin", lines.as_bytes()), "COPY 2\n");
    let expected = served.ask("SELECT * FROM quotes ORDER BY id");
    for form in ["text", "csv", "binary"] {
        let file = folder.path(form).display().to_string();
        let out = format!("\\copy quotes to '{file}' with (format {form})");
        assert_eq!(fed(&served, &out, b""), "COPY 2\n");
        let into = format!("\\copy others from '{file}' with (format {form})");
        assert_eq!(fed(&served, &into, b""), "COPY 2\n");
    }
    assert_eq!(served.ask("SELECT DISTINCT * FROM others ORDER BY id"), expected);
    assert_eq!(served.ask("SELECT count(*) FROM others"), "6\n");
    for (lines, code) in [
        ("3\tx\n", "22P04"),
        ("x\\\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n", "22P04"),
        ("3\ta\t1\tt\tsoon\t\\N\t\\N\n", "22P02"),
        ("3\ta\t1\tt\t\\N\t\\N\tNaN\n", "22003"),
        ("3\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n", "23502"),
    ] {
        let said = fed(&served, "\\copy quotes from pstdin", lines.as_bytes());
        assert!(said.contains(&format!("ERROR:  {code}:")), "{lines}: {said}");
    }
    assert_eq!(served.ask("SELECT count(*) FROM quotes"), "2\n");
    // More than is buffered in memory, and more than a batch.
    let many: String = (0..60_000).map(|n| format!("{n}\tsymbol {n}\n")).collect();
    let copied = fed(&served, "\\copy quotes (id, symbol) from pstdin", many.as_bytes());
    assert_eq!(copied, "COPY 60000\n");
    assert_eq!(served.ask("SELECT count(DISTINCT symbol) FROM quotes"), "60001\n");
}

#[test]
fn posted_messages_are_stored_and_deduplicated() {
    let (folder, served) = served();
    served.ask("CREATE TABLE feed ()");
    let body = |answer: &str| answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_string();
    let said = served.post("/tables/feed", "", b"{\"a\":1,\"b\":\"x\"}\nno message\n{\"a\":2}\n");
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert!(
        body(&said).starts_with(
            "{\"first\":1,\"last\":2,\"messages\":2,\"rejected\":1,\"durable\":true,\"reason\":\"line 2: "
        ),
        "{said}"
    );
    assert_eq!(served.ask("SELECT a, b FROM feed ORDER BY a"), "1|x\n2|\n");
    let said = served.post("/tables/feed", "Content-Type: text/csv\n", b"a,c\n3,z\n");
    assert!(body(&said).starts_with("{\"first\":3,\"last\":3,\"messages\":1"), "{said}");
    let headers = "Publisher: feed-1\nSequence: 42\n";
    let once = served.post("/tables/feed", headers, b"{\"a\":4}\n");
    assert!(body(&once).contains("\"first\":4") && !once.contains("duplicate"), "{once}");
    let again = served.post("/tables/feed", headers, b"{\"a\":4}\n");
    assert!(
        body(&again).contains("\"messages\":0") && again.contains("\"duplicate\":true"),
        "{again}"
    );
    assert_eq!(served.ask("SELECT a, c FROM feed WHERE a > 2 ORDER BY a"), "3|z\n4|\n");
    let fix = b"8=FIX.4.4\x019=5\x0135=0\x0110=163\x01\n";
    served.ask("CREATE TABLE fix ()");
    assert!(served.post("/tables/fix", "", fix).contains("\"messages\":1"));
    assert_eq!(served.ask("SELECT count(*) FROM fix"), "1\n");
    for (path, headers, status) in [
        ("/tables/nowhere", "", "404"),
        ("/tables/feed", "Sequence: 1\n", "400"),
        ("/tables/feed", "Content-Encoding: gzip\n", "400"),
    ] {
        let said = served.post(path, headers, b"{\"a\":1}\n");
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{said}");
    }
    served.kill();
    let served = serve(&folder, &["--data", "d", "--segment", "4M"]);
    assert_eq!(served.ask("SELECT count(*) FROM feed"), "4\n");
    let again = served.post("/tables/feed", headers, b"{\"a\":4}\n");
    assert!(again.contains("\"duplicate\":true"), "{again}");
    assert_eq!(served.ask("SELECT count(*) FROM feed"), "4\n");
}

#[test]
fn a_second_writer_is_refused_with_the_process_id() {
    let (folder, served) = served();
    let output = folder.run(&["serve", "--data", "d", "--listen", "127.0.0.1:0", "--http", "off"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("writes to this folder"), "{said}");
    assert_eq!(served.end(), Some(0));
}
