//! Tables of stages, threads and patterns.

use maud::{Markup, html};
use quarrier_report::Colour;
use quarrier_report::chart::bar;
use quarrier_report::number::{count, counted, percent};
use quarrier_report::page::{Key, cells, cut, details, note, section, table};

use super::SourceRun;
use super::agents::{Budget, Lane, colour, lanes};

/// Maximum number of patterns listed.
const PATTERNS_MAX: usize = 100;
/// Maximum length of a pattern's label, in characters.
const LABEL_CHARS_MAX: usize = 160;

/// The time unit of a table: its length in seconds, name and number of decimals.
struct Unit {
    seconds: f64,
    name: &'static str,
    decimals: usize,
}

impl Unit {
    /// Seconds, or a smaller unit for short runs.
    fn of(longest_seconds: f64) -> Self {
        match longest_seconds {
            s if s > 0.0 && s < 1e-3 => Unit { seconds: 1e-6, name: "µs", decimals: 1 },
            s if s > 0.0 && s < 0.1 => Unit { seconds: 1e-3, name: "ms", decimals: 2 },
            _ => Unit { seconds: 1.0, name: "seconds", decimals: 3 },
        }
    }

    fn cell(&self, seconds: f64) -> String {
        format!("{:.*}", self.decimals, seconds / self.seconds)
    }
}

/// Busy and waiting time of each stage, all threads together.
pub(super) fn stages(source: &SourceRun<'_>) -> Markup {
    let stages = super::agents::stages(source.timeline).iter();
    let loads = stages.map(|&stage| {
        let load = source.timeline.load_alone(stage);
        (stage, load.busy.as_secs_f64(), load.waiting.as_secs_f64())
    });
    let longest = loads.clone().map(|(_, busy, waiting)| busy + waiting).fold(0.0, f64::max);
    let unit = Unit::of(longest);
    let busy_share = |busy: f64, both: f64| match both > 0.0 {
        true => percent(busy / both),
        false => "–".to_string(),
    };
    let rows = html! {
        @for (stage, busy, waiting) in loads {
            tr {
                td { (Key::Series(colour(stage))) (stage.name()) }
                (cells([unit.cell(busy), unit.cell(waiting), busy_share(busy, busy + waiting)]))
                td.fill {
                    (bar(&[(colour(stage).class(), busy / longest), ("idle", waiting / longest)]))
                }
            }
        }
    };
    let (busy, waiting) = (format!("#busy, {}", unit.name), format!("#waiting, {}", unit.name));
    let columns = ["stage", &busy, &waiting, "#busy share", "="];
    html! { h3 { "Busy and waiting" } (table("", &columns, &rows)) }
}

/// Busy time and bytes of each thread, folded away.
pub(super) fn threads(source: &SourceRun<'_>, budget: Budget) -> Markup {
    let lanes = lanes(source.timeline, budget);
    if lanes.is_empty() {
        return html! {};
    }
    let stages = super::agents::stages(source.timeline);
    let busy = |lane: &Lane<'_>| -> Vec<f64> {
        stages.iter().map(|&stage| lane.busy_seconds(stage)).collect()
    };
    let unit = Unit::of(lanes.iter().flat_map(busy).fold(0.0, f64::max));
    let rows = html! {
        @for lane in &lanes {
            tr {
                td { (lane.name) }
                (cells(busy(lane).into_iter().map(|seconds| unit.cell(seconds))))
                (cells([lane.bytes_read(), lane.bytes_worked()].map(count)))
            }
        }
    };
    let columns = stages.iter().map(|stage| format!("#{}, {}", stage.name(), unit.name));
    let columns: Vec<String> = columns.collect();
    let mut columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    columns.insert(0, "thread");
    columns.extend(["#bytes read", "#bytes processed"]);
    details("Each thread in numbers", false, &table("", &columns, &rows))
}

/// The patterns with the most findings, as bars.
pub(super) fn patterns(patterns: &[(String, u64)]) -> Markup {
    if patterns.is_empty() {
        return html! {};
    }
    let mut found: Vec<&(String, u64)> = patterns.iter().filter(|(_, count)| *count > 0).collect();
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let sum =
        |rows: &[&(String, u64)]| rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.1));
    let total = sum(&found);
    let most = found.first().map_or(0, |(_, count)| *count) as f64;
    let (shown, rest) = found.split_at(found.len().min(PATTERNS_MAX));
    let rows = html! {
        @for (label, findings) in shown.iter().copied() {
            tr {
                td.text { (cut(label, LABEL_CHARS_MAX)) }
                (cells([count(*findings), percent(*findings as f64 / total as f64)]))
                td.fill { (bar(&[(Colour::VIOLET.class(), *findings as f64 / most)])) }
            }
        }
    };
    let mut notes = Vec::new();
    if !rest.is_empty() {
        let more = counted(rest.len() as u64, "more pattern");
        notes.push(format!("And {more} with {}.", counted(sum(rest), "finding")));
    }
    match (patterns.len() - found.len()) as u64 {
        0 => {}
        1 => notes.push("1 pattern was not found.".to_string()),
        none => notes.push(format!("{} patterns were not found.", count(none))),
    }
    let content = html! {
        p.under {
            (counted(patterns.len() as u64, "pattern")) " · " (count(found.len() as u64))
            " found · " (counted(total, "finding"))
        }
        @if !found.is_empty() {
            (table("patterns", &["pattern", "#findings", "#share", "="], &rows))
        }
        @if !notes.is_empty() { (note(notes.join(" "))) }
    };
    section("patterns", "Patterns", &content)
}
