//! Runs many plans at the same time, sharing one pass over each table.

use std::sync::Arc;
use std::time::Instant;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use quarrier_messages::Table;

use super::MessagesExec;
use super::selection::{Question, Selection, search_all};

/// Scans of one table that wait for their selections.
struct Waiting {
    table: Arc<Table>,
    questions: Vec<Question>,
    selections: Vec<Arc<Selection>>,
    /// The first of the scans, whose metrics count the work for all of them.
    first: MessagesExec,
}

/// Selects the rows of all scans in `plans` before any plan runs, in one pass over each table.
/// Skips scans with dynamic filters, which are not known yet, and scans whose condition fails for a
/// row, which their own plans report.
///
/// # Errors
/// The pass itself fails.
pub(crate) async fn search_together(
    plans: &[Arc<dyn ExecutionPlan>],
    workers: usize,
) -> Result<()> {
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut open: Vec<&Arc<dyn ExecutionPlan>> = plans.iter().collect();
    while let Some(plan) = open.pop() {
        open.extend(plan.children());
        if let Some(scan) = plan.downcast_ref::<MessagesExec>() {
            add(scan, &mut waiting);
        }
    }
    for Waiting { table, questions, selections, first } in waiting {
        if questions.len() < 2 {
            continue;
        }
        let start = Instant::now();
        let (found, work) = search_all(&table, questions, workers).await?;
        if let Some(work) = work {
            first.count(work, start.elapsed());
        }
        for (found, selection) in found.into_iter().zip(selections) {
            if let Ok(found) = found {
                selection.set(Arc::new(found));
            }
        }
    }
    Ok(())
}

fn add(scan: &MessagesExec, waiting: &mut Vec<Waiting>) {
    let Some((table, question, selection)) = scan.question() else { return };
    let known = waiting.iter_mut().find(|other| Arc::ptr_eq(&other.table, &table));
    match known {
        Some(known) => {
            known.questions.push(question);
            known.selections.push(selection);
        }
        None => {
            let (questions, selections) = (vec![question], vec![selection]);
            waiting.push(Waiting { table, questions, selections, first: scan.clone() });
        }
    }
}
