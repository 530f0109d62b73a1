//! Orders and limits.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use quarrier_filter::{Error, Expr, Order, Passes, Query, Scan, Scanner, naive};
use quarrier_messages::{Table, Value};

use super::conditions::condition;
use super::tables::{COLUMNS, Random, table};
use super::{count, expected, rows};

/// Returns `rows` sorted by comparing values.
pub(super) fn sorted(table: &Table, mut rows: Vec<u64>, order: &[Order]) -> Vec<u64> {
    rows.sort_by(|&a, &b| {
        for by in order {
            let (a, b) = (table.value(a, by.column), table.value(b, by.column));
            let compared = match (a == Value::Null, b == Value::Null) {
                (true, true) => continue,
                (true, false) if by.nulls_first => return std::cmp::Ordering::Less,
                (true, false) => return std::cmp::Ordering::Greater,
                (false, true) if by.nulls_first => return std::cmp::Ordering::Greater,
                (false, true) => return std::cmp::Ordering::Less,
                _ => naive::compare(&(&a).into(), &(&b).into()).unwrap().unwrap(),
            };
            let compared = if by.descending { compared.reverse() } else { compared };
            if compared.is_ne() {
                return compared;
            }
        }
        a.cmp(&b)
    });
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_best_rows_of_an_order_are_those_of_a_sort(
        seed: u64,
        segments in prop::collection::vec(1..6000_usize, 1..4),
        limit in prop::option::of(0..3000_u64),
        offset in 0..40_u64,
    ) {
        let table = table(seed, &segments);
        let mut random = Random(seed);
        let condition = condition(&table, &mut random, 1);
        let orders: Vec<Vec<Order>> = (0..6).map(|nth| {
            (0..nth % 4).map(|_| Order {
                column: random.below(COLUMNS.len() as u64) as usize,
                descending: random.below(2) == 0,
                nulls_first: random.below(2) == 0,
            }).collect()
        }).collect();
        let queries: Vec<Query> = orders.iter().map(|order| {
            Query { order: order.clone(), limit, offset, ..rows(condition.clone()) }
        }).collect();
        let Ok(expected) = expected(&table, &condition) else { return Ok(()) };
        for workers in [1, 3] {
            // Also each query alone, since the first order determines the order of the segments.
            let mut answers = Scan::new(&table, &queries).workers(workers).run();
            answers.extend(queries.iter().flat_map(|query| {
                Scan::new(&table, std::slice::from_ref(query)).workers(workers).run()
            }));
            for (answer, order) in answers.iter().zip(orders.iter().chain(&orders)) {
                let most = limit.map_or(usize::MAX, |limit| limit as usize);
                let sorted = sorted(&table, expected.clone(), order);
                let wanted: Vec<u64> =
                    sorted.into_iter().skip(offset as usize).take(most).collect();
                prop_assert_eq!(&answer.as_ref().unwrap().rows, &wanted, "{:?}", order);
            }
        }
    }
}

#[test]
fn a_cancelled_scan_returns_an_error() {
    let table = table(5, &[5000]);
    let stop = AtomicBool::new(true);
    let queries = [count(Expr::Literal(Value::Boolean(true)))];
    let answers = Scan::new(&table, &queries).cancel(&stop).run();
    assert_eq!(answers[0], Err(Error::Cancelled));
}

#[test]
fn queries_that_join_a_running_scan_get_the_answers_of_a_scan_of_their_own() {
    let table = std::sync::Arc::new(table(11, &[900, 4096, 77, 5000, 64, 2000, 1]));
    let mut random = Random(11);
    let order = |column| Order { column, descending: true, nulls_first: false };
    let queries: Vec<Query> = (0..60)
        .map(|nth| {
            let condition = condition(&table, &mut random, nth % 2);
            let column = nth as usize % COLUMNS.len();
            match nth % 3 {
                0 => count(condition),
                1 => Query { limit: Some(50), ..rows(condition) },
                _ => Query { limit: Some(9), order: vec![order(column)], ..rows(condition) },
            }
        })
        .collect();
    for workers in [1, 3] {
        let scanner = Scanner::start(std::sync::Arc::clone(&table), workers).unwrap();
        let tickets: Vec<_> = queries.iter().map(|query| scanner.submit(query.clone())).collect();
        for (query, ticket) in queries.iter().zip(tickets) {
            let alone = Scan::new(&table, std::slice::from_ref(query)).run().remove(0);
            match (ticket.wait(), alone) {
                (Ok(joined), Ok(alone)) => assert_eq!(joined, alone, "{query:?}"),
                // The point where the query joined determines which of several faults it meets
                // first, and a limit may end it before any.
                (Err(Error::Row { .. }), Err(Error::Row { .. })) => {}
                (joined, alone) if query.limit.is_some() => drop((joined, alone)),
                (joined, alone) => panic!("{joined:?} and {alone:?}: {query:?}"),
            }
        }
    }
}

#[test]
fn queries_that_share_passes_get_the_answers_of_a_scan_of_their_own() {
    let table = std::sync::Arc::new(table(13, &[900, 4096, 77, 5000, 64, 2000, 1]));
    let mut random = Random(13);
    let order = |column| Order { column, descending: false, nulls_first: true };
    let queries: Vec<Query> = (0..80)
        .map(|nth| {
            let condition = condition(&table, &mut random, nth % 2);
            let column = nth as usize % COLUMNS.len();
            match nth % 3 {
                0 => count(condition),
                1 => rows(condition),
                _ => Query { limit: Some(9), order: vec![order(column)], ..rows(condition) },
            }
        })
        .collect();
    let (passes, stop) = (Passes::over(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for part in queries.chunks(10) {
            let (table, passes, stop) = (&table, &passes, &stop);
            scope.spawn(move || {
                for query in part {
                    let (shared, _) = passes.ask(table, query.clone(), 2, stop);
                    let scan = Scan::new(table, std::slice::from_ref(query));
                    match (shared, scan.run_matches().0.remove(0)) {
                        (Ok(shared), Ok(alone)) => assert_eq!(shared, alone, "{query:?}"),
                        // Which of several faults is met first depends on the threads.
                        (Err(Error::Row { .. }), Err(Error::Row { .. })) => {}
                        (shared, alone) if query.limit.is_some() => drop((shared, alone)),
                        (shared, alone) => panic!("{shared:?} and {alone:?}: {query:?}"),
                    }
                }
            });
        }
    });
}

#[test]
fn dropping_a_scanner_answers_waiting_queries() {
    let table = std::sync::Arc::new(table(5, &[5000]));
    let scanner = Scanner::start(table, 2).unwrap();
    let ticket = scanner.submit(count(Expr::Literal(Value::Boolean(true))));
    drop(scanner);
    assert!(matches!(ticket.wait(), Ok(_) | Err(Error::Cancelled)));
}
