//! Timestamps of different units in the same comparison.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, TimestampMillisecondArray};
use datafusion::datasource::MemTable;

use crate::harness::TestEngine;

/// Milliseconds around 1970, and NULL.
fn milliseconds() -> TestEngine {
    let at: ArrayRef =
        Arc::new(TimestampMillisecondArray::from(vec![Some(-1), Some(0), Some(1), None]));
    let batch = RecordBatch::try_from_iter([("at", at)]).unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    let asked = TestEngine::new();
    asked.engine.context().register_table("t", Arc::new(table)).unwrap();
    asked
}

#[test]
fn coarse_timestamps_compare_with_finer_constants_exactly() {
    let asked = milliseconds();
    let (fine, whole) =
        ("TIMESTAMP '1970-01-01 00:00:00.000000001'", "TIMESTAMP '1970-01-01 00:00:00'");
    let before = "TIMESTAMP '1969-12-31 23:59:59.999999999'";
    let cases = [
        (format!("at >= {fine}"), 1),
        (format!("at > {fine}"), 1),
        (format!("at < {fine}"), 2),
        (format!("at <= {fine}"), 2),
        (format!("{fine} <= at"), 1),
        (format!("at > {before}"), 2),
        (format!("at < {before}"), 1),
        (format!("at = {fine}"), 0),
        (format!("at <> {fine}"), 3),
        (format!("(at = {fine}) IS UNKNOWN"), 1),
        (format!("at = {whole}"), 1),
        (format!("at BETWEEN {before} AND {fine}"), 1),
        (format!("at NOT BETWEEN {before} AND {fine}"), 2),
        (format!("at IN ({fine}, {whole})"), 1),
        (format!("at NOT IN ({fine}, {whole})"), 2),
        (format!("at NOT IN ({fine})"), 3),
    ];
    for (condition, rows) in cases {
        let counted = asked.value(&format!("SELECT COUNT(*) FROM t WHERE {condition}")).unwrap();
        assert_eq!(counted, rows.to_string(), "{condition}");
        let shown =
            asked.value(&format!("SELECT SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) FROM t"));
        assert_eq!(shown.unwrap(), rows.to_string(), "{condition} among outputs");
    }
}
