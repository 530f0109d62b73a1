//! Hostile and broken input: an error that names the cause, in bounded memory.

use crate::harness::{Folder, TestEngine, text};

#[test]
fn a_file_that_ends_within_a_line_is_read_up_to_there() {
    let folder = Folder::new();
    folder.file("m.ndjson", "{\"a\":1}\n{\"a\":2}\n{\"a\":");
    let output = folder.run(&["SELECT sum(a) AS s FROM 'm.ndjson'", "--rejects", "r.ndjson"]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains('3'));
    let message = "m.ndjson: 1 message was left out, the first at line 3: ";
    assert!(text(&output.stderr).contains(message), "{output:?}");
    let listed = std::fs::read_to_string(folder.path("r.ndjson")).unwrap();
    let row: serde_json::Value = serde_json::from_str(listed.trim()).unwrap();
    assert_eq!(row["line"], 3);
}

#[test]
fn missing_and_mislabelled_files_are_one_line_errors() {
    let folder = Folder::new();
    folder.file("bad.parquet", "PAR1 but no more");
    folder.file("bad.arrow", "ARROW1 but no more");
    for from in ["'no.ndjson'", "'no*.csv'", "'bad.parquet'", "'bad.arrow'", "'.'", "nowhere"] {
        let output = folder.run(&[&format!("SELECT * FROM {from}")]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{from}: {output:?}");
        assert_eq!(said.lines().count(), 1, "{from}: {said}");
        assert!(said.starts_with("quarrier: ") && !said.contains("os error"), "{from}: {said}");
    }
}

#[test]
fn excess_columns_are_dropped_and_reported() {
    let folder = Folder::new();
    let fields: Vec<String> = (0..100_000).map(|at| format!("\"c{at}\":{at}")).collect();
    folder.file("wide.ndjson", &format!("{{{}}}\n", fields.join(",")));
    let output = folder.run(&["SELECT c0, c4000 FROM 'wide.ndjson'", "--format", "csv"]);
    assert_eq!(text(&output.stdout), "c0,c4000\n0,4000\n", "{output:?}");
    assert!(text(&output.stderr).contains("more than 4,096 columns"), "{output:?}");
}

#[test]
fn statement_limits_are_enforced() {
    let engine = TestEngine::new();
    let deep = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(engine.refusal(&deep).contains("deep"));
    let open = format!("SELECT {}", "(".repeat(150));
    engine.refusal(&open);
    let cases = format!("SELECT {}", "CASE WHEN ".repeat(150));
    engine.refusal(&cases);
    let calls = format!("SELECT {}1", "abs(".repeat(150));
    engine.refusal(&calls);
    let casts = format!("SELECT {}1", "CAST(".repeat(150));
    engine.refusal(&casts);
    let long = format!("SELECT '{}'", "x".repeat(5 << 20));
    assert!(engine.refusal(&long).contains("longer"));
    for wrong in ["SELECT", "SELECT 1 +", "SELEC 1", "SELECT 'a", "SELECT 1 FROM", "FROM"] {
        engine.refusal(wrong);
    }
}

#[test]
fn long_lists_are_supported() {
    let (_folder, engine) = TestEngine::of_orders();
    let list: Vec<String> = (0..100_000).map(|at| (at * 7).to_string()).collect();
    let sql = format!("SELECT count(*) FROM m WHERE id IN ({})", list.join(","));
    assert_eq!(engine.value(&sql).unwrap(), "715");
}

#[test]
fn long_chains_are_supported() {
    let (_folder, engine) = TestEngine::of_orders();
    let parts: Vec<String> = (0..12_000).map(|at| format!("m.id = {}", at * 7)).collect();
    let chain = parts.join(" OR ");
    for sql in [
        format!("SELECT count(*) FROM m WHERE {chain}"),
        // The scan cannot evaluate it.
        format!("SELECT count(*) FROM m JOIN m AS o ON m.id = o.id WHERE {chain} OR o.qty < 0"),
    ] {
        assert_eq!(engine.value(&sql).unwrap(), "715");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let engine = TestEngine::new();
    for (part, many) in [(" + 1", 100_000), (" || 'x'", 100_000), (" IS NULL", 120_000)] {
        let said = engine.refusal(&format!("SELECT 1{}", part.repeat(many)));
        assert!(said.contains("chain"), "{part}: {said}");
    }
    let said = engine.refusal(&format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(60_000)));
    assert!(said.contains("UNION"), "{said}");
    let sum = engine.value(&format!("SELECT 1{}", " + 1".repeat(100))).unwrap();
    assert_eq!(sum, "101");
    let rows = engine.rows(&format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(50))).unwrap();
    assert_eq!(rows.len(), 51);
}

#[test]
fn a_cross_join_ends_at_the_time_limit() {
    let folder = Folder::new();
    folder.file("m.ndjson", &crate::harness::orders());
    let sql = "SELECT count(*) FROM 'm.ndjson' a, 'm.ndjson' b, 'm.ndjson' c \
               WHERE a.qty + b.qty + c.qty = -1";
    let output = folder.run(&[sql, "--timeout", "2", "--max-memory", "64M"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("--timeout") && said.lines().count() == 1, "{said}");
}

#[test]
fn statements_beyond_the_memory_spill_or_are_refused() {
    let folder = Folder::new();
    folder.file("m.ndjson", &crate::harness::orders());
    let sql = "SELECT a.id, b.note FROM 'm.ndjson' a, 'm.ndjson' b WHERE a.qty < 40 \
               ORDER BY b.note, a.id, b.id";
    let output = folder.run(&[sql, "--max-memory", "16M", "--format", "csv", "-o", "out.csv"]);
    if !output.status.success() {
        let said = text(&output.stderr);
        assert!(said.contains("--max-memory") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn invalid_utf8_is_listed_as_in_filter() {
    let folder = Folder::new();
    std::fs::write(folder.path("m.ndjson"), b"{\"a\":1}\n{\"a\": \xff\xfe}\n").unwrap();
    let output = folder.run(&["SELECT a FROM 'm.ndjson'", "--rejects", "r.ndjson"]);
    assert!(output.status.success(), "{output:?}");
    let listed = std::fs::read_to_string(folder.path("r.ndjson")).unwrap();
    let row: serde_json::Value = serde_json::from_str(listed.trim()).unwrap();
    assert_eq!(row["is_escaped"], true, "{row}");
    assert_eq!(row["bytes"].as_str().unwrap(), r#"{\"a\": \xff\xfe}"#, "{row}");
}

#[test]
fn errors_name_the_statement_and_a_remedy() {
    let folder = Folder::new();
    folder.file("m.ndjson", "{\"price\":1,\"name\":\"x\"}\n");
    let said = |sql: &str| text(&folder.run(&[sql]).stderr).to_string();
    let message = said("SELECT 1; SELECT prise FROM 'm.ndjson' AS m GROUP BY prise");
    let (statement, column) =
        ("statement 2 (SELECT prise FROM 'm.ndjson'", "did you mean price? There are: ");
    assert!(message.contains(statement) && message.contains(column), "{message}");
    let message = said("SELECT max(1 / (price - 1)) FROM 'm.ndjson'");
    assert!(message.contains("NULLIF") && !message.contains("statement"), "{message}");
    let message = said("SELECT max(CAST(name AS INT)) FROM 'm.ndjson'");
    assert!(message.contains("'x'") && message.contains("TRY_CAST"), "{message}");
}
