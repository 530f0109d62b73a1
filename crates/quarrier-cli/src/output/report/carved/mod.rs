//! The page of a carving run: a map of the files, the number of each type, pictures, all files.

mod files;
mod group;
mod map;
mod pictures;
mod types;

use std::ops::Range;
use std::path::Path;

use maud::{Markup, html};
use quarrier_carve::folder::Row;
use quarrier_report::page::{Script, facts, header, page};

/// Filters the table of files.
const SCRIPT: Script = Script {
    text: include_str!("carved.js"),
    sha256: "BMxoK2SGnDkR+WZO9tgbMW2SzRkedsRKn+ghME5NISI=",
};

/// The content of the page, besides the files.
pub(crate) struct CarvedReport<'r> {
    /// The title, such as the command line.
    pub title: &'r str,
    /// Labels and values.
    pub facts: &'r [(String, String)],
    /// The part of the source that was carved, in bytes.
    pub range: Range<u64>,
    /// Ranges that could not be read, in order.
    pub unreadable: &'r [Range<u64>],
    /// Where the files were written; `None` in a dry run.
    pub folder: Option<&'r Path>,
    /// The link from the page to that folder, if there is one.
    pub link: Option<&'r str>,
}

/// Renders the whole page; `rows` must be in the order of the source.
pub(crate) fn html(report: &CarvedReport<'_>, rows: impl Iterator<Item = Row>) -> String {
    let mut map = map::Map::new(report.range.clone());
    let mut types = types::Types::default();
    let mut pictures = pictures::Pictures::new(report.folder, report.link);
    let mut files = files::Files::new(report.link);
    for row in rows {
        map.add(&row);
        types.add(&row);
        pictures.add(&row);
        files.add(&row);
    }
    let parts = [
        header("quarrier report", report.title, true, &html! {}),
        facts(report.facts),
        map.section(report.unreadable),
        types.section(),
        pictures.section(),
        files.section(),
    ];
    page(report.title, &[SCRIPT], &parts)
}

/// A link to a file in the folder; only its name if there is no folder.
fn linked(link: Option<&str>, path: &str, shown: &str) -> Markup {
    html! {
        @if let Some(link) = link {
            a href={ (percent_encoded(link)) "/" (percent_encoded(path)) } { (shown) }
        } @else {
            (shown)
        }
    }
}

/// Encodes a path as part of a URL.
fn percent_encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(byte as char);
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
