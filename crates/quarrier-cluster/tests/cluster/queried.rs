//! The rows of queries on a cluster are those of one process.

use std::process::{Output, Stdio};
use std::time::Duration;

use super::killed::{disturbed, rounds, waited};
use super::lab::{Cluster, Draw, Lab, assert_same, finished, kill, text};
use super::orders::write_all;

/// Statements whose rows have an order.
const ORDERED: &[&str] = &[
    "SELECT count(*) FROM 'orders/*.parquet'",
    "SELECT count(*), count(symbol), count(qty) FROM 'orders/*.parquet' WHERE qty > 500",
    "SELECT * FROM 'orders/0.parquet' ORDER BY id",
    "SELECT * FROM 'orders/*.parquet' WHERE id % 100 = 3 ORDER BY id",
    "SELECT id, qty * 2 AS q, upper(symbol) AS s FROM 'orders/*.parquet' WHERE price < 50 ORDER BY id",
    "SELECT symbol, count(*) AS n, sum(qty) AS q, min(day) AS d, max(note) AS m FROM 'orders/*.parquet' \
     GROUP BY symbol ORDER BY symbol",
    "SELECT symbol, open, sum(price) AS p, avg(price) AS a, avg(qty) AS q FROM 'orders/*.parquet' \
     WHERE day >= DATE '2022-03-01' GROUP BY symbol, open ORDER BY symbol, open",
    "SELECT sum(qty), avg(price), min(symbol), max(id) FROM 'orders/*.parquet'",
    "SELECT sum(qty), avg(price), min(symbol), max(id) FROM 'orders/*.parquet' WHERE id < 0",
    "SELECT filename, count(*) AS n, min(id) AS least FROM 'orders/*.parquet' GROUP BY filename ORDER BY filename",
    "SELECT id FROM 'orders/*.parquet' WHERE filename LIKE '%1.parquet' AND qty < 40 ORDER BY id",
    "SELECT o.id, s.name FROM 'orders/*.parquet' o JOIN 'small.parquet' s ON o.symbol = s.symbol \
     WHERE o.qty BETWEEN 100 AND 130 ORDER BY o.id",
    "SELECT s.name, sum(o.price) AS p FROM 'orders/*.parquet' o LEFT JOIN 'small.parquet' s USING (symbol) \
     GROUP BY s.name ORDER BY p DESC, s.name",
    "SELECT id, rank() OVER (PARTITION BY symbol ORDER BY price, id) AS r FROM 'orders/1.parquet' ORDER BY id",
    "SELECT symbol FROM 'orders/*.parquet' WHERE qty IN (3, 5, 7) UNION SELECT symbol FROM 'small.parquet' \
     ORDER BY symbol",
    "SELECT id FROM 'orders/*.parquet' WHERE price > (SELECT avg(price) FROM 'orders/0.parquet') AND open \
     ORDER BY id DESC LIMIT 20",
    "SELECT DISTINCT symbol, open FROM 'orders/*.parquet' ORDER BY symbol, open",
    "SELECT count(DISTINCT note) AS n, count(DISTINCT symbol) AS s FROM 'orders/*.parquet'",
    "SELECT CASE WHEN qty > 500 THEN 'many' ELSE 'few' END AS k, count(*) AS n, sum(price) FILTER (WHERE open) AS p \
     FROM 'orders/*.parquet' GROUP BY k ORDER BY k",
    "SELECT symbol, max(rate) AS m, sum(rate) > 0 AS s FROM 'orders/*.parquet' GROUP BY symbol ORDER BY symbol",
    "SELECT extract(month FROM day) AS m, count(*) AS n FROM 'orders/*.parquet' GROUP BY m ORDER BY m",
    "SELECT symbol, open, count(*) AS n FROM 'orders/*.parquet' GROUP BY ROLLUP (symbol, open) \
     ORDER BY symbol, open, n",
    "WITH m AS (SELECT symbol, max(price) AS p FROM 'orders/*.parquet' GROUP BY symbol) \
     SELECT o.id FROM 'orders/*.parquet' o JOIN m ON o.symbol = m.symbol AND o.price = m.p ORDER BY o.id",
    "SELECT id FROM 'orders/*.parquet' WHERE note LIKE 'note number 1_' AND NOT open ORDER BY id",
    "SELECT qty / (qty - qty) FROM 'orders/*.parquet' WHERE qty IS NOT NULL",
    "SELECT nothing FROM 'orders/*.parquet'",
    "SELECT 1 + 1 AS two",
];

