//! `quarrier explain`: loads the files as a table, runs the conditions once, and describes the run.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier::account::{StageSeconds, Stages, Stats, rate};
use quarrier::filter::Conditions;
use quarrier::tables::{DetectedSource, Loaded};
use quarrier::{Opener, Sources, Tables};
use quarrier_filter::{Explanation, PlanStep, Query, QueryPlan, Scan, Select};
use quarrier_messages::{ColumnReader, Format as Messages};
use quarrier_report::visible;
use serde_json::{Value, json};

use super::filter::conditions;
use super::query::hand_over;
use super::search::summary::write_stats;
use super::{print, print_json};
use crate::args::Explain;
use crate::output::Format;
use crate::{Outcome, complain, host, interrupt};

/// Runs the command.
pub(crate) fn run(explain: &Explain, parquet: Option<&dyn ColumnReader>) -> Outcome {
    let stop = interrupt::watch();
    let opener = Opener::new(explain.open.clone(), host::environment(), &stop);
    let tables = Tables::new().workers(explain.workers).parquet(parquet);
    let sources = Sources::of(&explain.files);
    let detected = sources.open_messages(&opener).map(|opened| tables.detect(opened?, &stop));
    let written = match detected.collect::<quarrier::Result<Vec<DetectedSource<'_>>>>() {
        Ok(detected) if parquet.is_none() && detected.iter().any(is_parquet) => {
            return hand_over("explain over Parquet", 1);
        }
        detected => conditions(&explain.asked, &stop)
            .and_then(|conditions| Ok((conditions, tables.load(detected?, &stop)?)))
            .map_err(|error| error.to_string())
            .and_then(|(conditions, loaded)| explained(explain, &conditions, &loaded, &stop)),
    };
    if stop.load(Ordering::Relaxed) {
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

fn is_parquet(detected: &DetectedSource<'_>) -> bool {
    matches!(detected.format(), Messages::Parquet)
}

fn explained(
    explain: &Explain,
    conditions: &Conditions,
    loaded: &Loaded,
    stop: &AtomicBool,
) -> Result<(String, Stats), String> {
    let started = Instant::now();
    if !explain.quiet {
        report_rejects(loaded);
    }
    let exprs = conditions.bound(loaded.table.schema()).map_err(|error| error.to_string())?;
    let queries: Vec<Query> = exprs.into_iter().map(counting).collect();
    let (answers, explanation) =
        Scan::new(&loaded.table, &queries).workers(loaded.workers).cancel(stop).run_explained();
    let mut counts = Vec::new();
    for answer in answers {
        counts.push(answer.map_err(|error| error.to_string())?.count);
    }
    let strings: Vec<&str> = conditions.strings().collect();
    let text = match explain.format {
        Format::Json => as_json(&strings, &counts, &explanation),
        _ => as_text(&strings, &counts, &explanation),
    };
    Ok((text, account(loaded, &counts, loaded.elapsed + started.elapsed())))
}

/// The account: loading counts as reading, evaluating as work, and no stage waits for a sink.
fn account(loaded: &Loaded, counts: &[u64], elapsed: Duration) -> Stats {
    let of = |busy: Duration| StageSeconds {
        busy_seconds: busy.as_secs_f64(),
        waiting_seconds: elapsed.saturating_sub(busy).as_secs_f64(),
    };
    let worked = elapsed.saturating_sub(loaded.elapsed);
    Stats {
        seconds: elapsed.as_secs_f64(),
        bytes_per_second: rate(loaded.bytes, elapsed.as_secs_f64()),
        findings: counts.iter().sum(),
        patterns: counts.len(),
        engine: "scan".to_string(),
        stages: Stages { read: of(loaded.elapsed), work: of(worked), ..Stages::default() },
        limited_by: if loaded.elapsed > worked { "read" } else { "work" },
        ..loaded.stats("explain")
    }
}

/// Reports rejected messages, if any.
fn report_rejects(loaded: &Loaded) {
    if let Some(first) = loaded.rejects.first() {
        let messages = if loaded.rejected == 1 { "message was" } else { "messages were" };
        complain(&format!(
            "{}: {} {messages} left out, the first at line {}: {}",
            first.source, loaded.rejected, first.line, first.fault
        ));
    }
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

fn as_text(strings: &[&str], counts: &[u64], explanation: &Explanation) -> String {
    let mut text = format!(
        "{} messages in {} blocks of up to 4,096; {}, {} workers; {} different tests\n",
        explanation.rows,
        explanation.blocks,
        explanation.isa.name(),
        explanation.workers,
        explanation.tests
    );
    for ((condition, count), plan) in strings.iter().zip(counts).zip(&explanation.queries) {
        let (condition, plan) = (visible(condition), harmless(plan));
        // Writing to a string does not fail.
        let _ = write!(text, "\n{condition}\n  {count} messages\n{plan}");
    }
    if let Some(work) = explanation.work {
        let _ = write!(text, "\nall together: {work}\n");
    }
    text
}

/// The plan with the text of its steps escaped and on one line each, since it comes from the condition.
fn harmless(plan: &QueryPlan) -> QueryPlan {
    let mut plan = plan.clone();
    for step in plan.steps.iter_mut().chain(&mut plan.faults) {
        step.text = visible(&step.text).into_owned();
    }
    plan
}

fn as_json(strings: &[&str], counts: &[u64], explanation: &Explanation) -> String {
    let mut lines = String::new();
    for ((condition, count), plan) in strings.iter().zip(counts).zip(&explanation.queries) {
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
        "conditions": strings.len(),
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
