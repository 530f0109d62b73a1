//! What stands around the plots: head, facts, the list of sources, foot.

use quarrier_report::page::{self as frame, Script};

use super::{SourceRun, put, text};

/// Sources listed in the overview.
const OVERVIEW_ROWS_MAX: usize = 200;
/// Characters of a heading, of a fact: enough for a long command line.
const TITLE_CHARS_MAX: usize = 1000;
const FACT_CHARS_MAX: usize = 400;

/// The script of every page: values under the pointer.
pub(super) const SCRIPT: Script = Script {
    text: include_str!("report.js"),
    sha256: "daXo+CzpnoInR6Ts1Pk4yO1Be/WPDJRZCL71fcthhEQ=",
};

/// Everything before the facts; `styles` come after those that all pages have.
pub(super) fn head(out: &mut String, title: &str, styles: &[&str], scripts: &[Script]) {
    let styles = [&[include_str!("report.css")], styles].concat();
    frame::head(out, title, &styles, scripts);
    put!(
        out,
        "<header><p class=\"kicker\">quarrier report</p><h1>{}</h1></header>\n",
        text::escape_cut(title, TITLE_CHARS_MAX),
    );
}

/// Label and value pairs as a grid.
pub(super) fn facts(out: &mut String, facts: &[(String, String)]) {
    if facts.is_empty() {
        return;
    }
    put!(out, "<dl class=\"facts\">\n");
    for (label, value) in facts {
        let value = text::escape_cut(value, FACT_CHARS_MAX);
        put!(out, "<div><dt>{}</dt><dd>{value}</dd></div>\n", text::escape(label));
    }
    put!(out, "</dl>\n");
}

/// A table of all sources, with links to those in `drawn`.
pub(super) fn overview(out: &mut String, sources: &[SourceRun<'_>], drawn: &[usize]) {
    put!(
        out,
        "<section class=\"card\"><h2>Sources</h2>\n<div class=\"wide\"><table>\n\
         <thead><tr><th>source</th><th class=\"n\">size</th><th class=\"n\">time</th>\
         <th class=\"n\">rate</th><th class=\"n\">findings</th><th class=\"n\">unreadable</th>\
         </tr></thead><tbody>\n"
    );
    for (index, source) in sources.iter().enumerate().take(OVERVIEW_ROWS_MAX) {
        let name = text::escape(source.name);
        let name = match drawn.binary_search(&index) {
            Ok(_) => format!("<a href=\"#s{index}\">{name}</a>"),
            Err(_) => name,
        };
        let unreadable = match source.unreadable_bytes() {
            0 => "–".to_string(),
            bytes => format!("<b class=\"bad\">{}</b>", text::bytes(bytes)),
        };
        put!(out, "<tr><td class=\"text\">{name}</td>");
        for cell in [
            text::bytes(source.length_bytes),
            text::seconds(source.elapsed.as_secs_f64()),
            source.bytes_per_second().map_or("–".to_string(), text::rate),
            text::count(source.findings()),
            unreadable,
        ] {
            put!(out, "<td class=\"n\">{cell}</td>");
        }
        put!(out, "</tr>\n");
    }
    put!(out, "</tbody></table></div>\n");
    let mut notes = Vec::new();
    if sources.len() > OVERVIEW_ROWS_MAX {
        let more = (sources.len() - OVERVIEW_ROWS_MAX) as u64;
        notes.push(format!("{} not listed.", text::counted(more, "more source")));
    }
    if sources.len() > drawn.len() {
        notes.push(format!("The {} that took longest are drawn below.", drawn.len()));
    }
    if !notes.is_empty() {
        put!(out, "<p class=\"none\">{}</p>\n", notes.join(" "));
    }
    put!(out, "</section>\n");
}

/// Whether a source can be folded away, and how it first shows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fold {
    Never,
    Open,
    Closed,
}

/// The frame around all that is told of one source.
pub(super) fn source(
    out: &mut String,
    source: &SourceRun<'_>,
    index: usize,
    fold: Fold,
    content: impl FnOnce(&mut String),
) {
    let name = text::escape(source.name);
    let (open, close) = match fold {
        Fold::Never => (format!("<section class=\"card\" id=\"s{index}\">"), "</section>"),
        Fold::Open => (format!("<details class=\"card\" id=\"s{index}\" open>"), "</details>"),
        Fold::Closed => (format!("<details class=\"card\" id=\"s{index}\">"), "</details>"),
    };
    let heading = format!("<h2>{name}</h2>");
    match fold {
        Fold::Never => put!(out, "{open}{heading}\n"),
        Fold::Open | Fold::Closed => put!(out, "{open}<summary>{heading}</summary>\n"),
    }
    put!(out, "<p class=\"under\">{}", text::bytes(source.length_bytes));
    if source.length_bytes >= 1024 {
        put!(out, " ({} bytes)", text::count(source.length_bytes));
    }
    put!(out, " · {}", text::seconds(source.elapsed.as_secs_f64()));
    if let Some(rate) = source.bytes_per_second() {
        put!(out, " · {}", text::rate(rate));
    }
    put!(out, " · {}", text::counted(source.findings(), "finding"));
    let unreadable = source.unreadable_bytes();
    if unreadable > 0 {
        put!(out, " · <b class=\"bad\">{} unreadable</b>", text::bytes(unreadable));
    }
    put!(out, "</p>\n");
    content(out);
    put!(out, "{close}\n");
}