/// Statements whose rows have no order.
const UNORDERED: &[&str] = &[
    "SELECT * FROM 'orders/*.parquet'",
    "SELECT count(*) FROM (SELECT id FROM 'orders/*.parquet' WHERE qty > 500 LIMIT 1000)",
    "SELECT id, filename FROM 'orders/*.parquet' WHERE symbol = 'ABC'",
    "SELECT symbol, day, count(*) FROM 'orders/*.parquet' GROUP BY symbol, day",
    "SELECT symbol FROM 'orders/0.parquet' EXCEPT ALL SELECT symbol FROM 'orders/1.parquet'",
];

const FORMATS: &[&[&str]] = &[
    &[],
    &["--format", "json"],
    &["--format", "csv"],
    &["--format", "arrow"],
    &["--workers", "1", "--format", "csv"],
];

fn spread(lab: &Lab, arguments: &[&str], at: &str, unit: &str) -> Output {
    let mut command = lab.command(&[arguments, &["--cluster", at]].concat());
    command.env("QUARRIER_CLUSTER_UNIT", unit);
    finished(command, Duration::from_secs(120))
}

/// Reads rows in Arrow's format, whose batches may be others.
fn read_arrow(lab: &Lab, output: &Output) -> Output {
    lab.file("rows.arrow", &output.stdout);
    lab.run(&["query", "SELECT * FROM 'rows.arrow'", "--format", "csv"])
}

fn sorted(output: &Output) -> Output {
    let all = text(&output.stdout);
    let mut lines: Vec<&str> = all.lines().collect();
    lines.sort_unstable();
    let lines = lines.join("\n");
    Output { status: output.status, stdout: lines.into_bytes(), stderr: output.stderr.clone() }
}

#[test]
fn the_rows_of_queries_equal_those_of_one_process() {
    let lab = Lab::new();
    let size = write_all(&lab, 3, 2_000);
    let clusters: Vec<Cluster> = [1, 2, 3].map(Cluster::start).into();
    let mut draw = Draw::new(31);
    for (place, sql) in ORDERED.iter().chain(UNORDERED).enumerate() {
        let format = if place < ORDERED.len() { *draw.one_of(FORMATS) } else { FORMATS[1] };
        let arguments = [&["query", sql], format].concat();
        let plain = lab.run(&arguments);
        let cluster = draw.one_of(&clusters);
        let unit = (size / (1 + draw.below(6)) + 1).to_string();
        let on_cluster = spread(&lab, &arguments, &cluster.at, &unit);
        let about = format!("{arguments:?}, units of {unit}\n{}", cluster.logs());
        match place < ORDERED.len() {
            true if format.contains(&"arrow") && plain.status.success() => {
                assert_eq!(on_cluster.status.code(), Some(0), "{about}");
                let rows = [&plain, &on_cluster].map(|output| read_arrow(&lab, output));
                assert_same(&rows[0], &rows[1], &about);
            }
            true => assert_same(&plain, &on_cluster, &about),
            false => assert_same(&sorted(&plain), &sorted(&on_cluster), &about),
        }
        assert_eq!(text(&plain.stderr), text(&on_cluster.stderr), "{about}");
    }
}

#[test]
fn workers_filter_and_group() {
    let (lab, cluster) = (Lab::new(), Cluster::start(1));
    write_all(&lab, 2, 1_000);
    let plan = |sql: &str| {
        let output = lab.run(&["query", &format!("EXPLAIN {sql}"), "--cluster", &cluster.at]);
        text(&output.stdout)
    };
    let groups =
        plan("SELECT symbol, sum(qty) FROM 'orders/*.parquet' WHERE id > 5 GROUP BY symbol");
    assert!(groups.contains("fragment=[AggregateExec: mode=Partial"), "{groups}");
    assert!(groups.contains("FilterExec: id") && groups.contains("UnitExec]"), "{groups}");
    // Sums of floats depend on their order.
    let floats =
        plan("SELECT symbol, sum(rate) FROM 'orders/*.parquet' WHERE id > 5 GROUP BY symbol");
    assert!(floats.contains("fragment=[FilterExec: id"), "{floats}");
    // Volatile functions are not called elsewhere.
    let chance = plan("SELECT id FROM 'orders/*.parquet' WHERE random() < 0.5");
    assert!(chance.contains("fragment=[UnitExec]"), "{chance}");
}

