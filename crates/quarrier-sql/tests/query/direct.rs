//! Statements that need only one scan: planned without DataFusion, and answered on the calling
//! thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use quarrier_sql::Options;

use crate::harness::{Folder, TestEngine, all_lines, orders};

/// Statements that are answered without DataFusion's planning when they run alone.
const DIRECT: &[&str] = &[
    "SELECT count(*) FROM m WHERE symbol = 'ABC' AND price > 50 AND qty BETWEEN 100 AND 500",
    "SELECT COUNT(*) AS many FROM m WHERE note LIKE '%9' OR note IS NULL",
    "SELECT id, qty AS q, Symbol FROM m WHERE NOT (open OR qty * 2 > 700)",
    "SELECT * FROM m WHERE id IN (3, 4, 4999) AND ts < TIMESTAMP '2024-01-20 00:00:00'",
    "SELECT x.id, x.leg[0].qty FROM m AS x WHERE x.leg[0].qty = 8 AND x.id < 100",
    "SELECT count(*) FROM m WHERE (note = 'note 1') IS UNKNOWN",
    "SELECT id FROM m WHERE price = 1.5e0 OR qty > 998.5",
    "SELECT id FROM m WHERE symbol LIKE 'A!_%' ESCAPE '!' AND (qty, id) > (500, 7)",
];

#[test]
fn direct_plans_answer_like_planned_ones() {
    let (_folder, engine) = TestEngine::of_orders();
    for sql in DIRECT {
        let (schema, batches) = engine.batches(sql).unwrap();
        let (planned, again) = engine.batches(&format!("SELECT * FROM ({sql}) AS t")).unwrap();
        assert_eq!(fields(&schema), fields(&planned), "{sql}");
        assert_eq!(sorted(&batches), sorted(&again), "{sql}");
        let Some(answer) = engine.at_once(sql) else {
            // An exact side has to be cast to a float, which DataFusion decides.
            assert!(sql.contains("1.5e0"), "{sql}");
            continue;
        };
        let (schema, batches, _) = answer.unwrap();
        assert_eq!(fields(&schema), fields(&planned), "{sql}");
        assert_eq!(sorted(&batches), sorted(&again), "{sql}");
    }
    for (order, limit) in [("note DESC, id", 9), ("ts, qty DESC, id", 1), ("price, id", 4)] {
        let sql = format!("SELECT id, note FROM m WHERE qty < 900 ORDER BY {order}");
        let all = engine.rows(&format!("SELECT id, note FROM ({sql}) AS t")).unwrap();
        assert_eq!(all.len(), 4_500);
        let best = engine.rows(&format!("{sql} LIMIT {limit}")).unwrap();
        let ordered = engine.rows(&sql).unwrap();
        assert_eq!(best, ordered[..limit], "{order}");
        let (_, batches, are_here) =
            engine.at_once(&format!("{sql} LIMIT {limit}")).unwrap().unwrap();
        assert!(are_here);
        assert_eq!(all_lines(&batches), ordered[..limit], "{order}");
    }
}

#[test]
fn strings_keep_their_quotes() {
    let folder = Folder::new();
    let strings = ["'", "''", "'''", "a'b", "a''b", "a''''b", r"\'", r"\''", "b''é"];
    let lines: Vec<String> =
        strings.iter().map(|text| format!("{{\"s\":{}}}\n", serde_json::json!(text))).collect();
    let engine = TestEngine::new();
    engine.open("m", &folder.file("m.ndjson", &lines.concat())).unwrap();
    for text in strings {
        let sql = format!("SELECT s FROM m WHERE s = '{}'", text.replace('\'', "''"));
        let planned = format!("SELECT s FROM ({sql}) AS t");
        let matched =
            format!("SELECT s FROM m WHERE s MATCH (SELECT '{}')", text.replace('\'', "''"));
        for sql in [sql, planned, matched] {
            assert_eq!(engine.rows(&sql).unwrap(), [text], "{sql}");
        }
    }
}

fn fields(schema: &Schema) -> Vec<(String, datafusion::arrow::datatypes::DataType)> {
    schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect()
}

fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = all_lines(batches);
    rows.sort();
    rows
}

#[test]
fn counts_are_named_after_their_text() {
    let (_folder, engine) = TestEngine::of_orders();
    for (sql, name) in [
        ("SELECT count(*) FROM m", "count(*)"),
        ("select Count( * ) from m;", "Count(*)"),
        ("SELECT count(*) AS count FROM m WHERE qty > 4 -- all", "count"),
    ] {
        let (schema, batches, are_here) = engine.at_once(sql).unwrap().unwrap();
        assert_eq!(schema.field(0).name(), name);
        assert_eq!(fields(&schema), fields(&engine.batches(sql).unwrap().0), "{sql}");
        assert!(are_here && all_lines(&batches).len() == 1, "{sql}");
    }
}

#[test]
fn many_rows_are_streamed() {
    let folder = Folder::new();
    let lines: String = (0..20_000).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    let engine = TestEngine::new();
    engine.open("m", &folder.file("many.ndjson", &lines)).unwrap();
    for (sql, rows, here) in [
        ("SELECT id FROM m WHERE id >= 5", 19_995, false),
        ("SELECT id FROM m", 20_000, false),
        ("SELECT id FROM m LIMIT 10000", 10_000, false),
        ("SELECT id FROM m LIMIT 100", 100, true),
        ("SELECT id FROM m WHERE id < 100", 100, true),
        ("SELECT id FROM m WHERE id < 0", 0, true),
    ] {
        let (_, batches, are_here) = engine.at_once(sql).unwrap().unwrap();
        assert_eq!((all_lines(&batches).len(), are_here), (rows, here), "{sql}");
    }
}

#[test]
fn statements_that_need_planning_are_not_answered_at_once() {
    let (_folder, engine) = TestEngine::of_orders();
    for sql in [
        "SELECT count(*) FROM nothing",
        "SELECT count(*) FROM m; SELECT 1",
        "SELECT symbol, count(*) FROM m GROUP BY symbol",
        "SELECT count(*) FROM m WHERE character_length(symbol) > 2",
        "SELECT id FROM m ORDER BY ts",
        "SELECT id FROM m LIMIT 5 OFFSET 5",
        "SELECT id FROM m LIMIT 0",
        "SELECT qty + 1 FROM m",
        "EXPLAIN SELECT id FROM m",
        "this is no statement",
    ] {
        assert!(engine.at_once(sql).is_none(), "{sql}");
    }
}

#[test]
fn errors_and_stops_end_a_direct_answer() {
    let folder = Folder::new();
    let path = folder.file("orders.ndjson", &orders());
    let stop = Arc::new(AtomicBool::new(false));
    let engine =
        TestEngine::with(Options { workers: 2, stop: Arc::clone(&stop), ..Options::default() });
    engine.open("m", &path).unwrap();
    let sql = "SELECT count(*) FROM m WHERE qty > 10";
    assert!(engine.at_once(sql).unwrap().is_ok());
    let overflow = "SELECT count(*) FROM m WHERE id * 9223372036854775807 > 0";
    let at_once = engine.at_once(overflow).unwrap().unwrap_err().to_string();
    assert_eq!(at_once, engine.refusal(overflow));
    stop.store(true, Ordering::Relaxed);
    assert!(engine.at_once(sql).unwrap().unwrap_err().is_cancelled());
}
