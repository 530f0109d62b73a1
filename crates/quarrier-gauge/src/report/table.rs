//! A report for a terminal: a line for each sweep, with a bar and a sparkline.
//!
//! Lines consist of [`Span`]s, so that the printing code chooses the colours. A report may come from
//! elsewhere: its text is escaped here, before its width is measured.

use quarrier_report::number::{self, exact_bytes};
use quarrier_report::{padded, visible, width};

use super::figure::{Figure, Group, Sweep, groups};
use super::matrix::Matrix;
use super::{Report, load, over_time, quantity, words};
use crate::compare::{Change, Comparison, Verdict};
use crate::reading::{Reading, Unit};

/// The role of a part of a line, which determines its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Plain text.
    Plain,
    /// The name of an area.
    Title,
    /// Less important text.
    Soft,
    /// A measured value.
    Value,
    /// A bar or a sparkline.
    Bar,
    /// Better than before.
    Good,
    /// Disturbed, or worse than before.
    Bad,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The role of the part.
    pub role: Role,
    /// The text, escaped for a terminal.
    pub text: String,
}

/// A line.
pub type Line = Vec<Span>;

/// Maximum number of characters in a sparkline and in a bar.
const SPARKS: usize = 16;
const BAR: usize = 24;
/// Width of the columns before them, in characters.
const HOW: usize = 44;
const VALUE: usize = 13;
/// Values whose ratio exceeds this are drawn on a logarithmic scale.
const RATIO_OF_LINEAR: f64 = 40.0;

/// Shares of waiting below this are not reported.
const PRESSURE_LEAST: f64 = 0.01;

/// Maximum number of changes printed for one verdict.
const CHANGES_MOST: usize = 30;

/// Formats the report in lines of about `columns` characters, at least 60.
pub fn table(report: &Report, columns: usize) -> Vec<Line> {
    let groups = groups(&report.readings);
    let mut lines = vec![machine(report)];
    if !report.machine.limits.is_none() {
        let text = format!("limited by: {}", report.machine.limits.describe());
        lines.push(vec![span(Role::Bad, text)]);
    }
    let mut rows: Vec<(&Group<'_>, Row<'_>)> = Vec::new();
    for group in &groups {
        rows.extend(self::rows(group, &groups).into_iter().map(|row| (group, row)));
    }
    let sizes = Sizes::of(&rows, columns.max(60));
    for (place, (group, row)) in rows.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|place| rows.get(place)).map(|(group, _)| group);
        if before.is_none_or(|before| before.area != group.area) {
            lines.push(Vec::new());
            lines.push(vec![span(Role::Title, group.area.name().to_string())]);
        }
        let is_new = before.is_none_or(|before| !std::ptr::eq(*before, *group));
        // Bars are compared with readings of the same unit in the same area.
        let peers =
            rows.iter().filter(|(other, _)| other.area == group.area && other.unit == group.unit);
        let most = peers.map(|(_, row)| row.shown.value).fold(0.0, f64::max);
        lines.push(row.line(group, is_new, most, sizes));
    }
    lines.push(Vec::new());
    lines.push(trust(report));
    lines.extend(held_back(report).map(|text| vec![span(Role::Bad, text)]));
    lines.extend(waiting(report).map(|text| vec![span(Role::Soft, text)]));
    lines
}

fn machine(report: &Report) -> Line {
    let machine = &report.machine;
    let mut text = format!(
        " · {} · {}",
        number::counted(machine.cpus.into(), "CPU"),
        exact_bytes(machine.memory_bytes as f64)
    );
    if machine.nodes > 0 {
        text.push_str(&format!(" · {}", number::counted(machine.nodes.into(), "NUMA node")));
    }
    if let Some(host) = &machine.virtual_machine {
        text.push_str(&format!(" · virtual machine ({host})"));
    }
    vec![span(Role::Title, machine.cpu_model.clone()), span(Role::Soft, text)]
}

fn trust(report: &Report) -> Line {
    let all = number::counted(report.readings.len() as u64, "reading");
    let disturbed = report.readings.iter().filter(|reading| reading.disturbed).count();
    let took = quantity::value(report.seconds, Unit::Seconds);
    match disturbed {
        0 => vec![span(Role::Plain, format!("{all} in {took}, none disturbed"))],
        some => vec![
            span(Role::Plain, format!("{all} in {took}, ")),
            span(Role::Bad, format!("{} disturbed (!)", number::count(some as u64))),
            span(Role::Plain, ": others used the machine, or the runs disagree".to_string()),
        ],
    }
}

