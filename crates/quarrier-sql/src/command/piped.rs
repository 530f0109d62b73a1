//! Statements from a pipe, answered as they come: each when its `;` ends a line.

use std::io::BufRead;

use quarrier_cli::complain;
use quarrier_sql::Result;

use super::{Session, TEXT_BYTES_MAX, answer, failed, wrong};

/// Reads and answers until there are no more statements. One that has no answer is complained of, and
/// the next one is answered all the same. Returns whether all had one.
pub(super) async fn run(session: &Session<'_>) -> Result<bool> {
    let mut input = std::io::stdin().lock();
    let mut waiting = String::new();
    let (mut asked, mut answered) = (0_usize, true);
    loop {
        let read = input.read_line(&mut waiting).map_err(|e| failed("standard input", &e))?;
        if waiting.len() as u64 > TEXT_BYTES_MAX {
            return Err(wrong(&format!("a statement is longer than {TEXT_BYTES_MAX} bytes")));
        }
        if read > 0 && !waiting.trim_end().ends_with(';') {
            continue;
        }
        match session.engine.statements(&waiting) {
            // The ';' stands in a text or a comment that goes on.
            Err(error) if read > 0 && is_unfinished(&error.to_string()) => continue,
            Err(error) => {
                complain(&error.to_string());
                (asked, answered) = (asked + 1, false);
            }
            Ok(statements) => {
                for statement in &statements {
                    asked += 1;
                    match answer::one(session, statement).await {
                        Err(error) if error.is_closed_pipe() || error.is_cancelled() => {
                            return Err(error);
                        }
                        Err(error) => {
                            complain(&error.to_string());
                            answered = false;
                        }
                        Ok(()) => {}
                    }
                }
            }
        }
        waiting.clear();
        if read == 0 {
            break;
        }
    }
    match asked {
        0 => Err(wrong("no statement was given; try 'quarrier query --help'")),
        _ => Ok(answered),
    }
}

fn is_unfinished(error: &str) -> bool {
    ["Unterminated", "unterminated", "multi-line comment", "Unclosed"]
        .iter()
        .any(|part| error.contains(part))
}
