//! The change of each reading since an earlier report.

use maud::{Markup, html};
use quarrier_report::chart::interval;
use quarrier_report::number::{count, counted, number};
use quarrier_report::page::{cells, details, note, section as card, table as wide};

use super::{EarlierReport, large};
use crate::compare::{Change, EQUAL_WITHIN, Verdict};
use crate::report::{Report, day, quantity, words};

/// Larger ratios are drawn at the end of the scale.
const RATIO_MOST: f64 = 2.0;

/// Number of rows shown at once; the rest is folded away.
const ROWS_MAX: usize = 20;

/// Renders the section.
pub(super) fn section(report: &Report, against: &EarlierReport<'_>) -> Markup {
    let EarlierReport { name, report: earlier, comparison } = against;
    let counts = Verdict::ALL
        .map(|verdict| (verdict.name(), count(comparison.count(verdict) as u64), String::new()));
    let missing = [(comparison.only_before.len(), "then"), (comparison.only_after.len(), "now")];
    let content = html! {
        p.under {
            (day::utc(earlier.when)) " then, " (day::utc(report.when)) " now."
            @if !comparison.is_same_machine {
                " " b.bad { "Another machine:" }
                " " (earlier.machine.cpu_model) " on " (earlier.machine.name) "."
            }
            @if let Some((then, now)) = &comparison.limits {
                " " b.bad { "Other limits:" } " " (then) " then, " (now) " now."
            }
        }
        (large(&counts))
        @for (missing, when) in missing.iter().filter(|(missing, _)| *missing > 0) {
            (note(html! { (counted(*missing as u64, "reading")) " only " (when) "." }))
        }
        @for verdict in Verdict::ALL {
            (changed(verdict, &comparison.changes))
        }
        (note(html! {
            "Above 1 is better, for times too. Within " (number((100.0 * EQUAL_WITHIN).round()))
            " % is equal; a larger difference counts only if the ranks of the runs confirm it \
             (Mann-Whitney test, p ≤ 0.01). Two processes on one machine may have had different \
             neighbours: measure both alternately before you act on a small difference."
        }))
    };
    card("compared", &format!("Compared with {name}"), &content)
}

/// All changes of one verdict.
fn changed(verdict: Verdict, changes: &[Change<'_>]) -> Markup {
    let changes: Vec<&Change<'_>> =
        changes.iter().filter(|change| change.verdict == verdict).collect();
    if changes.is_empty() {
        return html! {};
    }
    let (first, rest) = changes.split_at(changes.len().min(ROWS_MAX));
    let content = html! {
        (table(first))
        @if !rest.is_empty() {
            (details(&format!("{} more", count(rest.len() as u64)), false, &table(rest)))
        }
    };
    let summary = format!("{}: {}", verdict.name(), counted(changes.len() as u64, "reading"));
    details(&summary, matches!(verdict, Verdict::Slower | Verdict::Faster), &content)
}

fn table(changes: &[&Change<'_>]) -> Markup {
    let columns = ["measurement", "how", "#then", "#now", "#ratio", "interval", "#p", ""];
    let rows = html! {
        @for change in changes {
            @let (before, after) = (change.before, change.after);
            @let (low, high) = change.interval;
            tr {
                td { (after.area.name()) " " (after.measurement) }
                td.text { (words::parameters(after)) }
                (cells([
                    quantity::value(before.value, before.unit),
                    quantity::value(after.value, after.unit),
                    format!("{:.2}", change.ratio),
                ]))
                td title=(format!("{low:.3} to {high:.3}")) { (ratio(change)) }
                td.n { (probability(change.p)) }
                td.text { (change.reason.unwrap_or_default()) }
            }
        }
    };
    wide("", &columns, &rows)
}

/// The interval around 1, on a logarithmic scale.
fn ratio(change: &Change<'_>) -> Markup {
    let place = |ratio: f64| {
        let share = 0.5 + 0.5 * ratio.ln() / RATIO_MOST.ln();
        if share.is_finite() { share } else { 0.5 }
    };
    let class = match change.verdict {
        Verdict::Faster => "good",
        Verdict::Slower => "bad",
        Verdict::Equal | Verdict::TooNoisy => "plain",
    };
    let equal = (place(1.0 - EQUAL_WITHIN), place(1.0 / (1.0 - EQUAL_WITHIN)));
    let (low, high) = change.interval;
    interval(class, (place(low), place(high)), place(change.ratio), equal)
}

/// A probability in few digits.
fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_string() } else { format!("{p:.3}") }
}