/// How often a CPU quota throttled the gauge, if it did.
fn held_back(report: &Report) -> Option<String> {
    let held = &report.conditions;
    (held.throttled_periods > 0).then(|| {
        let periods = number::counted(held.throttled_periods, "period");
        let seconds = quantity::value(held.throttled_seconds, Unit::Seconds);
        format!("throttled in {periods} by a CPU quota: threads waited {seconds} in all")
    })
}

/// How long threads of the machine waited, if they did.
fn waiting(report: &Report) -> Option<String> {
    let pressure = report.conditions.pressure?;
    let all = [("CPUs", pressure.cpu), ("memory", pressure.memory), ("disks", pressure.io)];
    let some = all.into_iter().filter(|(_, share)| *share >= PRESSURE_LEAST);
    let some: Vec<String> =
        some.map(|(what, share)| format!("{what} {}", number::percent(share))).collect();
    (!some.is_empty())
        .then(|| format!("pressure, time that threads waited for: {}", some.join(", ")))
}

/// A line's content.
struct Row<'r> {
    how: String,
    /// The values in the order of the axis.
    sweep: Vec<f64>,
    /// The reading whose value is printed.
    shown: &'r Reading,
    /// Where that reading is on the axis, or another remark.
    remark: String,
    disturbed: usize,
}

/// Column widths that fit all rows.
#[derive(Clone, Copy)]
struct Sizes {
    name: usize,
    how: usize,
    sparks: usize,
    bar: usize,
}

impl Sizes {
    fn of(rows: &[(&Group<'_>, Row<'_>)], columns: usize) -> Sizes {
        let most =
            |of: &dyn Fn(&(&Group<'_>, Row<'_>)) -> usize| rows.iter().map(of).max().unwrap_or(0);
        let name = most(&|(group, _)| width_of(group.measurement)).min(22);
        let how = most(&|(_, row)| width_of(&row.how)).min(HOW.max(columns * 2 / 5));
        let sparks = most(&|(_, row)| row.sweep.len()).min(SPARKS);
        let left = columns.saturating_sub(2 + name + 2 + how + 2 + sparks + 2 + VALUE + 11);
        Sizes { name, how, sparks, bar: left.min(BAR) }
    }
}

fn rows<'r>(group: &Group<'r>, groups: &[Group<'r>]) -> Vec<Row<'r>> {
    let curves = load::curves(group, groups);
    if !curves.is_empty() {
        return curves.iter().flatten().map(beside).collect();
    }
    if load::is_load(group) {
        return Vec::new();
    }
    if let Some(matrix) = Matrix::of(group) {
        return matrix.rows.iter().filter_map(|row| of_matrix(&matrix, row)).collect();
    }
    if over_time::is_over_time(group) {
        return group.readings.iter().map(|reading| long_run(reading)).collect();
    }
    let figures = group.figures();
    if figures.is_empty() {
        return group.readings.iter().map(|reading| single(reading)).collect();
    }
    let sweeps =
        figures.iter().flat_map(|figure| figure.lines.iter().map(move |line| (figure, line)));
    sweeps.filter_map(|(figure, sweep)| swept(group, figure, sweep)).collect()
}

/// A point of a curve of latency under load.
fn beside<'r>(point: &load::Point<'r>) -> Row<'r> {
    let load = quantity::value(point.load.value, point.load.unit);
    let disturbed = point.latency.disturbed || point.load.disturbed;
    Row {
        how: format!("others read {load}"),
        disturbed: usize::from(disturbed),
        ..single(point.latency)
    }
}

/// A row of a matrix: its worst value.
fn of_matrix<'r>(
    matrix: &Matrix<'r>,
    (number, readings): &(u64, Vec<Option<&'r Reading>>),
) -> Option<Row<'r>> {
    let all = || {
        let with_column = matrix.columns.iter().zip(readings);
        with_column.filter_map(|(column, reading)| Some((column, (*reading)?)))
    };
    let (column, shown) = all().reduce(|a, b| {
        let is_worse = match a.1.unit.less_is_better() {
            true => b.1.value > a.1.value,
            false => b.1.value < a.1.value,
        };
        if is_worse { b } else { a }
    })?;
    let count = number::counted(all().count() as u64, matrix.kind);
    Some(Row {
        how: format!("{}, {count}", matrix.row_name(*number)),
        sweep: all().map(|(_, reading)| reading.value).collect(),
        shown,
        remark: format!("at {} {column}", matrix.kind),
        disturbed: all().filter(|(_, reading)| reading.disturbed).count(),
    })
}

