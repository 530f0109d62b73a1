//! A map of the source: a grid of cells in the order of their bytes, coloured by what lies there.

use std::collections::BTreeMap;
use std::ops::Range;

use quarrier_carve::Status;
use quarrier_carve::folder::Row;

use super::group::Group;
use super::{put, text};

/// Cells of a line, and lines at most.
const COLUMNS: u64 = 128;
const LINES_MAX: u64 = 40;
/// A cell stands for at least as many bytes.
const CELL_BYTES_MIN: u64 = 512;
/// Files told of in one cell.
const TOLD_MAX: usize = 4;

pub(super) struct Map {
    range: Range<u64>,
    cell_bytes: u64,
    cells: Vec<Cell>,
    files: BTreeMap<Group, u64>,
}

#[derive(Default, Clone)]
struct Cell {
    /// Bytes of each group; of broken files apart.
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

    pub(super) fn write(&self, out: &mut String, unreadable: &[Range<u64>]) {
        if self.cells.is_empty() {
            return;
        }
        put!(out, "<section class=\"card\"><h2>Where the files lie</h2>\n");
        put!(
            out,
            "<p class=\"under\">{} from byte {}; a cell is {}, a line {}</p>\n",
            text::bytes(self.range.end - self.range.start),
            text::count(self.range.start),
            text::bytes(self.cell_bytes),
            text::bytes(self.cell_bytes * COLUMNS),
        );
        self.legend(out, unreadable);
        self.grid(out, unreadable);
        put!(out, "</section>\n");
    }

    fn legend(&self, out: &mut String, unreadable: &[Range<u64>]) {
        put!(out, "<div class=\"legend groups\">");
        for (group, files) in &self.files {
            put!(
                out,
                "<span><i class=\"key {}\"></i>{} <b>{}</b></span>",
                group.class(),
                group.name(),
                text::count(*files)
            );
        }
        put!(out, "<span><i class=\"key faint\"></i>paler: only broken files</span>");
        if !unreadable.is_empty() {
            put!(out, "<span><i class=\"key bad\"></i>unreadable</span>");
        }
        put!(out, "</div>\n");
    }

    fn grid(&self, out: &mut String, unreadable: &[Range<u64>]) {
        let lines = (self.cells.len() as u64).div_ceil(COLUMNS);
        put!(
            out,
            "<div class=\"map\" data-start=\"{}\" data-cell=\"{}\" data-columns=\"{COLUMNS}\" \
             data-lines=\"{lines}\" data-end=\"{}\" data-kinds=\"{}\"><svg viewBox=\"0 0 {} {}\" \
             preserveAspectRatio=\"none\" style=\"height:{}px\" role=\"img\" \
             aria-label=\"Types of files over the source\">",
            self.range.start,
            self.cell_bytes,
            self.range.end,
            text::escape(&self.told()),
            COLUMNS * 10,
            lines * 10,
            (lines * 11).clamp(11, 440),
        );
        let mut paths: BTreeMap<String, String> = BTreeMap::new();
        for (line, cells) in self.cells.chunks(COLUMNS as usize).enumerate() {
            let mut column = 0;
            for run in cells.chunk_by(|a, b| a.class() == b.class()) {
                let path = paths.entry(run[0].class()).or_default();
                let width = run.len() * 10;
                put!(path, "M{} {}h{width}v9h-{width}z", column * 10, line * 10);
                column += run.len();
            }
        }
        for (class, path) in paths {
            put!(out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
        let mut path = String::new();
        for range in unreadable {
            let of =
                |offset: u64| offset.clamp(self.range.start, self.range.end) - self.range.start;
            let last = of(range.end.saturating_sub(1)) / self.cell_bytes;
            for cell in (of(range.start) / self.cell_bytes..=last).take(10_000) {
                put!(path, "M{} {}h10v9h-10z", cell % COLUMNS * 10, cell / COLUMNS * 10);
            }
        }
        put!(out, "<path class=\"lost\" d=\"{path}\"/></svg></div>\n");
    }

    /// What each cell holds, in words, joined by `;`.
    fn told(&self) -> String {
        let mut told: Vec<String> = self.cells.iter().map(Cell::told).collect();
        while told.last().is_some_and(String::is_empty) {
            told.pop();
        }
        told.join(";")
    }
}

impl Cell {
    fn count(&mut self, kind: &str) {
        match self.kinds.iter_mut().find(|(name, _)| name == kind) {
            Some((_, count)) => *count += 1,
            None => self.kinds.push((kind.to_string(), 1)),
        }
    }

    /// The class of the group that has most of the cell; pale where nothing valid is there.
    fn class(&self) -> String {
        let most = |sums: &[u64; Group::ALL.len()]| {
            let largest = Group::ALL
                .into_iter()
                .max_by_key(|group| (sums[*group as usize], std::cmp::Reverse(*group as usize)));
            largest.filter(|group| sums[*group as usize] > 0)
        };
        match (most(&self.valid), most(&self.broken)) {
            (Some(group), _) => group.class(),
            (None, Some(group)) => format!("{} pale", group.class()),
            (None, None) => "free".to_string(),
        }
    }

    fn told(&self) -> String {
        let mut kinds: Vec<&(String, u64)> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let told = kinds.iter().take(TOLD_MAX).map(|(kind, count)| match count {
            1 => kind.clone(),
            count => format!("{count} {kind}"),
        });
        let mut told: Vec<String> = told.collect();
        if kinds.len() > TOLD_MAX {
            told.push("…".to_string());
        }
        told.join(", ")
    }
}
