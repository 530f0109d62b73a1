//! Rounds: each draws a table, writes its files, asks its questions and collects the wrong answers.

use std::path::Path;

use crate::door::{Doors, Wrong, ask_grown};
use crate::draw::Draw;
use crate::file::write_all;
use crate::question::{Answer, Question, question};
use crate::table::Table;

/// The size of rounds.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Minimum and maximum number of rows of a table.
    pub rows: (usize, usize),
    /// Approximate maximum number of bytes of strings in a column.
    pub bytes_max: usize,
    /// Number of questions per table.
    pub questions: usize,
}

/// Draws a table and its questions from a seed.
pub fn drawn(seed: u64, size: &Size) -> (Table, Vec<Question>) {
    let mut draw = Draw::new(seed);
    let rows = draw.magnitude(size.rows.0, size.rows.1);
    let table = Table::draw(&mut draw, rows, size.bytes_max);
    let questions = (0..size.questions).map(|_| question(&mut draw, &table)).collect();
    (table, questions)
}

/// Writes a table, its questions and their answers to a new folder: the files of the table, and
/// `questions.json`, a list of `statement`, `condition`, `is_ordered` and `rows`, which is null if the
/// answer is an error.
///
/// # Errors
/// If the folder cannot be written.
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

/// Draws a table and its questions, and asks them of a durable table that grows. Returns the wrong
/// answers, and the number of questions: 0 if messages cannot hold the table.
///
/// # Errors
/// If files cannot be written.
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

/// Draws a table and its questions, and asks them of all its files. Returns the wrong answers.
///
/// # Errors
/// If files cannot be written or the program cannot be run.
pub fn run(seed: u64, size: &Size, doors: &Doors, folder: &Path) -> std::io::Result<Vec<Wrong>> {
    let (table, questions) = drawn(seed, size);
    let mut draw = Draw::new(!seed);
    let mut wrong = Vec::new();
    for file in write_all(&mut draw, &table, folder)? {
        wrong.extend(doors.ask(&mut draw, &file, &questions)?);
    }
    Ok(wrong)
}
