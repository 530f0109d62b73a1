//! A table of all files, with a search box.

use maud::{Markup, Render, html};
use quarrier_carve::Status;
use quarrier_carve::folder::{REPORT, Row};
use quarrier_report::number::{bytes, count, counted};
use quarrier_report::page::{Key, cut, note, section, table};

use super::group::Group;
use super::linked;

/// Maximum number of files in the table; the report beside the files has all.
const FILES_MAX: u64 = 5000;
/// The maximum length of a file's reason.
const REASON_CHARS_MAX: usize = 200;

pub(super) struct Files<'r> {
    link: Option<&'r str>,
    rows: Markup,
    count: u64,
}

impl<'r> Files<'r> {
    pub(super) fn new(link: Option<&'r str>) -> Self {
        Files { link, rows: html! {}, count: 0 }
    }

    pub(super) fn add(&mut self, row: &Row) {
        self.count += 1;
        if self.count > FILES_MAX {
            return;
        }
        let fragments = match row.extents.len() {
            0 | 1 => String::new(),
            count => format!(" in {count} fragments"),
        };
        let is_bad = row.status != Status::Valid;
        let why = row.container.as_deref().unwrap_or(&row.reason);
        html! {
            tr {
                td.n.mono { (format!("{:012x}", row.offset)) }
                td { (Key::Series(Group::of(&row.kind).colour())) (row.kind) }
                td.n title={ (count(row.length)) " bytes" } { (bytes(row.length)) }
                td.bad[is_bad] { (row.status.name()) (fragments) }
                td.text { (cut(why, REASON_CHARS_MAX)) }
                td.mono { (linked(self.link, &row.path, &row.path)) }
                td.mono title=(row.sha256) { (row.sha256.get(..12).unwrap_or_default()) "…" }
            }
        }
        .render_to(&mut self.rows.0);
    }

    pub(super) fn section(&self) -> Markup {
        if self.count == 0 {
            return html! {};
        }
        let columns = ["#offset", "type", "#size", "status", "why, or where", "file", "SHA-256"];
        let content = html! {
            p.find {
                input type="search" id="find" placeholder="type, offset, status, hash …"
                    aria-label="Search the files";
                span id="found" { (counted(self.count.min(FILES_MAX), "file")) }
            }
            div id="files" { (table("files", &columns, &self.rows)) }
            @if self.count > FILES_MAX {
                (note(html! {
                    (counted(self.count - FILES_MAX, "more file")) " not listed here; all are in "
                    (REPORT) "."
                }))
            }
        };
        section("all", "Files", &content)
    }
}
