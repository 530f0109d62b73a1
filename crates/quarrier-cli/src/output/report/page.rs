//! The list of sources, and the frame around each source's charts.

use maud::{Markup, html};
use quarrier_report::number::{bytes, count, counted, rate, seconds};
use quarrier_report::page::{Fold, cells, folded, note, section, table};

use super::SourceRun;

/// Maximum number of sources in the overview.
const OVERVIEW_ROWS_MAX: usize = 200;

/// A table of all sources, with links to those in `drawn`.
pub(super) fn overview(sources: &[SourceRun<'_>], drawn: &[usize]) -> Markup {
    let unreadable = |source: &SourceRun<'_>| match source.unreadable_bytes() {
        0 => html! { "–" },
        lost => html! { b.bad { (bytes(lost)) } },
    };
    let rows = html! {
        @for (index, source) in sources.iter().enumerate().take(OVERVIEW_ROWS_MAX) {
            tr {
                td.text {
                    @if drawn.binary_search(&index).is_ok() {
                        a href={ "#s" (index) } { (source.name) }
                    } @else {
                        (source.name)
                    }
                }
                (cells([
                    bytes(source.length_bytes),
                    seconds(source.elapsed.as_secs_f64()),
                    source.bytes_per_second().map_or("–".to_string(), rate),
                    count(source.findings()),
                ]))
                (cells([unreadable(source)]))
            }
        }
    };
    let mut notes = Vec::new();
    if sources.len() > OVERVIEW_ROWS_MAX {
        let more = (sources.len() - OVERVIEW_ROWS_MAX) as u64;
        notes.push(format!("{} not listed.", counted(more, "more source")));
    }
    if sources.len() > drawn.len() {
        notes.push(format!("The {} that took longest are drawn below.", drawn.len()));
    }
    let columns = ["source", "#size", "#time", "#rate", "#findings", "#unreadable"];
    let content = html! {
        (table("", &columns, &rows))
        @if !notes.is_empty() { (note(notes.join(" "))) }
    };
    section("sources", "Sources", &content)
}

/// The frame of one source.
pub(super) fn source(source: &SourceRun<'_>, index: usize, fold: Fold, charts: &Markup) -> Markup {
    let unreadable = source.unreadable_bytes();
    let content = html! {
        p.under {
            (bytes(source.length_bytes))
            @if source.length_bytes >= 1024 { " (" (count(source.length_bytes)) " bytes)" }
            " · " (seconds(source.elapsed.as_secs_f64()))
            @if let Some(mean) = source.bytes_per_second() { " · " (rate(mean)) }
            " · " (counted(source.findings(), "finding"))
            @if unreadable > 0 { " · " b.bad { (bytes(unreadable)) " unreadable" } }
        }
        (charts)
    };
    folded(&format!("s{index}"), source.name, fold, &content)
}
