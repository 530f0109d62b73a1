//! A panic in the engine is an error of its statement, and does not affect the next one.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use quarrier_sql::Error;

use crate::harness::{Folder, TestEngine, text};

/// The orders, and a function that panics at one of the rows.
fn with_boom() -> (Folder, TestEngine) {
    let (folder, asked) = TestEngine::of_orders();
    let boom = |_: &[ColumnarValue]| -> Result<ColumnarValue, _> {
        // Removes the panic hook, which would print into the test output.
        std::panic::resume_unwind(Box::new("boom"))
    };
    let types = vec![DataType::Int64];
    let boom =
        create_udf("boom", types, DataType::Int64, Volatility::Immutable, Arc::new(boom) as _);
    asked.engine.context().register_udf(boom);
    (folder, asked)
}

#[test]
fn panics_are_errors_of_their_statement() {
    let (_folder, asked) = with_boom();
    for sql in [
        "SELECT boom(1)",
        "SELECT boom(id) FROM m",
        "SELECT id FROM m WHERE boom(id) > 3 LIMIT 2",
        "SELECT sum(boom(id)) FROM m",
        "SELECT boom(id) AS b, count(*) FROM m GROUP BY b",
        "SELECT id FROM m ORDER BY boom(id)",
        "SELECT a.id FROM m AS a JOIN m AS b ON boom(a.id) = boom(b.id)",
        "SELECT id, sum(qty) OVER (PARTITION BY boom(id)) FROM m",
        "SELECT id FROM m WHERE id IN (SELECT boom(id) FROM m)",
        "SELECT 1 UNION ALL SELECT boom(id) FROM m",
    ] {
        let error = asked.rows(sql).unwrap_err();
        assert!(matches!(error, Error::Internal(_)), "{sql}: {error:?}");
        let said = error.to_string();
        assert!(!said.contains("boom") && said.contains("internal error"), "{sql}: {said}");
        assert_eq!(asked.value("SELECT count(*) FROM m").unwrap(), "5000");
    }
}

#[test]
fn panics_do_not_affect_concurrent_statements() {
    let (_folder, asked) = with_boom();
    let sql = "SELECT count(*) FROM m; SELECT sum(boom(id)) FROM m; SELECT count(*) FROM m";
    let all = asked.together(sql);
    assert!(matches!(all[1], Err(Error::Internal(_))), "{:?}", all[1]);
    assert_eq!(all[0].as_ref().unwrap(), all[2].as_ref().unwrap());
}

#[test]
fn calculations_that_the_engine_panics_at_are_refused_in_one_line() {
    let folder = Folder::new();
    for sql in [
        "SELECT length(string_agg(repeat('a', 1000000), '')) FROM generate_series(1, 100000)",
        "SELECT approx_percentile_cont(value, 0.5, 9223372036854775807) FROM generate_series(1, 9)",
        "SELECT approx_percentile_cont(value, 0.5, 2147483647) FROM generate_series(1, 9)",
    ] {
        let output = folder.run(&[sql, "--format", "csv"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{sql}: {output:?}");
        assert!(said.starts_with("quarrier: ") && said.lines().count() == 1, "{sql}: {said}");
        assert!(!said.contains("panicked") && !said.contains("overflow"), "{sql}: {said}");
    }
}
