//! Reads statements from a pipe, and answers each as soon as its `;` ends a line.

use std::io::{BufRead, BufReader, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};
use quarrier::INSTRUCTION_BYTES_MAX;
use quarrier::source::standard_input;
use quarrier_cli::complain;

use super::{Session, answer, failed, wrong};

/// Reads and answers statements until the input ends. A failed statement is reported, and the next
/// one still runs. Returns whether all succeeded.
pub(super) async fn run(session: &Session<'_>) -> Result<bool> {
    let mut input = BufReader::new(standard_input());
    let mut waiting = Vec::new();
    let (mut asked, mut is_whole) = (0_usize, true);
    loop {
        let may_go_on = read_line(&mut input, &mut waiting, &session.stop)?;
        if may_go_on && !waiting.trim_ascii_end().ends_with(b";") {
            continue;
        }
        let text = std::str::from_utf8(&waiting).map_err(|_| {
            wrong("standard input: cannot read: stream did not contain valid UTF-8")
        })?;
        let Some((statements, all)) = answered(session, (text, asked), may_go_on).await? else {
            continue;
        };
        asked += statements;
        is_whole &= all;
        waiting.clear();
        if !may_go_on {
            break;
        }
    }
    match asked {
        0 => Err(wrong("no statement was given; try 'quarrier query --help'")),
        _ => Ok(is_whole),
    }
}

/// Reads up to the end of a line. Returns false at the end of the input.
fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>, stop: &AtomicBool) -> Result<bool> {
    loop {
        let bytes = match input.fill_buf() {
            Ok([]) => return Ok(false),
            Ok(bytes) => bytes,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                match stop.load(Ordering::Relaxed) {
                    true => return Err(Error::Cancelled),
                    false => continue,
                }
            }
            Err(error) => return Err(failed("standard input", &error)),
        };
        let end = bytes.iter().position(|&byte| byte == b'\n').map(|place| place + 1);
        let read = end.unwrap_or(bytes.len());
        line.extend_from_slice(&bytes[..read]);
        input.consume(read);
        if line.len() as u64 > INSTRUCTION_BYTES_MAX {
            let reason = format!("a statement is longer than {INSTRUCTION_BYTES_MAX} bytes");
            return Err(wrong(&reason));
        }
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Answers the statements of `text`, after `before` earlier ones. Returns their number, and whether
/// all succeeded. `None` if the last `;` is within an unfinished string or comment.
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

/// Reports an error, unless it also ends the statements that follow.
fn complained(error: Error) -> Result<()> {
    if error.is_closed_pipe() || error.is_cancelled() || super::is_reported_at_exit(&error) {
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
