//! `--concurrent`: runs all statements of a file at the same time.

use std::io::Write;
use std::time::Instant;

use crate::{Error, Result, Rows, Touched};
use quarrier_cli::{QueryFormat, StandardOutput};
use quarrier_report::{Manner, visible};
use serde_json::json;

use super::{Session, met, watch};

/// The outcome of one statement.
#[derive(Default)]
struct Done {
    rows: u64,
    touched: Touched,
    seconds: f64,
    error: Option<String>,
}

/// Runs all statements, and writes the time and number of rows of each.
pub(super) async fn run(session: &Session<'_>, text: &str) -> Result<()> {
    let apart = session.engine.statements_apart(text)?;
    if apart.is_empty() {
        return Err(super::wrong("the file has no statement; write them with ; between them"));
    }
    let start = Instant::now();
    let (mut written, mut refused, mut statements) = (Vec::new(), Vec::new(), Vec::new());
    for (text, statement) in apart {
        written.push(text);
        refused.push(statement.as_ref().err().map(ToString::to_string));
        statements.extend(statement);
    }
    // Files are opened once, before the clock is started.
    for statement in &statements {
        // Other errors of a statement are in its row.
        if let Err(error @ (Error::Cancelled | Error::TimedOut { .. })) =
            watch::until(session, session.engine.plan(statement)).await
        {
            return Err(error);
        }
    }
    session.count_reading(start);
    met::report(session)?;
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
    let mut answered = watch::until(session, all).await?.into_iter();
    let done: Vec<Done> = refused
        .into_iter()
        .map(|refused| match refused {
            Some(error) => Done { error: Some(error), ..Done::default() },
            None => answered.next().unwrap_or_default(),
        })
        .collect();
    count(session, &done, start);
    met::report_notes(session);
    let seconds = start.elapsed().as_secs_f64();
    show(session, &written, &done, seconds)
        .map_err(|error| Error::Output { name: "standard output".to_string(), error })?;
    let mut all = done.iter().zip(&written).enumerate();
    match all.find_map(|(place, (done, text))| Some((place, text, done.error.as_ref()?))) {
        Some((place, text, error)) => Err(super::of_statement(place, text, error)),
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
    account.bytes += done.iter().map(|done| done.touched.input_bytes).sum::<u64>();
    account.column_bytes += done.iter().map(|done| done.touched.column_bytes).sum::<u64>();
    account.working += start.elapsed();
}

async fn one(rows: Result<Rows>, start: Instant) -> Done {
    match counted(rows).await {
        Ok((rows, touched)) => {
            Done { rows, touched, seconds: start.elapsed().as_secs_f64(), error: None }
        }
        Err(error) => failed(&error, start),
    }
}

/// The number of rows, and the bytes touched for them.
async fn counted(rows: Result<Rows>) -> Result<(u64, Touched)> {
    let mut rows = rows?;
    let mut count = 0;
    while let Some(batch) = rows.next().await? {
        count += batch.num_rows() as u64;
    }
    Ok((count, rows.bytes_touched()))
}

fn show(
    session: &Session<'_>,
    statements: &[String],
    done: &[Done],
    seconds: f64,
) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(StandardOutput::new().shown(Manner::Json));
    for (statement, done) in statements.iter().zip(done) {
        if session.query.format == QueryFormat::Json {
            let row = json!({
                "statement": statement,
                "rows": done.rows,
                "seconds": done.seconds,
                "error": done.error,
            });
            writeln!(out, "{row}")?;
            continue;
        }
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let statement = visible(&statement);
        let said = visible(done.error.as_deref().unwrap_or(""));
        let gap = if said.is_empty() { "" } else { "  " };
        writeln!(out, "{:>12}  {:>9.3} s  {statement}{gap}{said}", done.rows, done.seconds)?;
    }
    out.flush()?;
    if !session.query.quiet {
        // If standard error is closed, nobody is left to read this.
        let _ = writeln!(std::io::stderr(), "{} statements in {seconds:.3} s", statements.len());
    }
    Ok(())
}
