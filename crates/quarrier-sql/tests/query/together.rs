//! Statements that run at the same time.

use crate::harness::TestEngine;

#[test]
fn concurrent_statements_answer_like_sequential_ones() {
    let (_folder, engine) = TestEngine::of_orders();
    let statements = [
        "SELECT count(*) FROM m WHERE qty > 500",
        "SELECT count(*) FROM m WHERE symbol LIKE 'A%' AND price < 50",
        "SELECT id FROM m WHERE note IS NULL ORDER BY id DESC LIMIT 5",
        "SELECT symbol, sum(qty) FROM m WHERE open GROUP BY symbol ORDER BY symbol",
        "SELECT count(*) FROM m",
        "SELECT x.id FROM m AS x JOIN m AS y ON x.id = y.qty AND y.id = 3",
        "SELECT id FROM m WHERE id IN (7, 9)",
    ];
    let all = engine.together(&statements.join(";\n"));
    for (statement, rows) in statements.iter().zip(all) {
        let mut rows = rows.unwrap();
        let mut alone = engine.rows(statement).unwrap();
        if !statement.contains("ORDER BY") {
            rows.sort();
            alone.sort();
        }
        assert_eq!(rows, alone, "{statement}");
    }
}

#[test]
fn failures_do_not_affect_concurrent_statements() {
    let (_folder, engine) = TestEngine::of_orders();
    let all = engine.together(
        "SELECT count(*) FROM m WHERE qty > 998; SELECT count(*) FROM m WHERE qty * \
         9223372036854775807 > 1; SELECT count(*) FROM nowhere; SELECT count(*) FROM m WHERE qty < 1",
    );
    let shown: Vec<bool> = all.iter().map(Result::is_ok).collect();
    assert_eq!(shown, [true, false, false, true], "{all:?}");
}
