//! All files in a table, with a box to search in it.

use quarrier_carve::folder::{REPORT, Row};

use super::group::Group;
use super::{linked, put, text};

/// Files listed; the others are in the report beside the files.
const FILES_MAX: u64 = 5000;

pub(super) struct Files<'r> {
    link: Option<&'r str>,
    rows: String,
    count: u64,
}

impl<'r> Files<'r> {
    pub(super) fn new(link: Option<&'r str>) -> Self {
        Files { link, rows: String::new(), count: 0 }
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
        put!(
            self.rows,
            "<tr><td class=\"n mono\">{:012x}</td><td><i class=\"key {}\"></i>{}</td>\
             <td class=\"n\" title=\"{} bytes\">{}</td><td class=\"{}\">{}{fragments}</td>\
             <td class=\"text\">{}</td><td class=\"mono\">{}</td>\
             <td class=\"mono\" title=\"{sha}\">{}…</td></tr>\n",
            row.offset,
            Group::of(&row.kind).class(),
            text::escape(&row.kind),
            text::count(row.length),
            text::bytes(row.length),
            row.status.name(),
            row.status.name(),
            text::escape_cut(row.container.as_deref().unwrap_or(&row.reason), 200),
            linked(self.link, &row.path, &row.path),
            text::escape(row.sha256.get(..12).unwrap_or_default()),
            sha = text::escape(&row.sha256),
        );
    }

    pub(super) fn write(&self, out: &mut String) {
        if self.count == 0 {
            return;
        }
        put!(
            out,
            "<section class=\"card\"><h2>Files</h2>\n\
             <p class=\"find\"><input type=\"search\" id=\"find\" placeholder=\"type, offset, \
             status, hash …\" aria-label=\"Search the files\"><span id=\"found\">{}</span></p>\n\
             <div class=\"wide\"><table class=\"files\"><thead><tr><th class=\"n\">offset</th>\
             <th>type</th><th class=\"n\">size</th><th>status</th><th>why, or where</th><th>file</th>\
             <th>SHA-256</th></tr></thead><tbody id=\"files\">\n{}</tbody></table></div>\n",
            text::counted(self.count.min(FILES_MAX), "file"),
            self.rows,
        );
        if self.count > FILES_MAX {
            put!(
                out,
                "<p class=\"none\">{} not listed here; all are in {REPORT}.</p>\n",
                text::counted(self.count - FILES_MAX, "more file")
            );
        }
        put!(out, "</section>\n");
    }
}