fn single(reading: &Reading) -> Row<'_> {
    Row {
        how: words::parameters(reading),
        sweep: Vec::new(),
        shown: reading,
        remark: String::new(),
        disturbed: usize::from(reading.disturbed),
    }
}

/// A long run: its windows.
fn long_run(reading: &Reading) -> Row<'_> {
    let Some(timeline) = &reading.timeline else { return single(reading) };
    Row {
        sweep: timeline.rates.clone(),
        remark: over_time::remark(reading, timeline),
        ..single(reading)
    }
}

/// A sweep: the best rate, or the time at the end of the axis.
fn swept<'r>(group: &Group<'r>, figure: &Figure<'r>, sweep: &Sweep<'r>) -> Option<Row<'r>> {
    let order = |a: &&(f64, &Reading), b: &&(f64, &Reading)| a.1.value.total_cmp(&b.1.value);
    let shown = match group.unit.less_is_better() {
        true => sweep.points.last()?,
        false => sweep.points.iter().max_by(order)?,
    };
    let place = |at: f64| match words::is_size(figure.x) {
        true => exact_bytes(at),
        false => number::number(at),
    };
    let (first, last) = (sweep.points.first()?, sweep.points.last()?);
    let mut axis = match first.0 == last.0 {
        true => place(first.0),
        false => format!("{} – {}", place(first.0), place(last.0)),
    };
    if !words::is_size(figure.x) {
        axis = format!("{axis} {}", words::axis(figure.x));
    }
    let parts = [figure.panel.as_str(), sweep.label.as_str(), axis.as_str()];
    Some(Row {
        how: parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(", "),
        sweep: sweep.points.iter().map(|(_, reading)| reading.value).collect(),
        shown: shown.1,
        remark: format!("at {}", place(shown.0)),
        disturbed: sweep.points.iter().filter(|(_, reading)| reading.disturbed).count(),
    })
}

impl Row<'_> {
    fn line(&self, group: &Group<'_>, is_new: bool, most: f64, sizes: Sizes) -> Line {
        let name = if is_new { group.measurement } else { "" };
        let mut line = vec![
            span(Role::Plain, format!("  {}  ", fit(name, sizes.name))),
            span(Role::Soft, format!("{}  ", fit(&self.how, sizes.how))),
        ];
        if sizes.sparks > 0 {
            line.push(span(Role::Bar, format!("{}  ", fit(&sparks(&self.sweep), sizes.sparks))));
        }
        let value = quantity::value(self.shown.value, self.shown.unit);
        line.push(span(Role::Value, format!("{value:>VALUE$}")));
        let spread = number::percent(self.shown.stddev / self.shown.value);
        line.push(span(Role::Soft, format!(" ±{spread:>7}")));
        if self.disturbed > 0 {
            line.push(span(Role::Bad, " !".to_string()));
        } else {
            line.push(span(Role::Plain, "  ".to_string()));
        }
        // The remark of a long run takes the place of the bar.
        if !group.unit.less_is_better() && most > 0.0 && self.shown.timeline.is_none() {
            let bar = bar(self.shown.value / most, sizes.bar);
            line.push(span(Role::Bar, format!(" {bar}")));
        }
        if !self.remark.is_empty() {
            line.push(span(Role::Soft, format!(" {}", self.remark)));
        }
        line
    }
}