#[test]
fn workers_filter_and_group_messages() {
    let (lab, cluster) = (Lab::new(), Cluster::start(1));
    lab.file("a.ndjson", b"{\"a\":1,\"s\":\"x\"}\n{\"a\":2.5,\"s\":\"y\"}\n");
    lab.file("empty.csv", b"");
    let gzip =
        std::process::Command::new("gzip").arg("-k").arg(lab.path().join("a.ndjson")).status();
    assert!(gzip.unwrap().success());
    let sql = "SELECT s, sum(a) FROM 'a.ndjson' WHERE a > 1 AND s LIKE '%y' GROUP BY s";
    let output = lab.run(&["query", &format!("EXPLAIN {sql}"), "--cluster", &cluster.at]);
    let plan = text(&output.stdout);
    assert!(plan.contains("fragment=[AggregateExec: mode=Partial"), "{plan}");
    assert!(plan.contains("FilterExec: ") && plan.contains("UnitExec]"), "{plan}");
    for sql in [
        sql,
        "SELECT count(*) FROM 'a.ndjson'",
        "SELECT count(*) FROM 'empty.csv'",
        "SELECT s, sum(a) FROM 'a.ndjson.gz' GROUP BY s ORDER BY s",
        "SELECT filename, a FROM 'a.ndjson*' ORDER BY filename, a",
        "SELECT _message, a FROM messages('a.ndjson', 'json') WHERE a > 1",
        "SELECT a FROM messages('a.ndjson', 'fix')",
    ] {
        let plain = lab.run(&["query", sql]);
        let output = lab.run(&["query", sql, "--cluster", &cluster.at]);
        assert_same(&plain, &output, sql);
        assert_eq!(text(&plain.stderr), text(&output.stderr), "{sql}");
    }
}

#[test]
fn a_killed_worker_loses_no_row_of_a_query_and_doubles_none() {
    let lab = Lab::new();
    write_all(&lab, 4, 3_000);
    let sql = "SELECT id, symbol, price FROM 'orders/*.parquet' WHERE qty < 700 ORDER BY id";
    let plain = lab.run(&["query", sql, "--format", "csv"]);
    assert!(plain.stdout.len() > 40_000);
    let orders = lab.run(&["query", "SELECT * FROM 'orders/*.parquet'", "--format", "json"]);
    lab.file("orders.ndjson", &orders.stdout);
    let of_messages = sql.replace("orders/*.parquet", "orders.ndjson");
    for round in 0..rounds(2) {
        let (sql, unit) = [(sql, "4000"), (&*of_messages, "60000")][round as usize % 2];
        let mut draw = Draw::new(round);
        let arguments = ["local", "--workers", "3", "--", "query", sql, "--format", "csv"];
        let mut command = lab.command(&arguments);
        command.env("QUARRIER_CLUSTER_UNIT", unit).env("QUARRIER_CLUSTER_WAITS", "60");
        // The first two rounds kill in the middle of the work.
        let after = if round < 2 { 1_500 + 700 * round } else { 800 + draw.below(3_000) };
        let (output, found) = disturbed(command, Duration::from_millis(after), &mut draw);
        assert_same(&plain, &output, &format!("round {round}"));
        let is_told = text(&output.stderr).contains("another one replaces it");
        assert!(round >= 2 || found > 0 && is_told, "{output:?}");
    }
}

