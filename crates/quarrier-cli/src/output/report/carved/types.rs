//! How many files of each type there are, and how whole they are.

use std::collections::BTreeMap;

use quarrier_carve::folder::Row;

use super::group::Group;
use super::{put, text};

#[derive(Default)]
pub(super) struct Types {
    by_type: BTreeMap<String, OfType>,
}

#[derive(Default)]
struct OfType {
    files: [u64; 3],
    mended: u64,
    bytes: u64,
}

impl Types {
    pub(super) fn add(&mut self, row: &Row) {
        let of_type = self.by_type.entry(row.kind.clone()).or_default();
        of_type.files[row.status as usize] += 1;
        of_type.mended += u64::from(row.extents.len() > 1);
        of_type.bytes += row.length;
    }

    pub(super) fn write(&self, out: &mut String) {
        put!(out, "<section class=\"card\"><h2>Types</h2>\n");
        if self.by_type.is_empty() {
            put!(out, "<p class=\"none\">No file was found.</p></section>\n");
            return;
        }
        put!(
            out,
            "<div class=\"wide\"><table class=\"types\"><thead><tr><th>type</th>\
             <th class=\"n\">files</th><th class=\"n\">valid</th><th class=\"n\">partial</th>\
             <th class=\"n\">header</th><th class=\"n\">in fragments</th><th class=\"n\">size</th>\
             <th class=\"fill\"></th></tr></thead><tbody>\n"
        );
        let most = self.by_type.values().map(OfType::total).max().unwrap_or(1).max(1);
        let mut types: Vec<_> = self.by_type.iter().collect();
        types.sort_by_key(|(_, of_type)| std::cmp::Reverse(of_type.total()));
        for (kind, of_type) in types {
            of_type.write(out, kind, most);
        }
        put!(out, "</tbody></table></div></section>\n");
    }
}

impl OfType {
    fn total(&self) -> u64 {
        self.files.iter().sum()
    }

    fn write(&self, out: &mut String, kind: &str, most: u64) {
        let class = Group::of(kind).class();
        put!(out, "<tr><td><i class=\"key {class}\"></i>{}</td>", text::escape(kind));
        let [valid, partial, header] = self.files;
        for count in [self.total(), valid, partial, header, self.mended] {
            let shown = if count == 0 { "–".to_string() } else { text::count(count) };
            put!(out, "<td class=\"n\">{shown}</td>");
        }
        put!(out, "<td class=\"n\">{}</td><td class=\"fill\">", text::bytes(self.bytes));
        put!(out, "<div class=\"bar\">");
        for (count, pale) in [(valid, ""), (partial + header, " pale")] {
            if count > 0 {
                let width = 100.0 * count as f64 / most as f64;
                put!(out, "<i class=\"{class}{pale}\" style=\"width:{width:.2}%\"></i>");
            }
        }
        put!(out, "</div></td></tr>\n");
    }
}
