//! The interactive prompt, with history and completion.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use quarrier_cli::complain;
use quarrier_report::is_harmful;
use quarrier_sql::{Error, Result};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};

use super::{Session, answer};

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "JOIN",
    "LEFT JOIN",
    "ON",
    "USING",
    "UNION",
    "DISTINCT",
    "COUNT(*)",
    "EXPLAIN ANALYZE",
    "COPY",
    "BETWEEN",
    "LIKE",
    "WITH",
];

/// Reads and answers statements until there are no more.
pub(super) async fn run(session: &Session<'_>) -> Result<()> {
    let mut editor: Editor<Typing, DefaultHistory> =
        Editor::new().map_err(|error| failed(&error))?;
    let tables = session.engine.tables();
    editor.set_helper(Some(Typing { words: words(&tables) }));
    let history = history();
    if let Some(path) = &history {
        // The first time, there is no history.
        let _ = editor.load_history(path);
    }
    loop {
        match editor.readline("quarrier> ") {
            Ok(line) => {
                let typed = line.trim();
                if matches!(typed.trim_end_matches(';'), "exit" | "quit" | "\\q") {
                    break;
                }
                if typed.is_empty() {
                    continue;
                }
                let _ = editor.add_history_entry(typed);
                session.stop.store(false, Ordering::Relaxed);
                tell(session, typed).await;
                let tables = session.engine.tables();
                editor.set_helper(Some(Typing { words: words(&tables) }));
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(&error)),
        }
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    Ok(())
}

async fn tell(session: &Session<'_>, typed: &str) {
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

/// Where statements are remembered: as the system's conventions have it.
fn history() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local").join("state")))?;
    let folder = folder.join("quarrier");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("query-history"))
}

fn words(tables: &[String]) -> Vec<String> {
    let words = WORDS.iter().map(ToString::to_string);
    words.chain(tables.iter().filter(|name| !name.contains(is_harmful)).cloned()).collect()
}

/// Completes words, and reads on until a `;`.
struct Typing {
    words: Vec<String>,
}

impl Completer for Typing {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let is_break = |c: char| c.is_whitespace() || matches!(c, '(' | ',' | '\'');
        let start = line[..at]
            .rfind(is_break)
            .map_or(0, |place| place + line[place..].chars().next().map_or(1, char::len_utf8));
        let begun = &line[start..at];
        if line[..start].ends_with('\'') {
            return Ok((start, files(begun)));
        }
        let fits = |word: &&String| {
            word.get(..begun.len()).is_some_and(|head| head.eq_ignore_ascii_case(begun))
        };
        let pair = |word: &String| Pair { display: word.clone(), replacement: word.clone() };
        Ok((start, self.words.iter().filter(fits).map(pair).collect()))
    }
}

/// Files whose names have this prefix.
fn files(begun: &str) -> Vec<Pair> {
    let (folder, head) = begun.rsplit_once('/').map_or(("", begun), |(f, head)| (f, head));
    let listed = if folder.is_empty() { "." } else { folder };
    let Ok(entries) = std::fs::read_dir(listed) else { return Vec::new() };
    let mut pairs: Vec<Pair> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let name = name.starts_with(head).then_some(name)?;
            // The editor shows a line as it is: such a name is not put into it.
            let name = (!name.contains(is_harmful)).then_some(name)?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let end = if is_folder { "/" } else { "" };
            let gap = if folder.is_empty() { "" } else { "/" };
            Some(Pair { display: name.clone(), replacement: format!("{folder}{gap}{name}{end}") })
        })
        .collect();
    pairs.sort_by(|a, b| a.display.cmp(&b.display));
    pairs
}

impl Hinter for Typing {
    type Hint = String;
}

impl Highlighter for Typing {}

impl Validator for Typing {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let typed = context.input().trim();
        let is_done = typed.is_empty() || typed.ends_with(';') || typed.starts_with('\\');
        let is_done = is_done || matches!(typed, "exit" | "quit");
        Ok(if is_done { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Helper for Typing {}
