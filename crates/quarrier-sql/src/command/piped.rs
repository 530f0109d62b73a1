//! Statements from a pipe, answered as they come: each when its `;` ends a line.

use std::io::BufRead;

use quarrier_cli::complain;
use quarrier_sql::{Error, Result};

use super::{Session, TEXT_BYTES_MAX, answer, failed, wrong};

/// Reads and answers until there are no more statements. One that has no answer is complained of, and
/// the next one is answered all the same. Returns whether all had one.
pub(super) async fn run(session: &Session<'_>) -> Result<bool> {
    let mut input = std::io::stdin().lock();
    let mut waiting = String::new();
    let (mut asked, mut is_whole) = (0_usize, true);
    loop {
        let read = input.read_line(&mut waiting).map_err(|e| failed("standard input", &e))?;
        if waiting.len() as u64 > TEXT_BYTES_MAX {
            return Err(wrong(&format!("a statement is longer than {TEXT_BYTES_MAX} bytes")));
        }
        if read > 0 && !waiting.trim_end().ends_with(';') {
            continue;
        }
        let Some((statements, all)) = answered(session, (&waiting, asked), read > 0).await? else {
            continue;
        };
        asked += statements;
        is_whole &= all;
        waiting.clear();
        if read == 0 {
            break;
        }
    }
    match asked {
        0 => Err(wrong("no statement was given; try 'quarrier query --help'")),
        _ => Ok(is_whole),
    }
}

/// Answers the statements of a text, which has so many before it: how many they are, and whether all were answered. None where the
/// last `;` stands in a text or a comment that goes on, as it may.
async fn answered(
    session: &Session<'_>,
    (text, before): (&str, usize),
    may_go_on: bool,
) -> Result<Option<(usize, bool)>> {
    match answer::at_once(session, text).await {
        Ok(true) => return Ok(Some((1, true))),
        Ok(false) => {}
        Err(error) => {
            let error = super::among_others(before, text, error);
            return complained(error).map(|()| Some((1, false)));
        }
    }
    let statements = match session.engine.statements(text) {
        Err(error) if may_go_on && is_unfinished(&error.to_string()) => return Ok(None),
        Err(error) => {
            let error = super::among_others(before, text, error);
            return complained(error).map(|()| Some((1, false)));
        }
        Ok(statements) => statements,
    };
    let mut all = true;
    for (place, statement) in statements.iter().enumerate() {
        if let Err(error) = answer::one(session, statement).await {
            complained(super::among_others(before + place, &statement.to_string(), error))?;
            all = false;
        }
    }
    Ok(Some((statements.len(), all)))
}

/// Says what went wrong, where the next statement is to be answered all the same.
fn complained(error: Error) -> Result<()> {
    if error.is_closed_pipe() || error.is_cancelled() {
        return Err(error);
    }
    complain(&error.to_string());
    Ok(())
}

fn is_unfinished(error: &str) -> bool {
    ["Unterminated", "unterminated", "multi-line comment", "Unclosed"]
        .iter()
        .any(|part| error.contains(part))
}
