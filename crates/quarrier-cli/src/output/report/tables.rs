//! Numbers in rows: stages, threads, patterns.

use super::agents::{Budget, Lane, lanes};
use super::{SourceRun, put, text};

/// Patterns listed.
const PATTERNS_MAX: usize = 100;
/// Characters of a pattern's label that are shown.
const LABEL_CHARS_MAX: usize = 160;

/// Seconds in the unit of a table, the unit's name and the decimals that it deserves.
struct Unit {
    seconds: f64,
    name: &'static str,
    decimals: usize,
}

impl Unit {
    /// Seconds, but for runs so short that nothing would be left of them.
    fn of(longest_seconds: f64) -> Self {
        match longest_seconds {
            s if s > 0.0 && s < 1e-3 => Unit { seconds: 1e-6, name: "µs", decimals: 1 },
            s if s > 0.0 && s < 0.1 => Unit { seconds: 1e-3, name: "ms", decimals: 2 },
            _ => Unit { seconds: 1.0, name: "seconds", decimals: 3 },
        }
    }

    fn cell(&self, out: &mut String, seconds: f64) {
        put!(out, "<td class=\"n\">{:.*}</td>", self.decimals, seconds / self.seconds);
    }
}

/// Busy and waiting time of each stage, all threads together.
pub(super) fn stages(out: &mut String, source: &SourceRun<'_>) {
    let stages = super::agents::stages(source.timeline).iter();
    let loads = stages.map(|&stage| {
        let load = source.timeline.load_alone(stage);
        (stage.name(), load.busy.as_secs_f64(), load.waiting.as_secs_f64())
    });
    let longest = loads.clone().map(|(_, busy, waiting)| busy + waiting).fold(0.0, f64::max);
    let unit = Unit::of(longest);
    put!(
        out,
        "<h3>Busy and waiting</h3>\n<div class=\"wide\"><table class=\"stages\">\n\
         <thead><tr><th>stage</th><th class=\"n\">busy, {0}</th>\
         <th class=\"n\">waiting, {0}</th><th class=\"n\">busy share</th>\
         <th class=\"fill\"></th></tr></thead><tbody>\n",
        unit.name
    );
    for (name, busy, waiting) in loads {
        let both = busy + waiting;
        put!(out, "<tr><td><i class=\"key {name}\"></i>{name}</td>");
        unit.cell(out, busy);
        unit.cell(out, waiting);
        let share = if both > 0.0 { text::percent(busy / both) } else { "–".to_string() };
        put!(out, "<td class=\"n\">{share}</td><td class=\"fill\"><div class=\"bar\">");
        bar(out, name, busy, longest);
        bar(out, "idle", waiting, longest);
        put!(out, "</div></td></tr>\n");
    }
    put!(out, "</tbody></table></div>\n");
}

/// A piece of a bar whose whole length stands for `most`.
fn bar(out: &mut String, class: &str, value: f64, most: f64) {
    if value > 0.0 {
        let width = 100.0 * value / most;
        put!(out, "<i class=\"{class}\" style=\"width:{width:.2}%\"></i>");
    }
}

/// Busy time and bytes of each thread, folded away.
pub(super) fn threads(out: &mut String, source: &SourceRun<'_>, budget: Budget) {
    let lanes = lanes(source.timeline, budget);
    if lanes.is_empty() {
        return;
    }
    let stages = super::agents::stages(source.timeline);
    let busy = |lane: &Lane<'_>| -> Vec<f64> {
        stages.iter().map(|&stage| lane.busy_seconds(stage)).collect()
    };
    let unit = Unit::of(lanes.iter().flat_map(busy).fold(0.0, f64::max));
    put!(
        out,
        "<details class=\"threads\"><summary>Each thread in numbers</summary>\n\
         <div class=\"wide\"><table><thead><tr><th>thread</th>"
    );
    for stage in stages {
        put!(out, "<th class=\"n\">{}, {}</th>", stage.name(), unit.name);
    }
    put!(out, "<th class=\"n\">bytes read</th><th class=\"n\">bytes worked on</th></tr></thead>");
    put!(out, "<tbody>\n");
    for lane in &lanes {
        put!(out, "<tr><td>{}</td>", text::escape(&lane.name));
        for seconds in busy(lane) {
            unit.cell(out, seconds);
        }
        for bytes in [lane.bytes_read(), lane.bytes_worked()] {
            put!(out, "<td class=\"n\">{}</td>", text::count(bytes));
        }
        put!(out, "</tr>\n");
    }
    put!(out, "</tbody></table></div></details>\n");
}

/// The patterns with the most findings, as bars.
pub(super) fn patterns(out: &mut String, patterns: &[(String, u64)]) {
    if patterns.is_empty() {
        return;
    }
    let mut found: Vec<&(String, u64)> = patterns.iter().filter(|(_, count)| *count > 0).collect();
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let sum =
        |rows: &[&(String, u64)]| rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.1));
    let total = sum(&found);
    let most = found.first().map_or(0, |(_, count)| *count);
    put!(
        out,
        "<section class=\"card\"><h2>Patterns</h2>\n<p class=\"under\">{} · {} found · {}</p>\n",
        text::counted(patterns.len() as u64, "pattern"),
        text::count(found.len() as u64),
        text::counted(total, "finding"),
    );
    if !found.is_empty() {
        put!(
            out,
            "<div class=\"wide\"><table class=\"patterns\"><thead><tr><th>pattern</th>\
             <th class=\"n\">findings</th><th class=\"n\">share</th><th class=\"fill\"></th>\
             </tr></thead><tbody>\n"
        );
    }
    let (shown, rest) = found.split_at(found.len().min(PATTERNS_MAX));
    for (label, count) in shown.iter().copied() {
        put!(
            out,
            "<tr><td class=\"text\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"fill\"><div class=\"bar\">",
            text::escape_cut(label, LABEL_CHARS_MAX),
            text::count(*count),
            text::percent(*count as f64 / total as f64),
        );
        bar(out, "hits", *count as f64, most as f64);
        put!(out, "</div></td></tr>\n");
    }
    if !found.is_empty() {
        put!(out, "</tbody></table></div>\n");
    }
    let mut notes = Vec::new();
    if !rest.is_empty() {
        let (more, findings) = (rest.len() as u64, sum(rest));
        notes.push(format!(
            "And {} with {}.",
            text::counted(more, "more pattern"),
            text::counted(findings, "finding")
        ));
    }
    match (patterns.len() - found.len()) as u64 {
        0 => {}
        1 => notes.push("1 pattern was not found.".to_string()),
        none => notes.push(format!("{} patterns were not found.", text::count(none))),
    }
    if !notes.is_empty() {
        put!(out, "<p class=\"none\">{}</p>\n", notes.join(" "));
    }
    put!(out, "</section>\n");
}
