//! The doors: all ways to ask a question of a file.

mod engine;
mod kept;
mod program;
mod shown;

use std::path::{Path, PathBuf};

use crate::draw::Draw;
use crate::file::File;
use crate::question::{Answer, Question};

/// The location of the program, and how often to run it.
#[derive(Debug, Clone)]
pub struct Doors {
    /// The path of the program `quarrier`.
    pub quarrier: PathBuf,
    /// Maximum number of questions per file and door that run in a separate process.
    pub alone_max: usize,
}

/// A wrong answer.
#[derive(Debug)]
pub struct Wrong {
    /// The door and its options.
    pub door: String,
    /// The file.
    pub path: PathBuf,
    /// The statement or condition.
    pub text: String,
    /// The right answer.
    pub right: Answer,
    /// The answer that the door gave.
    pub found: Found,
}

/// The answer of a door: rows as text, or an error.
pub type Found = Result<Vec<String>, String>;

/// Asks all questions of a durable table in `folder` that grew from the messages of a file. Returns
/// the wrong answers.
///
/// # Errors
/// If the folder cannot be written.
pub fn ask_grown(
    draw: &mut Draw,
    (file, lines): (&File, &[String]),
    questions: &[Question],
    folder: &Path,
) -> std::io::Result<Vec<Wrong>> {
    let table = kept::grown(draw, lines, folder)?;
    engine::ask(draw, (file, Some(table)), questions)
}

impl Doors {
    /// Asks all questions of a file, through every door that reads it. Returns the wrong answers.
    ///
    /// # Errors
    /// If the program cannot be run or a file cannot be written.
    pub fn ask(
        &self,
        draw: &mut Draw,
        file: &File,
        questions: &[Question],
    ) -> std::io::Result<Vec<Wrong>> {
        let mut wrong = engine::ask(draw, (file, None), questions)?;
        wrong.extend(self.query(draw, file, questions)?);
        if file.has_messages {
            wrong.extend(self.filter(draw, file, questions)?);
        }
        Ok(wrong)
    }
}

/// Compares an answer with the right one; returns it if it is wrong.
fn judge(door: &str, file: &File, question: &Question, found: Found) -> Option<Wrong> {
    let are = |found: &Vec<String>, right: &Vec<String>| {
        let mut found = found.clone();
        if !question.is_ordered {
            found.sort_unstable();
        }
        found == *right
    };
    let is_right = match (&question.answer, &found) {
        (Answer::Rows(right), Ok(found)) => are(found, right),
        (Answer::Error, Err(_)) => true,
        (Answer::Error, Ok(_)) if question.is_joined => question.may_fault,
        (Answer::Error, Ok(found)) => match &question.answer_whatever {
            Some(Answer::Rows(right)) => !door.starts_with("filter") && are(found, right),
            Some(Answer::Error) | None => false,
        },
        (Answer::Rows(_), Err(_)) => question.may_fault && !door.starts_with("filter"),
    };
    (!is_right).then(|| Wrong {
        door: door.into(),
        path: file.path.clone(),
        text: question.statement.clone(),
        right: question.answer.clone(),
        found,
    })
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const ROWS_MAX: usize = 5;
        let short = |rows: &Vec<String>| {
            let cut = |row: &String| row.chars().take(200).collect::<String>();
            let first: Vec<String> = rows.iter().take(ROWS_MAX).map(cut).collect();
            format!("{} rows: {}", rows.len(), first.join(" / "))
        };
        let text: String = self.text.chars().take(2_000).collect();
        writeln!(f, "{} of {}: {text}", self.door, self.path.display())?;
        match &self.right {
            Answer::Rows(rows) => writeln!(f, "  right: {}", short(rows))?,
            Answer::Error => writeln!(f, "  right: an error")?,
        }
        match &self.found {
            Ok(rows) => writeln!(f, "  found: {}", short(rows))?,
            Err(error) => writeln!(f, "  found: the error {error}")?,
        }
        if let (Answer::Rows(right), Ok(found)) = (&self.right, &self.found) {
            let missing: Vec<_> = right.iter().filter(|row| !found.contains(row)).take(2).collect();
            let added: Vec<_> = found.iter().filter(|row| !right.contains(row)).take(2).collect();
            writeln!(f, "  missing: {missing:.200?}; added: {added:.200?}")?;
        }
        Ok(())
    }
}
