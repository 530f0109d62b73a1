//! The cost of a statement, as reported by EXPLAIN ANALYZE and `--stats`.

use crate::harness::{Folder, TestEngine, orders, text};
use quarrier_sql::Options;

/// The metric with this name, from the first line of a plan that has it.
fn figure<'a>(plan: &'a str, line: &str, name: &str) -> &'a str {
    let line = plan.lines().find(|text| text.contains(line)).unwrap_or_else(|| panic!("{plan}"));
    let start = line.find(&format!("{name}=")).unwrap_or_else(|| panic!("{name}: {line}"));
    let figure = &line[start + name.len() + 1..];
    &figure[..figure.find([',', ']']).unwrap_or(figure.len())]
}

#[test]
fn explain_analyze_shows_bytes_and_share_of_a_scan() {
    let (_folder, engine) = TestEngine::of_orders();
    for sql in [
        "SELECT id, note FROM m WHERE qty > 500",
        "SELECT count(*) AS n FROM m WHERE note LIKE '%9'",
        "SELECT symbol, sum(qty) FROM m GROUP BY symbol",
        "SELECT * FROM m ORDER BY price DESC LIMIT 3",
    ] {
        let plan = engine.rows(&format!("EXPLAIN ANALYZE {sql}")).unwrap().join("\n");
        assert_ne!(figure(&plan, "MessagesExec", "bytes_touched"), "0", "{sql}: {plan}");
        let share = figure(&plan, "MessagesExec", "share_of_memory_read");
        assert!(share.ends_with('%'), "{sql}: {plan}");
    }
}

#[test]
fn explain_analyze_shows_bytes_and_share_of_a_search() {
    let folder = Folder::new();
    let image = folder.file("disk.img", &"no needle, but one needle. ".repeat(100_000));
    let engine = TestEngine::new();
    for wanted in ["*", "count(*) AS n", "max(\"offset\") AS last"] {
        let of = format!("search('{image}', 're:needle')");
        let plan = engine.rows(&format!("EXPLAIN ANALYZE SELECT {wanted} FROM {of}"));
        let plan = plan.unwrap().join("\n");
        assert_eq!(figure(&plan, "SearchExec", "bytes_touched"), "2.70 M", "{plan}");
        let share = figure(&plan, "SearchExec", "share_of_memory_read");
        assert!(share.ends_with('%'), "{plan}");
    }
}

#[test]
fn statements_without_a_scan_touch_no_bytes() {
    let (_folder, engine) = TestEngine::of_orders();
    let plan = engine.rows("EXPLAIN ANALYZE SELECT id FROM m WHERE qty > 5000").unwrap().join("\n");
    assert_eq!(figure(&plan, "MessagesExec", "bytes_touched"), "0", "{plan}");
}

#[test]
fn sorts_and_groups_beyond_the_memory_spill() {
    let folder = Folder::new();
    let engine = TestEngine::new();
    let path = folder.file("orders.ndjson", &orders());
    engine.open("m", &path).unwrap();
    let few = Options { workers: 2, memory_bytes_max: Some(22 << 20), ..Options::default() };
    let bounded = TestEngine::with(few);
    bounded.open("m", &path).unwrap();
    let rows = "SELECT a.id * 5000 + b.id AS number, b.note || a.note AS note FROM m AS a, m AS b \
                WHERE a.qty < 10";
    for sql in [
        format!("SELECT note, number FROM ({rows}) AS r ORDER BY note, number"),
        format!("SELECT number, max(note) AS n FROM ({rows}) AS r GROUP BY number ORDER BY number"),
    ] {
        let plan = bounded.rows(&format!("EXPLAIN ANALYZE {sql}")).unwrap().join("\n");
        let is_spilled = plan
            .lines()
            .filter(|line| line.contains("spill_count="))
            .any(|line| figure(line, "spill_count=", "spill_count") != "0");
        assert!(is_spilled, "{plan}");
        assert_eq!(bounded.rows(&sql).unwrap(), engine.rows(&sql).unwrap(), "{sql}");
    }
}

#[test]
fn groups_without_memory_for_codes_are_hashed() {
    let folder = Folder::new();
    // A quarter of a million dictionary codes, few of which are used.
    let line = |id: u64| format!("{{\"id\":{},\"qty\":{}}}\n", id * 50 % 249_999, id % 9);
    let path = folder.file("sparse.ndjson", &(0..5_000).map(line).collect::<String>());
    let sql = "SELECT id, count(*) AS n, sum(qty) AS s FROM m GROUP BY id ORDER BY id";
    let run = |memory_bytes_max| {
        let engine =
            TestEngine::with(Options { workers: 2, memory_bytes_max, ..Options::default() });
        engine.open("m", &path).unwrap();
        let plan = engine.rows(&format!("EXPLAIN ANALYZE {sql}")).unwrap().join("\n");
        let line = plan.lines().find(|line| line.contains("GroupsExec")).unwrap();
        (
            line.contains("output_rows=5.00 K") || line.contains("output_rows=5000"),
            engine.rows(sql).unwrap(),
        )
    };
    let ((by_codes, many), (not_by_codes, few)) = (run(None), run(Some(6 << 20)));
    assert!(by_codes && !not_by_codes, "{by_codes} {not_by_codes}");
    assert!(few == many && few.len() == 5_000, "{} {}", few.len(), many.len());
}

#[test]
fn stats_of_a_run_are_one_object() {
    let folder = Folder::new();
    let lines = orders();
    folder.file("m.ndjson", &lines);
    let sql = "SELECT id FROM 'm.ndjson' WHERE qty > 500; SELECT count(*) AS n FROM 'm.ndjson'";
    let output = folder.run(&[sql, "--stats", "stats.json", "--format", "csv"]);
    assert!(output.status.success(), "{output:?}");
    let stats = std::fs::read_to_string(folder.path("stats.json")).unwrap();
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["command"], "query");
    let rows = text(&output.stdout).lines().count() - 2;
    assert_eq!(stats["findings"].as_u64().unwrap() as usize, rows, "{stats}");
    assert_eq!(stats["bytes"], lines.len(), "{stats}");
    assert!(stats["column_bytes"].as_u64().unwrap() > 0, "{stats}");
    for stage in ["read", "work", "sink"] {
        assert!(stats["stages"][stage]["busy_seconds"].as_f64().unwrap() >= 0.0, "{stats}");
    }
    assert_eq!(stats["ceiling"]["of"], "memory read", "{stats}");
    assert!(stats["ceiling"]["share"].as_f64().unwrap() > 0.0, "{stats}");
    assert!(["read", "work", "sink"].contains(&stats["limited_by"].as_str().unwrap()), "{stats}");
}

#[test]
fn stats_of_concurrent_statements_count_all() {
    let folder = Folder::new();
    folder.file("m.ndjson", &orders());
    folder.file("all.sql", "SELECT id FROM m WHERE qty > 500;\nSELECT id FROM m WHERE qty < 5;\n");
    let arguments = ["--table", "m=m.ndjson", "--concurrent", "all.sql", "--stats", "-", "--quiet"];
    let output = folder.run(&arguments);
    let stats: serde_json::Value = serde_json::from_str(text(&output.stderr).trim()).unwrap();
    let rows: u64 = text(&output.stdout)
        .lines()
        .map(|line| line.split_whitespace().next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(stats["findings"], rows, "{stats}");
}
