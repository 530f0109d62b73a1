//! `--concurrent`: all statements of a file at the same time.

use std::io::Write;
use std::time::Instant;

use quarrier_cli::QueryFormat;
use quarrier_sql::{Error, Result, Rows, Statement};
use serde_json::json;

use super::{Session, met, watch};

/// What became of one statement.
#[derive(Default)]
struct Done {
    rows: u64,
    bytes: u64,
    seconds: f64,
    error: Option<String>,
}

/// Answers all statements, and writes time and rows of each.
pub(super) async fn run(session: &Session<'_>, text: &str) -> Result<()> {
    let statements = session.engine.statements(text)?;
    let start = Instant::now();
    // Files are opened once, before the clock is started.
    for statement in &statements {
        watch::until(session, session.engine.plan(statement)).await?;
    }
    session.count_reading(start);
    met::tell(session)?;
    let start = Instant::now();
    let rows = watch::until(session, session.engine.run_together(&statements)).await?;
    let begun: Vec<_> =
        rows.into_iter().map(|rows| tokio::spawn(async move { one(rows, start).await })).collect();
    let all = async {
        let mut done = Vec::with_capacity(begun.len());
        for task in begun {
            done.push(task.await.unwrap_or_else(|error| failed(&error, start)));
        }
        Ok(done)
    };
    let done = watch::until(session, all).await?;
    count(session, &done, start);
    let seconds = start.elapsed().as_secs_f64();
    show(session, &statements, &done, seconds)
        .map_err(|error| Error::Output { name: "standard output".to_string(), error })?;
    match done.iter().find_map(|done| done.error.as_ref()) {
        Some(error) => Err(super::wrong(error)),
        None => Ok(()),
    }
}

fn failed(error: &dyn std::fmt::Display, start: Instant) -> Done {
    let seconds = start.elapsed().as_secs_f64();
    Done { seconds, error: Some(error.to_string()), ..Done::default() }
}

fn count(session: &Session<'_>, done: &[Done], start: Instant) {
    let mut account = session.account.borrow_mut();
    account.statements += done.len();
    account.rows += done.iter().map(|done| done.rows).sum::<u64>();
    account.bytes += done.iter().map(|done| done.bytes).sum::<u64>();
    account.working += start.elapsed();
}

async fn one(rows: Result<Rows>, start: Instant) -> Done {
    match counted(rows).await {
        Ok((rows, bytes)) => {
            Done { rows, bytes, seconds: start.elapsed().as_secs_f64(), error: None }
        }
        Err(error) => failed(&error, start),
    }
}

/// How many rows there are, and how many bytes were touched for them.
async fn counted(rows: Result<Rows>) -> Result<(u64, u64)> {
    let mut rows = rows?;
    let mut count = 0;
    while let Some(batch) = rows.next().await? {
        count += batch.num_rows() as u64;
    }
    Ok((count, rows.bytes_touched()))
}

fn show(
    session: &Session<'_>,
    statements: &[Statement],
    done: &[Done],
    seconds: f64,
) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for (statement, done) in statements.iter().zip(done) {
        if session.query.format == QueryFormat::Json {
            let row = json!({
                "statement": statement.to_string(),
                "rows": done.rows,
                "seconds": done.seconds,
                "error": done.error,
            });
            writeln!(out, "{row}")?;
            continue;
        }
        let said = done.error.as_deref().unwrap_or("");
        let gap = if said.is_empty() { "" } else { "  " };
        writeln!(out, "{:>12}  {:>9.3} s  {statement}{gap}{said}", done.rows, done.seconds)?;
    }
    out.flush()?;
    if !session.query.quiet {
        writeln!(std::io::stderr(), "{} statements in {seconds:.3} s", statements.len())?;
    }
    Ok(())
}
