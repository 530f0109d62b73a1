//! The interactive prompt, with history and completion, and its backslash commands.

mod order;
mod typing;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use crate::{Error, Result};
use quarrier_cli::complain;
use rustyline::Editor;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;

use self::order::{HELP, Order};
use self::typing::Typing;
use super::view::Screen;
use super::{Session, answer};

const PROMPT: &str = "quarrier> ";
/// The prompt for continuation lines, as wide as the first.
const CONTINUED: &str = "       -> ";

/// Reads and answers statements until the input ends.
pub(super) async fn run(session: &Session<'_>) -> Result<()> {
    let mut editor: Editor<Typing, DefaultHistory> =
        Editor::new().map_err(|error| failed(&error))?;
    let history = history();
    if let Some(path) = &history {
        // Before the first session, no history exists.
        let _ = editor.load_history(path);
    }
    greet(session);
    loop {
        editor.set_helper(Some(Typing::new(names(session).await)));
        let typed = match read(&mut editor) {
            Ok(typed) => typed,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(&error)),
        };
        if typed.trim().is_empty() {
            continue;
        }
        let order = order::of(&typed);
        // `exit` stays out of the history, so that Up and Enter do not end the next session.
        if matches!(order, Some(Order::Quit)) {
            break;
        }
        let _ = editor.add_history_entry(typed.trim());
        session.stop.store(false, Ordering::Relaxed);
        session.view.screen.set(screen(&mut editor));
        match order {
            Some(order) => obey(session, order).await,
            None => respond(session, &typed).await,
        }
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    Ok(())
}

/// Prints the version and how to get help, and turns row counts on.
fn greet(session: &Session<'_>) {
    session.view.is_paged.set(true);
    if session.query.quiet {
        return;
    }
    session.view.is_counted.set(true);
    let version = env!("CARGO_PKG_VERSION");
    say(&format!("quarrier {version}. End statements with ';'. \\? lists the commands.\n"));
}

/// Reads a command, or a statement up to a `;` at the end of a line.
fn read(editor: &mut Editor<Typing, DefaultHistory>) -> rustyline::Result<String> {
    let mut typed = editor.readline(PROMPT)?;
    while !is_whole(&typed) {
        let line = editor.readline(CONTINUED)?;
        typed.push('\n');
        typed.push_str(&line);
    }
    Ok(typed)
}

fn is_whole(typed: &str) -> bool {
    let typed = typed.trim();
    typed.is_empty() || typed.ends_with(';') || order::of(typed).is_some()
}

/// The screen, if the output goes to one; a `dumb` terminal cannot page.
fn screen(editor: &mut Editor<Typing, DefaultHistory>) -> Option<Screen> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let (columns, rows) = editor.dimensions()?;
    let is_screen = std::io::stdout().is_terminal() && !is_dumb && columns > 0 && rows > 1;
    is_screen.then_some(Screen { columns: columns.into(), rows: rows.into() })
}

async fn obey(session: &Session<'_>, order: Order) {
    let view = &session.view;
    let turned = |name: &str, switch: &std::cell::Cell<bool>, to: Option<bool>| {
        switch.set(to.unwrap_or(!switch.get()));
        say(&format!("{name} is {}.\n", if switch.get() { "on" } else { "off" }));
    };
    match order {
        Order::Help => say(HELP),
        Order::Timing(to) => turned("Timing", &view.is_timed, to),
        Order::Expanded(to) => turned("One line per value", &view.is_expanded, to),
        Order::Pager(to) => turned("The pager", &view.is_paged, to),
        Order::Statement(statement) => respond(session, &statement).await,
        Order::Wrong(reason) => complain(&reason),
        // The caller ends the loop.
        Order::Quit => {}
    }
}

/// Prints text on standard error, apart from the answers.
fn say(text: &str) {
    // If standard error is closed, nobody is left to read this.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

async fn respond(session: &Session<'_>, typed: &str) {
    let statements = match session.engine.statements(typed) {
        Ok(statements) => statements,
        Err(error) => return complain(&error.to_string()),
    };
    for statement in &statements {
        match answer::one(session, statement).await {
            Ok(()) => {}
            Err(error) if error.is_closed_pipe() => {}
            Err(error) => return complain(&error.to_string()),
        }
    }
}

fn failed(error: &ReadlineError) -> Error {
    super::wrong(&format!("the prompt: {error}"))
}

/// The path of the statement history, following the XDG conventions.
fn history() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local").join("state")))?;
    let folder = folder.join("quarrier");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("query-history"))
}

/// The names of the open tables and of their columns.
async fn names(session: &Session<'_>) -> Vec<String> {
    let mut names = session.engine.tables();
    for table in names.clone() {
        let table = session.engine.columns_of(&table).await;
        names.extend(table);
    }
    names
}
