//! A map of the source: a grid of cells in the order of their bytes, coloured by the files in them.

use std::collections::BTreeMap;
use std::ops::Range;

use maud::{Markup, html};
use quarrier_carve::Status;
use quarrier_carve::folder::Row;
use quarrier_report::number::{bytes, count};
use quarrier_report::page::{Key, legend, section};

use super::group::Group;

/// Cells in a line, and the maximum number of lines.
const COLUMNS: u64 = 128;
const LINES_MAX: u64 = 40;
/// Minimum size of a cell in bytes.
const CELL_BYTES_MIN: u64 = 512;
/// Maximum number of types in the label of a cell.
const LABELLED_MAX: usize = 4;

pub(super) struct Map {
    range: Range<u64>,
    cell_bytes: u64,
    cells: Vec<Cell>,
    files: BTreeMap<Group, u64>,
}

#[derive(Default, Clone)]
struct Cell {
    /// Bytes of each group; those of broken files are separate.
    valid: [u64; Group::ALL.len()],
    broken: [u64; Group::ALL.len()],
    /// Files by type.
    kinds: Vec<(String, u64)>,
}

impl Map {
    pub(super) fn new(range: Range<u64>) -> Self {
        let bytes = range.end - range.start;
        let cell_bytes = bytes.div_ceil(COLUMNS * LINES_MAX).max(CELL_BYTES_MIN);
        let cells = vec![Cell::default(); bytes.div_ceil(cell_bytes) as usize];
        Map { range, cell_bytes, cells, files: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, row: &Row) {
        let group = Group::of(&row.kind);
        *self.files.entry(group).or_default() += 1;
        for extent in &row.extents {
            let end = extent.end().min(self.range.end);
            let mut at = extent.offset.max(self.range.start);
            while at < end {
                let index = (at - self.range.start) / self.cell_bytes;
                let until = (self.range.start + (index + 1) * self.cell_bytes).min(end);
                if let Some(cell) = self.cells.get_mut(index as usize) {
                    let is_valid = row.status == Status::Valid;
                    let sums = if is_valid { &mut cell.valid } else { &mut cell.broken };
                    sums[group as usize] += until - at;
                    cell.count(&row.kind);
                }
                at = until;
            }
        }
    }

    pub(super) fn section(&self, unreadable: &[Range<u64>]) -> Markup {
        if self.cells.is_empty() {
            return html! {};
        }
        let content = html! {
            p.under {
                (bytes(self.range.end - self.range.start)) " from byte " (count(self.range.start))
                "; a cell is " (bytes(self.cell_bytes))
                ", a line " (bytes(self.cell_bytes * COLUMNS))
            }
            (self.keys(unreadable))
            (self.grid(unreadable))
        };
        section("map", "Positions of the files", &content)
    }

    fn keys(&self, unreadable: &[Range<u64>]) -> Markup {
        let groups = self.files.iter().map(|(group, files)| {
            (Some(Key::Series(group.colour())), html! { (group.name()) " " b { (count(*files)) } })
        });
        let mut keys: Vec<(Option<Key>, Markup)> = groups.collect();
        keys.push((Some(Key::Pale), html! { "paler: only broken files" }));
        if !unreadable.is_empty() {
            keys.push((Some(Key::Bad), html! { "unreadable" }));
        }
        legend(&keys)
    }

    /// Draws a rectangle for each run of cells of a line with the same content, and labels it.
    fn grid(&self, unreadable: &[Range<u64>]) -> Markup {
        let lines = (self.cells.len() as u64).div_ceil(COLUMNS);
        let view = format!("0 0 {} {}", COLUMNS * 10, lines * 10);
        let label = "Types of files over the source";
        let cells: Vec<(String, String)> =
            self.cells.iter().map(|cell| (cell.class(), cell.label())).collect();
        let mut at = self.range.start;
        let mut runs = Vec::new();
        for (line, cells) in cells.chunks(COLUMNS as usize).enumerate() {
            let mut column = 0;
            for run in cells.chunk_by(|a, b| a == b) {
                let (x, y, width) = (column * 10, line * 10, run.len() * 10);
                let end = at.saturating_add(run.len() as u64 * self.cell_bytes).min(self.range.end);
                let (class, words) = &run[0];
                let title = format!("{words} · {at:#x} – {end:#x}");
                runs.push((class, format!("M{x} {y}h{width}v9h-{width}z"), title));
                (column, at) = (column + run.len(), end);
            }
        }
        let height_px = (lines * 11).clamp(11, 440);
        html! {
            svg.map viewBox=(view) preserveAspectRatio="none" height=(height_px) role="img"
                aria-label=(label) {
                @for (class, path, title) in runs {
                    path class=(class) d=(path) { title { (title) } }
                }
                path.bad d=(self.lost(unreadable)) { title { "unreadable" } }
            }
        }
    }

    /// The cells that contain unreadable ranges.
    fn lost(&self, unreadable: &[Range<u64>]) -> String {
        let of = |offset: u64| offset.clamp(self.range.start, self.range.end) - self.range.start;
        let cells = unreadable.iter().flat_map(|range| {
            let last = of(range.end.saturating_sub(1)) / self.cell_bytes;
            (of(range.start) / self.cell_bytes..=last).take(10_000)
        });
        let cell = |cell| format!("M{} {}h10v9h-10z", cell % COLUMNS * 10, cell / COLUMNS * 10);
        cells.map(cell).collect()
    }
}

impl Cell {
    fn count(&mut self, kind: &str) {
        match self.kinds.iter_mut().find(|(name, _)| name == kind) {
            Some((_, count)) => *count += 1,
            None => self.kinds.push((kind.to_string(), 1)),
        }
    }

    /// The class of the largest group in the cell; pale if the cell has no valid file.
    fn class(&self) -> String {
        let most = |sums: &[u64; Group::ALL.len()]| {
            let largest = Group::ALL
                .into_iter()
                .max_by_key(|group| (sums[*group as usize], std::cmp::Reverse(*group as usize)));
            largest.filter(|group| sums[*group as usize] > 0)
        };
        match (most(&self.valid), most(&self.broken)) {
            (Some(group), _) => group.colour().class().to_string(),
            (None, Some(group)) => format!("{} pale", group.colour().class()),
            (None, None) => "free".to_string(),
        }
    }

    /// The cell's content in words.
    fn label(&self) -> String {
        if self.kinds.is_empty() {
            return "nothing found".to_string();
        }
        let mut kinds: Vec<&(String, u64)> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let words = kinds.iter().take(LABELLED_MAX).map(|(kind, count)| match count {
            1 => kind.clone(),
            count => format!("{count} {kind}"),
        });
        let mut words: Vec<String> = words.collect();
        if kinds.len() > LABELLED_MAX {
            words.push("…".to_string());
        }
        words.join(", ")
    }
}
