//! `quarrier explain`: the files as a table, the conditions asked of it once, and how that went.

use std::fmt::Write;
use std::time::{Duration, Instant};

use quarrier::account::{StageSeconds, Stages, Stats, rate};
use quarrier::{OpenOptions, Opened, Opener, Sources};
use quarrier_core::source::Source;
use quarrier_filter::{Explanation, PlanStep, Query, QueryPlan, Scan, Select};
use quarrier_messages::{ColumnReader, Format as Messages, Load, Table};
use quarrier_report::visible;
use serde_json::{Value, json};

use super::filter::conditions::Conditions;
use super::query::hand_over;
use super::search::summary::write_stats;
use super::{print, print_json};
use crate::args::Explain;
use crate::output::Format;
use crate::{Outcome, complain, host, interrupt};

/// Runs the command.
pub(crate) fn run(explain: &Explain, parquet: Option<&dyn ColumnReader>) -> Outcome {
    let stop = interrupt::watch();
    let opener = Opener::new(OpenOptions::default(), host::environment(), &stop);
    let written = match Told::all(explain, &opener) {
        Ok(told) if parquet.is_none() && told.iter().any(Told::is_parquet) => {
            return hand_over("explain over Parquet", 1);
        }
        told => told.and_then(|told| explained(explain, &told, parquet, &stop)),
    };
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        complain("interrupted; nothing was explained");
        return Outcome::Interrupted;
    }
    match written {
        Ok((text, stats)) => {
            let outcome = match explain.format {
                Format::Json => print_json(&text),
                _ => print(&text),
            };
            let written = explain.stats.as_ref().map(|path| write_stats(&stats, path));
            match written {
                Some(Err(message)) => {
                    complain(&message);
                    Outcome::Failed
                }
                _ => outcome,
            }
        }
        Err(message) => {
            complain(&message);
            Outcome::Failed
        }
    }
}

fn explained(
    explain: &Explain,
    told: &[Told],
    parquet: Option<&dyn ColumnReader>,
    stop: &std::sync::atomic::AtomicBool,
) -> Result<(String, Stats), String> {
    let started = Instant::now();
    let conditions = Conditions::read(&explain.asked)?;
    let workers = explain.workers.unwrap_or_else(quarrier_core::parallel::available_workers);
    let (table, bytes) = load(told, parquet, workers, explain.quiet)?;
    let loaded = started.elapsed();
    let mut schema = table.schema().clone();
    let bound = conditions.bind(&mut schema)?;
    if let Some((_, message)) = bound.unknown.into_iter().next() {
        return Err(message);
    }
    let queries: Vec<Query> = bound.exprs.into_iter().map(counting).collect();
    let (answers, explanation) =
        Scan::new(&table, &queries).workers(workers).cancel(stop).run_explained();
    let mut counts = Vec::new();
    for answer in answers {
        counts.push(answer.map_err(|error| error.to_string())?.count);
    }
    let texts: Vec<&str> = conditions.texts.iter().map(|written| &*written.text).collect();
    let text = match explain.format {
        Format::Json => as_json(&texts, &counts, &explanation),
        _ => as_text(&texts, &counts, &explanation),
    };
    let elapsed = started.elapsed();
    Ok((text, account(bytes, &counts, workers, loaded, elapsed)))
}

/// The account: loading is reading, evaluating is work, and nothing waits for a sink.
fn account(
    bytes: u64,
    counts: &[u64],
    workers: usize,
    loaded: Duration,
    elapsed: Duration,
) -> Stats {
    let of = |busy: Duration| StageSeconds {
        busy_seconds: busy.as_secs_f64(),
        waiting_seconds: elapsed.saturating_sub(busy).as_secs_f64(),
    };
    let worked = elapsed.saturating_sub(loaded);
    Stats {
        command: "explain",
        bytes,
        seconds: elapsed.as_secs_f64(),
        bytes_per_second: rate(bytes, elapsed.as_secs_f64()),
        findings: counts.iter().sum(),
        patterns: counts.len(),
        workers,
        engine: "scan".to_string(),
        device: "cpu".to_string(),
        stages: Stages { read: of(loaded), work: of(worked), ..Stages::default() },
        limited_by: if loaded > worked { "read" } else { "work" },
        ..Stats::default()
    }
}

