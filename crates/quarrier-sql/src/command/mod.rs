//! Runs the command that the arguments describe.

mod answer;
mod concurrent;
mod met;
mod pager;
mod piped;
mod program;
mod prompt;
mod runtime;
mod serve;
mod target;
mod view;
mod watch;

pub use program::{Connect, query, serve as run_server};

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::{Engine, Error, Options, Result, Rows, Spreading, Written, usable_memory};
use quarrier_cli::{Query, QueryAccount, complain, has_failed};
use quarrier_core::parallel::planned_workers;
use quarrier_messages::HiddenColumns;

use self::view::View;
use crate::stack::Stack;

/// Exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;
/// Exit code if a statement failed.
const FAILED: u8 = 2;
/// Exit code if part of a source could not be read.
const INCOMPLETE: u8 = 3;

/// Below this memory limit, the process itself is kept small, too.
const SMALL_BYTES: u64 = 1 << 30;

/// The state that all statements of a run share.
struct Session<'q> {
    query: &'q Query,
    engine: Arc<Engine>,
    stop: Arc<AtomicBool>,
    /// The exit code unless an error ends the session.
    outcome: Cell<u8>,
    /// The cost of the statements so far.
    account: RefCell<QueryAccount>,
    view: View,
}

/// Runs the query, and reports errors. Returns the exit code.
fn run(query: &Query, stack: Stack, spread: Option<Spreading>) -> u8 {
    if query.memory_bytes_max.or_else(usable_memory).is_some_and(|bytes| bytes < SMALL_BYTES) {
        quarrier_core::region::stay_small();
    }
    let stop = quarrier_cli::watch();
    let workers = planned_workers(query.workers);
    let (runtime, workers) = match runtime::runtime(workers, stack.bytes) {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("no threads to work with: {error}"));
            return FAILED;
        }
    };
    let done = runtime.block_on(async {
        let options = Options {
            workers,
            memory_bytes_max: query.memory_bytes_max.or_else(usable_memory),
            statement_words_max: stack.words_max,
            hidden: query.sql.as_deref().map(HiddenColumns::named_in).unwrap_or_default(),
            stop: Arc::clone(&stop),
            environment: quarrier_cli::environment().clone(),
            open: query.open.clone(),
            machine: quarrier_cli::machine().clone(),
            spread,
            ..Options::default()
        };
        let engine = Arc::new(Engine::new(options)?);
        let account = RefCell::new(QueryAccount { workers, ..QueryAccount::default() });
        let view = View { is_timed: Cell::new(query.timing), ..View::default() };
        let session = Session { query, engine, stop, outcome: Cell::new(0), account, view };
        let done = session.run().await;
        session.give_account();
        done.map(|()| session.outcome.get())
    });
    runtime::end(runtime);
    match done {
        Ok(code) => code,
        Err(error) if error.is_closed_pipe() => 0,
        Err(error) => {
            if !is_reported_at_exit(&error) {
                complain(&error.to_string());
            }
            if matches!(error, Error::Cancelled) { INTERRUPTED } else { FAILED }
        }
    }
}

impl Session<'_> {
    /// Keeps the worse of two exit codes: a failure counts more than an incomplete read.
    fn worsen(&self, code: u8) {
        let now = self.outcome.get();
        let is_worse = now == 0 || (now == INCOMPLETE && code == FAILED);
        self.outcome.set(if is_worse { code } else { now });
    }

    /// Writes the cost of the statements, if requested.
    fn give_account(&self) {
        let Some(path) = &self.query.stats else { return };
        self.account.borrow_mut().remote = self.engine.remote_cost();
        if let Err(message) = self.account.borrow().write(path) {
            complain(&message);
            self.worsen(FAILED);
        }
    }

    /// Counts an answer written since `start`, when its first rows were requested.
    fn count(&self, rows: &Rows, written: Written, start: Instant) {
        let mut account = self.account.borrow_mut();
        account.statements += 1;
        account.rows += written.rows;
        let touched = rows.bytes_touched();
        account.bytes += touched.input_bytes;
        account.column_bytes += touched.column_bytes;
        account.working += rows.waited();
        account.writing += start.elapsed().saturating_sub(rows.waited());
    }

    /// Counts the time since `start` as time spent opening files.
    fn count_reading(&self, start: Instant) {
        self.account.borrow_mut().reading += start.elapsed();
    }

    async fn run(&self) -> Result<()> {
        let start = Instant::now();
        if let Some(folder) = &self.query.data {
            self.engine.open_folder(folder)?;
        }
        for (name, file) in &self.query.tables {
            watch::until(self, self.engine.open(name, file)).await?;
        }
        self.count_reading(start);
        if let Some(path) = &self.query.concurrent {
            let text = self.text_of(path)?;
            return concurrent::run(self, &text).await;
        }
        if let Some(sql) = &self.query.sql {
            return self.all(sql).await;
        }
        if std::io::stdin().is_terminal() {
            return prompt::run(self).await;
        }
        if !piped::run(self).await? {
            self.worsen(FAILED);
        }
        Ok(())
    }

    fn text_of(&self, path: &std::path::Path) -> Result<String> {
        let bytes = quarrier::read_instructions(path, "statements", &self.stop);
        let bytes = bytes.map_err(|error| match error {
            quarrier::Error::Stopped { .. } => Error::Cancelled,
            error => wrong(&error.to_string()),
        })?;
        String::from_utf8(bytes).map_err(|_| {
            wrong(&format!("{}: cannot read the statements: not UTF-8", path.display()))
        })
    }

    /// Runs statements in turn.
    async fn all(&self, text: &str) -> Result<()> {
        if answer::at_once(self, text).await? {
            return Ok(());
        }
        let statements = self.engine.statements(text)?;
        if statements.is_empty() {
            let reason = "no statement was given; try 'quarrier query --help'";
            return Err(wrong(reason));
        }
        for (place, statement) in statements.iter().enumerate() {
            let answered = answer::one(self, statement).await;
            answered.map_err(|error| match statements.len() {
                1 => error,
                _ => among_others(place, &statement.to_string(), error),
            })?;
        }
        Ok(())
    }
}

/// The error of a statement among several, prefixed with the statement. Errors that do not belong
/// to the statement stay unchanged.
fn among_others(place: usize, text: &str, error: Error) -> Error {
    match error {
        Error::Cancelled | Error::Output { .. } | Error::Setup { .. } => error,
        other => of_statement(place, text, &other.to_string()),
    }
}

/// The error of one of several statements; `place` counts from 0.
fn of_statement(place: usize, text: &str, error: &str) -> Error {
    const SHOWN_MAX: usize = 40;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    wrong(&format!("statement {} ({shown}): {error}", place + 1))
}

/// Whether standard output failed, which the program reports when it ends.
fn is_reported_at_exit(error: &Error) -> bool {
    matches!(error, Error::Output { .. }) && has_failed()
}

fn failed(name: &str, error: &std::io::Error) -> Error {
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or(&said);
    wrong(&format!("{name}: cannot read: {said}"))
}

fn wrong(reason: &str) -> Error {
    Error::Text { reason: reason.to_string() }
}
