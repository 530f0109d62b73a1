//! The scan selects the same rows as the naive evaluator, over all encodings, for every instruction
//! set, with any number of workers.

pub(crate) mod conditions;
mod explained;
mod mixed;
mod orders;
mod patterns;
pub(crate) mod tables;

use quarrier_core::isa::Isa;
use quarrier_filter::{Answer, Error, Expr, Query, Scan, Select, naive};
use quarrier_messages::{Table, Value};

/// Makes a query for a count.
pub(crate) fn count(condition: Expr) -> Query {
    Query {
        select: Select::Count { name: "count".into() },
        condition: Some(condition),
        order: Vec::new(),
        limit: None,
        offset: 0,
    }
}

/// Makes a query for all rows.
pub(crate) fn rows(condition: Expr) -> Query {
    Query { select: Select::Rows(Vec::new()), ..count(condition) }
}

/// Returns the rows for which `condition` is true; the error is the first row for which it has no
/// value.
pub(crate) fn expected(table: &Table, condition: &Expr) -> Result<Vec<u64>, u64> {
    let mut rows = Vec::new();
    let mut fault = None;
    for row in 0..table.rows() {
        match naive::truth(condition, &|column: usize| -> Value { table.value(row, column) }) {
            Ok(Some(true)) => rows.push(row),
            Ok(_) => {}
            Err(_) => fault = fault.or(Some(row)),
        }
    }
    fault.map_or(Ok(rows), Err)
}

/// Evaluates all `conditions` in one scan and compares with the naive evaluator.
pub(crate) fn check(table: &Table, conditions: &[Expr]) {
    let expected: Vec<_> = conditions.iter().map(|c| expected(table, c)).collect();
    let queries: Vec<Query> =
        conditions.iter().flat_map(|c| [count(c.clone()), rows(c.clone())]).collect();
    for isa in Isa::available() {
        for workers in [1, 2, 4] {
            let answers = Scan::new(table, &queries).isa(isa).workers(workers).run();
            for (at, condition) in conditions.iter().enumerate() {
                let context = format!("{isa:?}, {workers} workers: {condition:?}");
                compare(&answers[2 * at], &answers[2 * at + 1], &expected[at], &context);
            }
        }
    }
}

fn compare(
    count: &Result<Answer, Error>,
    rows: &Result<Answer, Error>,
    expected: &Result<Vec<u64>, u64>,
    context: &str,
) {
    match expected {
        Ok(expected) => {
            assert_eq!(count.as_ref().unwrap().count, expected.len() as u64, "{context}");
            assert_eq!(rows.as_ref().unwrap().rows, *expected, "{context}");
        }
        Err(first) => {
            for answer in [count, rows] {
                match answer {
                    Err(Error::Row { row, .. }) => assert_eq!(row, first, "{context}"),
                    other => panic!("{other:?} instead of a fault at row {first}: {context}"),
                }
            }
        }
    }
}
