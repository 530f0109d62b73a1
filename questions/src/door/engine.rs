//! The engine of `quarrier query`, in this process: statements one by one, then all concurrently.

use std::sync::Arc;

use quarrier_messages::Table;
use quarrier_sql::{Answer, Engine, Error, Options, Rows, Statement};

use super::{Found, Wrong, judge, shown};
use crate::draw::Draw;
use crate::file::File;
use crate::question::Question;

/// Asks the questions of the file, or of the durable table with its messages.
pub(super) fn ask(
    draw: &mut Draw,
    (file, grown): (&File, Option<Arc<Table>>),
    questions: &[Question],
) -> std::io::Result<Vec<Wrong>> {
    let workers = 1 + draw.below(4);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(32 << 20)
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let engine = Engine::new(Options { workers, ..Options::default() })
            .map_err(std::io::Error::other)?;
        let path = file.path.display().to_string();
        let how = if grown.is_some() { "kept, query" } else { "query" };
        let opened = match grown {
            Some(table) => engine.add("t", table),
            None => engine.open("t", &path).await,
        };
        opened.map_err(|error| std::io::Error::other(format!("{path}: {error}")))?;
        let mut wrong = Vec::new();
        for question in questions {
            let found = alone(&engine, &question.statement).await;
            let door = format!("{how} with {workers} workers");
            wrong.extend(judge(&door, file, question, found));
        }
        let door = format!("{how}, {} at once with {workers} workers", questions.len());
        for (question, found) in questions.iter().zip(together(&engine, questions).await) {
            wrong.extend(judge(&door, file, question, found));
        }
        Ok(wrong)
    })
}

async fn alone(engine: &Engine, text: &str) -> Found {
    let asked = async {
        let statements = engine.statements(text)?;
        engine.run(&statements[0]).await
    };
    match asked.await {
        Ok(Answer::Rows(rows)) => all(rows).await.map_err(|error| error.to_string()),
        Ok(Answer::Copy { .. }) => Err("a copy".into()),
        Err(error) => Err(error.to_string()),
    }
}

async fn together(engine: &Engine, questions: &[Question]) -> Vec<Found> {
    let parsed =
        |question: &Question| engine.statements(&question.statement).map(|mut all| all.remove(0));
    let statements: Result<Vec<Statement>, Error> = questions.iter().map(parsed).collect();
    let answers = match statements {
        Ok(statements) => engine.run_together(&statements).await,
        Err(error) => Err(error),
    };
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => return questions.iter().map(|_| Err(error.to_string())).collect(),
    };
    let mut found = Vec::new();
    for answer in answers {
        found.push(match answer {
            Ok(rows) => all(rows).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        });
    }
    found
}

async fn all(mut rows: Rows) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    while let Some(batch) = rows.next().await? {
        all.extend(shown::rows(&batch));
    }
    Ok(all)
}
