//! Statements that a scan of one table answers.

use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_filter::{Error, Query, Scan, sql};
use quarrier_messages::Table;

/// Answers statements about a table of this name, all in one pass: `SELECT … FROM name [WHERE …] [ORDER BY
/// …] [LIMIT … [OFFSET …]]` and `SELECT COUNT(*) …`. 0 workers means one per CPU.
///
/// ```
/// use quarrier::{Tables, tables};
/// use quarrier_core::source::Memory;
///
/// let orders = Memory::new("orders.csv", b"side,qty\nB,7\nS,8\n".to_vec());
/// let request = Tables::new();
/// let detected = request.detect_source(Box::new(orders))?;
/// let stop = false.into();
/// let table = request.load(vec![detected], &stop)?.table;
/// let answers = tables::answer(&table, "orders", &["SELECT qty FROM orders WHERE side = 'S'"], 0, &stop);
/// assert_eq!(answers.unwrap()[0].rows(), 1);
/// # Ok::<(), quarrier::Error>(())
/// ```
///
/// # Errors
/// The error of the first statement that is invalid, needs more of SQL, or has no value for a row;
/// [`Error::Cancelled`] soon after `stop` becomes true.
pub fn answer(
    table: &Table,
    name: &str,
    statements: &[&str],
    workers: usize,
    stop: &AtomicBool,
) -> Result<Vec<Table>, Error> {
    let bound = statements.iter().map(|text| match stop.load(Ordering::Relaxed) {
        true => Err(Error::Cancelled),
        false => sql::statement_of(text, name, table),
    });
    let queries = bound.collect::<Result<Vec<Query>, Error>>()?;
    let workers = quarrier_core::parallel::planned_workers(workers);
    let answers = Scan::new(table, &queries).workers(workers).cancel(stop).run();
    let shown = queries.iter().zip(answers);
    shown.map(|(query, answer)| query.project(table, &answer?, workers, stop)).collect()
}
