//! Rounds: a table, its files, its questions, and the wrong answers.

use std::path::Path;

use crate::door::{Doors, Wrong, ask_grown};
use crate::draw::Draw;
use crate::file::write_all;
use crate::question::{Answer, Question, question};
use crate::table::Table;

/// How large rounds are.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Rows of a table, at least and at most.
    pub rows: (usize, usize),
    /// Bytes of strings in a column, about, at most.
    pub bytes_max: usize,
    /// Questions of a table.
    pub questions: usize,
}

/// Draws a table and its questions, as a seed says.
pub fn drawn(seed: u64, size: &Size) -> (Table, Vec<Question>) {
    let mut draw = Draw::new(seed);
    let rows = draw.magnitude(size.rows.0, size.rows.1);
    let table = Table::draw(&mut draw, rows, size.bytes_max);
    let questions = (0..size.questions).map(|_| question(&mut draw, &table)).collect();
    (table, questions)
}

/// Writes a table, its questions and their answers to a new folder: the files of the table, and
/// `questions.json`, a list of `statement`, `condition`, `is_ordered` and `rows`, which is null where
/// the answer is an error.
///
/// # Errors
/// Where the folder cannot be written.
pub fn write(seed: u64, size: &Size, folder: &Path) -> std::io::Result<()> {
    let (table, questions) = drawn(seed, size);
    std::fs::create_dir_all(folder)?;
    write_all(&mut Draw::new(!seed), &table, folder)?;
    let shown = |question: &Question| {
        let rows = match &question.answer {
            Answer::Rows(rows) => Some(rows),
            Answer::Error => None,
        };
        serde_json::json!({
            "statement": question.statement,
            "condition": question.condition,
            "is_ordered": question.is_ordered,
            "rows": rows,
        })
    };
    let list: Vec<serde_json::Value> = questions.iter().map(shown).collect();
    std::fs::write(folder.join("questions.json"), serde_json::Value::from(list).to_string())
}

/// Draws a table and its questions and asks them of a kept table that grew by and by; gives the wrong answers,
/// and how many questions there were: none where the table is no table of messages.
///
/// # Errors
/// Where files cannot be written.
pub fn run_grown(seed: u64, size: &Size, folder: &Path) -> std::io::Result<(Vec<Wrong>, usize)> {
    let (table, questions) = drawn(seed, size);
    let mut draw = Draw::new(!seed);
    let files = write_all(&mut draw, &table, folder)?;
    let Some((file, lines)) = files.iter().find_map(|file| Some((file, file.lines.as_ref()?)))
    else {
        return Ok((Vec::new(), 0));
    };
    let wrong = ask_grown(&mut draw, (file, lines), &questions, &folder.join("data"))?;
    Ok((wrong, questions.len()))
}

/// Draws a table and its questions and asks them of all its files; gives the wrong answers.
///
/// # Errors
/// Where files cannot be written or programs not be run.
pub fn run(seed: u64, size: &Size, doors: &Doors, folder: &Path) -> std::io::Result<Vec<Wrong>> {
    let (table, questions) = drawn(seed, size);
    let mut draw = Draw::new(!seed);
    let mut wrong = Vec::new();
    for file in write_all(&mut draw, &table, folder)? {
        wrong.extend(doors.ask(&mut draw, &file, &questions)?);
    }
    Ok(wrong)
}