/// A file that is open, and how its messages are written.
struct Told {
    source: Box<dyn Source>,
    format: Messages,
}

impl Told {
    /// All files that are asked for.
    fn all(explain: &Explain, opener: &Opener) -> Result<Vec<Told>, String> {
        let sources = Sources::of(&explain.files);
        sources.open(opener).map(|opened| Told::open(opened.map_err(|e| e.to_string())?)).collect()
    }

    fn open(opened: Opened) -> Result<Told, String> {
        let source = opened.at_offsets().map_err(|error| error.to_string())?;
        let format = Messages::of(&*source).map_err(|error| error.to_string())?;
        Ok(Told { source, format })
    }

    fn is_parquet(&self) -> bool {
        matches!(self.format, Messages::Parquet)
    }
}

/// All files as one table, and how many bytes they have.
fn load(
    told: &[Told],
    parquet: Option<&dyn ColumnReader>,
    workers: usize,
    is_quiet: bool,
) -> Result<(Table, u64), String> {
    let mut bytes = 0;
    let mut tables = Vec::new();
    for Told { source, format } in told {
        let load = Load::new(format.clone()).workers(workers);
        let load = parquet.into_iter().fold(load, Load::parquet);
        let loaded = load.run(&[&**source]).map_err(|error| error.to_string())?;
        bytes += source.length();
        if loaded.rejected > 0 && !is_quiet {
            complain(&format!("{}: {} messages were left out", source.name(), loaded.rejected));
        }
        tables.push(loaded.table);
    }
    Ok((Table::concat(&tables, workers), bytes))
}

fn counting(condition: quarrier_filter::Expr) -> Query {
    Query {
        select: Select::Count { name: "count".into() },
        condition: Some(condition),
        order: Vec::new(),
        limit: None,
        offset: 0,
    }
}

fn as_text(texts: &[&str], counts: &[u64], explanation: &Explanation) -> String {
    let mut text = format!(
        "{} messages in {} blocks of up to 4,096; {}, {} workers; {} different tests\n",
        explanation.rows,
        explanation.blocks,
        explanation.isa.name(),
        explanation.workers,
        explanation.tests
    );
    for ((condition, count), plan) in texts.iter().zip(counts).zip(&explanation.queries) {
        let (condition, plan) = (visible(condition), harmless(plan));
        // A String takes whatever is written to it.
        let _ = write!(text, "\n{condition}\n  {count} messages\n{plan}");
    }
    if let Some(work) = explanation.work {
        let _ = write!(text, "\nall together: {work}\n");
    }
    text
}

/// The plan with the words of its steps, which are the condition's, on one line each.
fn harmless(plan: &QueryPlan) -> QueryPlan {
    let mut plan = plan.clone();
    for step in plan.steps.iter_mut().chain(&mut plan.faults) {
        step.text = visible(&step.text).into_owned();
    }
    plan
}

fn as_json(texts: &[&str], counts: &[u64], explanation: &Explanation) -> String {
    let mut lines = String::new();
    for ((condition, count), plan) in texts.iter().zip(counts).zip(&explanation.queries) {
        let line = json!({
            "condition": condition,
            "count": count,
            "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
            "faults": plan.faults.iter().map(step).collect::<Vec<_>>(),
            "blocks_tested": plan.blocks_tested,
            "blocks_skipped": plan.blocks_skipped,
        });
        let _ = writeln!(lines, "{line}");
    }
    let work = explanation.work.unwrap_or_default();
    let all = json!({
        "conditions": texts.len(),
        "rows": explanation.rows,
        "blocks": explanation.blocks,
        "workers": explanation.workers,
        "instruction_set": explanation.isa.name(),
        "tests": explanation.tests,
        "blocks_tested": work.blocks_tested,
        "blocks_skipped": work.blocks_skipped,
        "bytes_touched": work.bytes_touched,
        "bytes_compared": work.bytes_compared,
    });
    let _ = writeln!(lines, "{all}");
    lines
}

fn step(step: &PlanStep) -> Value {
    json!({
        "depth": step.depth,
        "text": step.text,
        "id": step.id,
        "share": step.share,
        "cycles_for_64_rows": step.cost,
        "uses": step.uses,
        "kept": step.kept,
        "by_row": step.by_row,
    })
}