/// Formats the comparison in lines: the changes, then the number of unchanged readings.
pub fn changes(comparison: &Comparison<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    if !comparison.is_same_machine {
        lines.push(vec![span(Role::Bad, "the reports are of different machines".to_string())]);
    }
    if let Some((before, now)) = &comparison.limits {
        let text = format!("other limits: {before} before, {now} now");
        lines.push(vec![span(Role::Bad, visible(&text).into_owned())]);
    }
    if comparison.changes.is_empty() {
        let text = "the reports have no reading in common";
        lines.push(vec![span(Role::Bad, text.to_string())]);
    }
    let with_verdict =
        |verdict: Verdict| comparison.changes.iter().filter(move |c| c.verdict == verdict);
    let loud = || {
        with_verdict(Verdict::Slower)
            .chain(with_verdict(Verdict::Faster))
            .chain(with_verdict(Verdict::TooNoisy))
    };
    let most = |of: fn(&Change<'_>) -> usize| loud().map(of).max().unwrap_or(0);
    let name = most(|change| width_of(&change.after.measurement)).min(22);
    let how = most(|change| width_of(&words::parameters(change.after))).min(HOW + 20);
    for verdict in [Verdict::Slower, Verdict::Faster, Verdict::TooNoisy] {
        lines.extend(
            with_verdict(verdict).take(CHANGES_MOST).map(|change| changed(change, name, how)),
        );
        let more = with_verdict(verdict).skip(CHANGES_MOST).count();
        if more > 0 {
            let more = number::count(more as u64);
            lines.push(vec![span(Role::Soft, format!("  … and {more} more {}", verdict.name()))]);
        }
    }
    let mut counts: Vec<String> = Verdict::ALL
        .into_iter()
        .map(|verdict| {
            format!("{} {}", number::count(comparison.count(verdict) as u64), verdict.name())
        })
        .collect();
    for (missing, when) in [(&comparison.only_before, "before"), (&comparison.only_after, "now")] {
        if !missing.is_empty() {
            counts.push(format!("{} only {when}", number::count(missing.len() as u64)));
        }
    }
    lines.push(vec![span(Role::Plain, counts.join(", "))]);
    lines
}

fn changed(change: &Change<'_>, name: usize, how: usize) -> Line {
    let role = match change.verdict {
        Verdict::Faster => Role::Good,
        Verdict::Slower => Role::Bad,
        Verdict::Equal | Verdict::TooNoisy => Role::Soft,
    };
    let (before, after) = (change.before, change.after);
    let (old, new) =
        (quantity::value(before.value, before.unit), quantity::value(after.value, after.unit));
    let (low, high) = change.interval;
    vec![
        span(role, format!("  {:<9}  ", change.verdict.name())),
        span(Role::Plain, format!("{:<7}  {}  ", after.area.name(), fit(&after.measurement, name))),
        span(Role::Soft, format!("{}  ", fit(&words::parameters(after), how))),
        span(Role::Value, format!("{old:>VALUE$} → {new:<VALUE$}  × {:.2}", change.ratio)),
        span(Role::Soft, format!("  ({low:.2} – {high:.2}, p {:.3})", change.p)),
        span(Role::Soft, change.reason.map(|reason| format!("  {reason}")).unwrap_or_default()),
    ]
}

fn span(role: Role, text: String) -> Span {
    Span { role, text: visible(&text).into_owned() }
}

/// The width of `text` in cells, after escaping.
fn width_of(text: &str) -> usize {
    width(&visible(text))
}

/// `text`, escaped, in exactly `cells` cells.
fn fit(text: &str, cells: usize) -> String {
    let text = visible(text);
    if width(&text) <= cells {
        return padded(&text, cells);
    }
    let ends = text.char_indices().map(|(at, _)| &text[..at]);
    let kept = ends.take_while(|kept| width(kept) < cells).last().unwrap_or_default();
    padded(&format!("{kept}…"), cells)
}

/// Values as heights; if there are too many, the greatest of neighbours.
fn sparks(values: &[f64]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let group = values.len().div_ceil(SPARKS).max(1);
    let values: Vec<f64> =
        values.chunks(group).map(|few| few.iter().copied().fold(0.0, f64::max)).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().filter(|value| *value > 0.0).fold(most, f64::min);
    let share = |value: f64| match least > 0.0 && most / least > RATIO_OF_LINEAR {
        true => (value / least).ln() / (most / least).ln(),
        false => value / most,
    };
    let height = |value: f64| ((share(value) * 7.0).round().clamp(0.0, 7.0)) as usize;
    values.into_iter().filter_map(|value| HEIGHTS.get(height(value))).collect()
}

/// A bar over `share` of `width` characters, in eighths.
fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let drawn = format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8]);
    fit(&drawn, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparks_and_bars_are_as_high_as_their_values() {
        assert_eq!(sparks(&[1.0, 4.0, 8.0]), "▂▅█");
        assert_eq!(sparks(&[1.0, 1000.0]), "▁█");
        assert_eq!(sparks(&[f64::NAN, 0.0]), "▁▁");
        assert_eq!(sparks(&[1.0; 100]).chars().count(), 15);
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(2.0, 2), "██");
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日… ");
        assert_eq!(fit("e\u{301}\x1b", 6), "e\u{301}\\x1b ");
    }
}
