//! The number of files of each type, by status.

use std::collections::BTreeMap;

use maud::{Markup, html};
use quarrier_carve::folder::Row;
use quarrier_report::chart::bar;
use quarrier_report::number::{bytes, count};
use quarrier_report::page::{Key, cells, note, section, table};

use super::group::Group;

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

    pub(super) fn section(&self) -> Markup {
        let most = self.by_type.values().map(OfType::total).max().unwrap_or(1).max(1);
        let mut types: Vec<_> = self.by_type.iter().collect();
        types.sort_by_key(|(_, of_type)| std::cmp::Reverse(of_type.total()));
        let columns =
            ["type", "#files", "#valid", "#partial", "#header", "#in fragments", "#size", "="];
        let rows = html! { @for (kind, of_type) in &types { (of_type.row(kind, most as f64)) } };
        let content = match types.is_empty() {
            true => note("No file was found."),
            false => table("", &columns, &rows),
        };
        section("types", "Types", &content)
    }
}

impl OfType {
    fn total(&self) -> u64 {
        self.files.iter().sum()
    }

    fn row(&self, kind: &str, most: f64) -> Markup {
        let colour = Group::of(kind).colour();
        let [valid, partial, header] = self.files;
        let shown = |files: u64| if files == 0 { "–".to_string() } else { count(files) };
        let pale = format!("{} pale", colour.class());
        let parts =
            [(colour.class(), valid as f64 / most), (&*pale, (partial + header) as f64 / most)];
        html! {
            tr {
                td { (Key::Series(colour)) (kind) }
                (cells([self.total(), valid, partial, header, self.mended].map(shown)))
                (cells([bytes(self.bytes)]))
                td.fill { (bar(&parts)) }
            }
        }
    }
}
