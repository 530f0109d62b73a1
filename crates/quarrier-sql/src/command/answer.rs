//! Answers one statement, writes the rows, and records the cost.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Answer, Error, Format, Result, Rows, Statement, Written, write};
use quarrier_cli::{QueryFormat, StandardOutput};
use quarrier_core::panics;
use quarrier_report::Manner;

use super::pager::Pager;
use super::target::Target;
use super::{Session, met, watch};

/// Answers a statement that needs only the scan of one table. Returns whether it was such a
/// statement.
pub(super) async fn at_once(session: &Session<'_>, text: &str) -> Result<bool> {
    // Starting the thread that watches the time limit takes as long as such a statement.
    if session.query.timeout.is_some() {
        return Ok(false);
    }
    let start = Instant::now();
    let Some(rows) = session.engine.run_at_once(text) else { return Ok(false) };
    let rows = rows?;
    met::report(session)?;
    let are_here = rows.are_here();
    let write = written(session, Answer::Rows(rows));
    let written = if are_here { write.await? } else { watch::until(session, write).await? };
    if session.view.is_timed.get() {
        say(written, start.elapsed());
    }
    Ok(true)
}

/// Answers a statement.
pub(super) async fn one(session: &Session<'_>, statement: &Statement) -> Result<()> {
    let start = Instant::now();
    let answered = async {
        let answer = run(session, statement).await?;
        session.count_reading(start);
        met::report(session)?;
        let is_copy = matches!(answer, Answer::Copy { .. });
        let has_rows = matches!(&answer, Answer::Rows(rows) if !rows.schema().fields().is_empty());
        Ok((written(session, answer).await?, is_copy, has_rows))
    };
    let (written, is_copy, has_rows) = watch::until(session, answered).await.inspect_err(|_| {
        // The statement's error line says enough, whichever thread panicked.
        let _ = panics::take();
        met::discard_notes(session);
    })?;
    met::report_notes(session);
    if session.view.is_timed.get() || (is_copy && !session.query.quiet) {
        say(written, start.elapsed());
    } else if has_rows && session.view.is_counted.get() {
        // If standard error is closed, nobody is left to read this.
        let _ = writeln!(std::io::stderr(), "({} {})", written.rows, rows_of(written));
    }
    Ok(())
}

/// Begins to answer a statement in a separate task: planning a long statement takes long, and has
/// no await point at which the time limit could be noticed.
async fn run(session: &Session<'_>, statement: &Statement) -> Result<Answer> {
    let (engine, statement) = (Arc::clone(&session.engine), statement.clone());
    let task = tokio::spawn(async move { engine.run(&statement).await });
    let ended = |error| Error::Setup { reason: format!("the statement ended early: {error}") };
    task.await.map_err(ended)?
}

fn rows_of(written: Written) -> &'static str {
    if written.rows == 1 { "row" } else { "rows" }
}

fn say(written: Written, time: Duration) {
    let rows = rows_of(written);
    // If standard error is closed, nobody is left to read this.
    let _ = writeln!(std::io::stderr(), "{} {rows} in {:.6} s", written.rows, time.as_secs_f64());
}

async fn written(session: &Session<'_>, answer: Answer) -> Result<Written> {
    let start = Instant::now();
    let (rows, written) = match answer {
        Answer::Copy { mut rows, target, format } => {
            let written = to_file(&mut rows, &target, format).await?;
            (rows, written)
        }
        Answer::Rows(mut rows) => {
            let format = format_of(session.query.format);
            let written = match &session.query.output {
                Some(path) => to_file(&mut rows, path, format).await?,
                None => to_stdout(session, &mut rows, format).await?,
            };
            (rows, written)
        }
    };
    session.count(&rows, written, start);
    Ok(written)
}

pub(super) fn format_of(format: QueryFormat) -> Format {
    match format {
        QueryFormat::Text => Format::Text,
        QueryFormat::Json => Format::Json,
        QueryFormat::Csv => Format::Csv,
        QueryFormat::Arrow => Format::Arrow,
        QueryFormat::Parquet => Format::Parquet,
    }
}

async fn to_file(rows: &mut Rows, path: &std::path::Path, format: Format) -> Result<Written> {
    let mut target = Target::create(path)?;
    let name = path.display().to_string();
    let written = write(rows, format, &name, target.out()).await?;
    all_well()?;
    target.keep()?;
    Ok(written)
}

async fn to_stdout(session: &Session<'_>, rows: &mut Rows, format: Format) -> Result<Written> {
    let stdout = StandardOutput::new();
    let is_for_people = format == Format::Text || !stdout.is_terminal();
    if !is_for_people && matches!(format, Format::Arrow | Format::Parquet) {
        return Err(super::wrong("refusing to write binary to a terminal; use -o or a pipe"));
    }
    if rows.schema().fields().is_empty() && format == Format::Text {
        // A statement that only changes something has nothing to show.
        let mut nothing = std::io::sink();
        return write(rows, format, "nowhere", &mut nothing).await;
    }
    if format == Format::Text {
        return for_people(session, rows, stdout).await;
    }
    let stdout: Box<dyn Write + Send> = match format {
        Format::Json => stdout.shown(Manner::Json),
        Format::Csv => stdout.shown(Manner::Text),
        // The text format escapes each value itself.
        Format::Text | Format::Records | Format::Arrow | Format::Parquet => Box::new(stdout),
    };
    let mut out = std::io::BufWriter::with_capacity(64 << 10, stdout);
    let written = write(rows, format, "standard output", &mut out).await?;
    all_well()?;
    Ok(written)
}

/// Writes a table or, if expanded, a line for each value; output larger than the screen goes to a
/// pager.
async fn for_people(
    session: &Session<'_>,
    rows: &mut Rows,
    stdout: StandardOutput,
) -> Result<Written> {
    const NAME: &str = "standard output";
    let format = if session.view.is_expanded.get() { Format::Records } else { Format::Text };
    let written = match session.view.page() {
        Some(screen) => {
            let mut pager = Pager::new(stdout, screen);
            let written = write(rows, format, NAME, &mut pager).await?;
            let ended = pager.end();
            ended.map_err(|error| Error::Output { name: NAME.to_string(), error })?;
            written
        }
        None => {
            let mut out = std::io::BufWriter::with_capacity(64 << 10, stdout);
            write(rows, format, NAME, &mut out).await?
        }
    };
    all_well()?;
    Ok(written)
}

/// Whether no thread panicked, including threads that nobody joined.
fn all_well() -> Result<()> {
    panics::take().map_or(Ok(()), |panicked| Err(Error::Internal(panicked)))
}
