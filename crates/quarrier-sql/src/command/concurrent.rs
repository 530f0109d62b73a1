//! `--concurrent`: all statements of a file at the same time.

use std::io::Write;
use std::time::Instant;

use quarrier_cli::QueryFormat;
use quarrier_sql::{Error, Result, Rows, Statement};
use serde_json::json;

use super::{Session, met, watch};

/// What became of one statement.
struct Done {
    rows: u64,
    seconds: f64,
    error: Option<String>,
}

/// Answers all statements, and writes time and rows of each.
pub(super) async fn run(session: &Session<'_>, text: &str) -> Result<()> {
    let statements = session.engine.statements(text)?;
    // Files are opened once, before the clock is started.
    for statement in &statements {
        watch::until(session, session.engine.plan(statement)).await?;
    }
    met::tell(session)?;
    let start = Instant::now();
    let rows = watch::until(session, session.engine.run_together(&statements)).await?;
    let begun: Vec<_> =
        rows.into_iter().map(|rows| tokio::spawn(async move { one(rows, start).await })).collect();
    let all = async {
        let mut done = Vec::with_capacity(begun.len());
        for task in begun {
            done.push(task.await.unwrap_or_else(|error| Done {
                rows: 0,
                seconds: start.elapsed().as_secs_f64(),
                error: Some(error.to_string()),
            }));
        }
        Ok(done)
    };
    let done = watch::until(session, all).await?;
    let seconds = start.elapsed().as_secs_f64();
    show(session, &statements, &done, seconds)
        .map_err(|error| Error::Output { name: "standard output".to_string(), error })?;
    match done.iter().find_map(|done| done.error.as_ref()) {
        Some(error) => Err(super::wrong(error)),
        None => Ok(()),
    }
}

async fn one(rows: Result<Rows>, start: Instant) -> Done {
    let counted = counted(rows).await;
    let seconds = start.elapsed().as_secs_f64();
    match counted {
        Ok(rows) => Done { rows, seconds, error: None },
        Err(error) => Done { rows: 0, seconds, error: Some(error.to_string()) },
    }
}

async fn counted(rows: Result<Rows>) -> Result<u64> {
    let mut rows = rows?;
    let mut count = 0;
    while let Some(batch) = rows.next().await? {
        count += batch.num_rows() as u64;
    }
    Ok(count)
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
