//! What became of each reading of an earlier report.

use super::Against;
use crate::compare::{Change, EQUAL_WITHIN, Verdict};
use crate::report::{Report, day, put, quantity, text, words};

/// Ratios beyond this lie at the end of the drawing.
const RATIO_MOST: f64 = 2.0;

/// Rows told at once; more are folded away.
const TOLD_MOST: usize = 20;

/// Writes the section.
pub(super) fn section(out: &mut String, report: &Report, against: &Against<'_>) {
    let Against { name, report: earlier, comparison } = against;
    put!(
        out,
        "<section class=\"card\" id=\"compared\"><h2>Compared with {}</h2>\n",
        text::escape(name)
    );
    put!(out, "<p class=\"under\">{} then, {} now.", day::utc(earlier.when), day::utc(report.when));
    if !comparison.is_same_machine {
        put!(
            out,
            " <b class=\"bad\">Another machine:</b> {} on {}.",
            text::escape(&earlier.machine.cpu_model),
            text::escape(&earlier.machine.name)
        );
    }
    put!(out, "</p>\n<dl class=\"facts inside\">\n");
    for verdict in Verdict::ALL {
        let count = quantity::count(comparison.count(verdict) as f64);
        put!(out, "<div class=\"large\"><dt>{}</dt><dd>{count}</dd></div>\n", verdict.name());
    }
    put!(out, "</dl>\n");
    let missing = [(comparison.only_before.len(), "then"), (comparison.only_after.len(), "now")];
    for (count, when) in missing.iter().filter(|(count, _)| *count > 0) {
        let readings = text::counted(*count, "reading");
        put!(out, "<p class=\"none\">{readings} only {when}.</p>\n");
    }
    for verdict in Verdict::ALL {
        let changes: Vec<&Change<'_>> =
            comparison.changes.iter().filter(|change| change.verdict == verdict).collect();
        if changes.is_empty() {
            continue;
        }
        let summary = format!("{}: {}", verdict.name(), text::counted(changes.len(), "reading"));
        let is_told = matches!(verdict, Verdict::Slower | Verdict::Faster);
        put!(out, "<details{}><summary>{summary}</summary>\n", if is_told { " open" } else { "" });
        let (first, rest) = changes.split_at(changes.len().min(TOLD_MOST));
        table(out, first);
        if !rest.is_empty() {
            put!(out, "<details><summary>{} more</summary>\n", quantity::count(rest.len() as f64));
            table(out, rest);
            put!(out, "</details>\n");
        }
        put!(out, "</details>\n");
    }
    put!(
        out,
        "<p class=\"none\">Above 1 is better, for times too. Within {} % is equal; a difference is \
         one where the ranks of the runs say so (Mann and Whitney, p ≤ 0.01). Of two processes on \
         one machine, neither knows what the other's neighbours did: measure both in turns before \
         you act on a small difference.</p>\n</section>\n",
        quantity::count((100.0 * EQUAL_WITHIN).round())
    );
}

fn table(out: &mut String, changes: &[&Change<'_>]) {
    put!(
        out,
        "<div class=\"wide\"><table><thead><tr><th>measurement</th><th>how</th>\
         <th class=\"n\">then</th><th class=\"n\">now</th><th class=\"n\">ratio</th>\
         <th>interval</th><th class=\"n\">p</th><th></th></tr></thead><tbody>\n"
    );
    for change in changes {
        let (before, after) = (change.before, change.after);
        put!(
            out,
            "<tr><td>{} {}</td><td class=\"text\">{}</td>",
            after.area.name(),
            text::escape(&after.measurement),
            text::escape(&words::parameters(after))
        );
        for cell in [
            quantity::value(before.value, before.unit),
            quantity::value(after.value, after.unit),
            format!("{:.2}", change.ratio),
        ] {
            put!(out, "<td class=\"n\">{cell}</td>");
        }
        put!(out, "<td>");
        ratio(out, change);
        put!(out, "</td><td class=\"n\">{}</td>", probability(change.p));
        put!(out, "<td class=\"text\">{}</td></tr>\n", change.reason.unwrap_or_default());
    }
    put!(out, "</tbody></table></div>\n");
}

/// The interval around 1, in equal ratios.
fn ratio(out: &mut String, change: &Change<'_>) {
    let place = |ratio: f64| {
        let share = 0.5 + 0.5 * ratio.ln() / RATIO_MOST.ln();
        if share.is_finite() { (100.0 * share).clamp(0.0, 100.0) } else { 50.0 }
    };
    let (low, high) = change.interval;
    let class = match change.verdict {
        Verdict::Faster => "ratio faster",
        Verdict::Slower => "ratio slower",
        Verdict::Equal | Verdict::TooNoisy => "ratio",
    };
    let (from, to) = (place(1.0 - EQUAL_WITHIN), place(1.0 / (1.0 - EQUAL_WITHIN)));
    put!(out, "<div class=\"{class}\" title=\"{low:.3} to {high:.3}\">");
    put!(out, "<span class=\"equal\" style=\"left:{from:.1}%;width:{:.1}%\"></span>", to - from);
    let (from, to) = (place(low), place(high));
    put!(out, "<i style=\"left:{from:.1}%;width:{:.1}%\"></i>", (to - from).max(0.5));
    put!(out, "<b style=\"left:{:.1}%\"></b></div>", place(change.ratio));
}

/// A probability in few digits.
pub(in crate::report) fn probability(p: f64) -> String {
    if p < 0.001 { "&lt; 0.001".to_string() } else { format!("{p:.3}") }
}