#[test]
fn a_unit_that_ends_three_workers_ends_the_query() {
    let lab = Lab::new();
    write_all(&lab, 2, 500);
    let sql = "SELECT sum(id) FROM 'orders/*.parquet'";
    let mut command = lab.command(&["local", "--workers", "2", "--", "query", sql]);
    command.env("QUARRIER_CLUSTER_ENDS_IN", "orders/1.parquet");
    let output = finished(command, Duration::from_secs(120));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("orders/1.parquet: bytes 0..") && said.contains("three workers"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn what_is_not_spread_is_refused_or_runs_in_one_process() {
    let (lab, cluster) = (Lab::new(), Cluster::start(1));
    write_all(&lab, 1, 100);
    lab.file("a.ndjson", b"{\"a\":1}\n{\"a\":2}\n");
    lab.file("a.yar", b"rule a { strings: $a = \"a\" condition: $a }");
    // A table has at most 4,096 columns.
    let fields: Vec<String> = (0..5_000).map(|field| format!("\"f{field}\":1")).collect();
    lab.file("wide.ndjson", format!("{{{}}}\n", fields.join(",")).as_bytes());
    for (sql, what) in [
        ("SELECT sum(a), max(_line) FROM 'a.ndjson'", "a.ndjson"),
        ("SELECT count(*) FROM 'wide.ndjson'", "wide.ndjson"),
        ("SELECT count(*) FROM rules('a.ndjson', 'a.yar')", "rules(…)"),
    ] {
        let plain = lab.run(&["query", sql]);
        let refused = lab.run(&["query", sql, "--cluster", &cluster.at]);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(what) && said.contains("is not spread"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let mut command = lab.command(&["query", sql]);
        command.env("QUARRIER_CLUSTER", &cluster.at);
        let here = finished(command, Duration::from_secs(60));
        assert_same(&plain, &here, sql);
        assert!(text(&here.stderr).contains("this process"), "{}", text(&here.stderr));
    }
    let mut command = lab.command(&["query", "SELECT 1", "--header", "X-Key: secret"]);
    command.env("QUARRIER_CLUSTER", &cluster.at);
    let said = text(&finished(command, Duration::from_secs(60)).stderr);
    assert!(said.contains("because of --header") && !said.contains("secret"), "{said}");
    for option in [["--data", "d"], ["--concurrent", "c.sql"], ["--header", "X-Key: secret"]] {
        let arguments = [&["query", "--cluster", "127.0.0.1:1"], &option[..]].concat();
        let output = lab.run(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--cluster") && !said.contains("secret"), "{said}");
    }
}

#[test]
fn a_missing_scheduler_and_missing_files_are_errors() {
    let (lab, cluster) = (Lab::new(), Cluster::start(1));
    write_all(&lab, 1, 100);
    lab.file("broken.parquet", b"PAR1 is not enough PAR1");
    let gone = lab.run(&["query", "SELECT id FROM 'orders/0.parquet'", "--cluster", "127.0.0.1:1"]);
    let said = text(&gone.stderr);
    assert_eq!(gone.status.code(), Some(2), "{said}");
    assert!(said.contains("does not answer") && said.lines().count() == 1, "{said}");
    for file in ["none.parquet", "none/*.parquet", "broken.parquet"] {
        let sql = format!("SELECT * FROM '{file}'");
        let plain = lab.run(&["query", &sql]);
        let on_cluster = lab.run(&["query", &sql, "--cluster", &cluster.at]);
        assert_same(&plain, &on_cluster, file);
        assert_eq!(text(&plain.stderr), text(&on_cluster.stderr));
    }
}

#[test]
fn ctrl_c_ends_a_query_and_frees_the_workers() {
    let (lab, mut cluster) = (Lab::new(), Cluster::start(0));
    write_all(&lab, 2, 3_000);
    cluster.add_worker(0, &[("QUARRIER_CLUSTER_WAITS", "300")]);
    cluster.wait_for(1);
    let sql = "SELECT id, note FROM 'orders/*.parquet' ORDER BY note";
    let mut command = lab.command(&["query", sql, "--cluster", &cluster.at]);
    command.env("QUARRIER_CLUSTER_UNIT", "1000");
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    kill(running.id(), "INT");
    let output = waited(running);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let rows = |name: &str| name.starts_with("quarrier-cluster-");
    let left = std::fs::read_dir(lab.path()).unwrap();
    assert!(!left.flatten().any(|entry| rows(&entry.file_name().to_string_lossy())));
    let after = lab.run(&[
        "query",
        "SELECT count(id) FROM 'orders/*.parquet' WHERE id > 1",
        "--cluster",
        &cluster.at,
    ]);
    assert_eq!(after.status.code(), Some(0), "{}", text(&after.stderr));
}
