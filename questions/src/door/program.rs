//! The commands `quarrier filter` and `quarrier query`, each in a separate process.

use std::io;
use std::process::{Command, Output, Stdio};

use super::{Doors, Wrong, judge};
use crate::draw::Draw;
use crate::file::File;
use crate::question::{Answer, Question};

impl Doors {
    /// Runs `filter --many` with all conditions, and `filter` with some of them.
    pub(super) fn filter(
        &self,
        draw: &mut Draw,
        file: &File,
        questions: &[Question],
    ) -> io::Result<Vec<Wrong>> {
        let with_condition: Vec<(&str, &Question)> = questions
            .iter()
            .filter_map(|question| Some((question.condition.as_deref()?, question)))
            .collect();
        let mut wrong = self.many(draw, file, &with_condition)?;
        for (condition, question) in with_condition.iter().take(self.alone_max) {
            wrong.extend(self.one(draw, file, condition, question)?);
        }
        Ok(wrong)
    }

    fn many(
        &self,
        draw: &mut Draw,
        file: &File,
        asked: &[(&str, &Question)],
    ) -> io::Result<Vec<Wrong>> {
        // A condition that fails would end the whole run.
        let answered: Vec<_> =
            asked.iter().filter(|(_, question)| question.answer != Answer::Error).collect();
        if answered.is_empty() {
            return Ok(Vec::new());
        }
        let list = file.path.with_extension("conditions");
        let lines: Vec<&str> = answered.iter().map(|(condition, _)| *condition).collect();
        std::fs::write(&list, lines.join("\n"))?;
        let workers = (1 + draw.below(4)).to_string();
        let list = list.display().to_string();
        let output = self.run(&[
            "filter",
            "--quiet",
            "--many",
            &list,
            "--format",
            "json",
            "--workers",
            &workers,
            &path(file),
        ])?;
        let counts: Result<Vec<String>, String> = failed(&output)
            .map_or_else(|| Ok(lines_of(&output).iter().map(|line| count_of(line)).collect()), Err);
        let mut wrong = Vec::new();
        for (at, (_, question)) in answered.iter().enumerate() {
            let found = counts.clone().map(|counts| counts.get(at).cloned().into_iter().collect());
            let door = format!("filter --many --workers {workers}");
            wrong.extend(judge(&door, file, &counted(question), found));
        }
        Ok(wrong)
    }

    /// Runs `filter -c`, and `filter` that prints the ids or the messages.
    fn one(
        &self,
        draw: &mut Draw,
        file: &File,
        condition: &str,
        question: &Question,
    ) -> io::Result<Vec<Wrong>> {
        let workers = (1 + draw.below(4)).to_string();
        let shared = ["filter", "--quiet", "--workers", &workers, condition];
        let path = path(file);
        let mut wrong = Vec::new();
        let output = self.run(&[&shared[..], &["-c", &path]].concat())?;
        let door = format!("filter -c --workers {workers}");
        let found = failed(&output).map_or_else(|| Ok(lines_of(&output)), Err);
        wrong.extend(judge(&door, file, &counted(question), found));
        if question.statement.starts_with("SELECT id ") {
            let output = self.run(&[&shared[..], &["--columns", "id", &path]].concat())?;
            let found = failed(&output).map_or_else(|| Ok(lines_of(&output)), Err);
            let door = format!("filter --columns id --workers {workers}");
            wrong.extend(judge(&door, file, question, found));
            if let Some(lines) = &file.lines {
                let output = self.run(&[&shared[..], &[&path]].concat())?;
                let found = failed(&output).map_or_else(|| Ok(lines_of(&output)), Err);
                let door = format!("filter --workers {workers}");
                wrong.extend(judge(&door, file, &printed(question, lines), found));
            }
        }
        Ok(wrong)
    }

    /// Runs `query --format csv` with some statements whose values all doors write alike.
    pub(super) fn query(
        &self,
        draw: &mut Draw,
        file: &File,
        questions: &[Question],
    ) -> io::Result<Vec<Wrong>> {
        let is_plain = |question: &&Question| {
            question.statement.starts_with("SELECT id FROM")
                || question.statement.starts_with("SELECT COUNT(*)")
        };
        let mut wrong = Vec::new();
        for question in questions.iter().filter(is_plain).take(self.alone_max) {
            let workers = (1 + draw.below(4)).to_string();
            let table = format!("t={}", path(file));
            let output = self.run(&[
                "query",
                "--quiet",
                "--workers",
                &workers,
                "--format",
                "csv",
                "--table",
                &table,
                &question.statement,
            ])?;
            let found = failed(&output).map_or_else(|| Ok(lines_of(&output).split_off(1)), Err);
            let door = format!("the program query --workers {workers}");
            wrong.extend(judge(&door, file, question, found));
        }
        Ok(wrong)
    }

    fn run(&self, arguments: &[&str]) -> io::Result<Output> {
        Command::new(&self.quarrier).args(arguments).stdin(Stdio::null()).output()
    }
}

fn path(file: &File) -> String {
    file.path.display().to_string()
}

/// Returns why a run failed. Exit status 1 means that nothing was found, which is not a failure.
fn failed(output: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
    match output.status.code() {
        Some(0 | 1) if said.is_empty() => None,
        code => Some(format!("status {code:?}: {said}")),
    }
}

fn lines_of(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect()
}

/// Returns the count in a row of `--many`.
fn count_of(line: &str) -> String {
    let row: Result<serde_json::Value, _> = serde_json::from_str(line);
    row.map_or_else(|error| error.to_string(), |row| row["count"].to_string())
}

/// The same question, answered by the number of rows.
fn counted(question: &Question) -> Question {
    let answer = match &question.answer {
        Answer::Rows(rows) if question.statement.starts_with("SELECT id ") => {
            Answer::Rows(vec![rows.len().to_string()])
        }
        answer => answer.clone(),
    };
    Question { answer, ..question.clone() }
}

/// The same question, answered by the original messages.
fn printed(question: &Question, lines: &[String]) -> Question {
    let line = |id: &String| id.parse::<usize>().ok().and_then(|id| lines.get(id)).cloned();
    let answer = match &question.answer {
        Answer::Rows(ids) => {
            let mut rows: Vec<String> = ids.iter().filter_map(line).collect();
            rows.sort_unstable();
            Answer::Rows(rows)
        }
        Answer::Error => Answer::Error,
    };
    Question { answer, ..question.clone() }
}
