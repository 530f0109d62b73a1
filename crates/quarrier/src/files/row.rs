//! A row of a listing, the same in every program and binding.

use quarrier_core::civil;
use quarrier_files::{Entry, Kind, State, WrittenFile, format_time};
use serde_json::json;

/// The names of the columns, in their order.
pub const COLUMNS: [&str; 12] = [
    "source",
    "partition",
    "path",
    "inode",
    "type",
    "state",
    "size",
    "modified",
    "accessed",
    "changed",
    "created",
    "extents",
];

/// A file.
#[derive(Debug, Clone)]
pub struct Row {
    /// The name of the source.
    pub source: String,
    /// The number of its partition, from 1; 0 if the file system fills the source.
    pub partition: u32,
    /// The file.
    pub entry: Entry,
    /// The written file; `None` if its bytes were not written.
    pub written: Option<WrittenFile>,
}

impl Row {
    /// The extents of its bytes in the source: `[[offset, length], …]`.
    pub fn extents(&self) -> Vec<[u64; 2]> {
        self.entry.extents().iter().map(|extent| [extent.offset, extent.length]).collect()
    }

    /// The extents as JSON.
    pub fn extents_json(&self) -> String {
        json!(self.extents()).to_string()
    }

    /// The times modified, accessed, changed and created, in the order of [`COLUMNS`]; `None` if
    /// unknown.
    pub fn times(&self) -> [Option<String>; 4] {
        let times = &self.entry.times;
        [times.modified, times.accessed, times.changed, times.created]
            .map(|time| time.map(format_time))
    }

    /// Formats a line of a bodyfile for sleuthkit's `mactime`; times are in seconds.
    pub fn bodyfile(&self) -> String {
        let entry = &self.entry;
        let deleted = if entry.state == State::Deleted { " (deleted)" } else { "" };
        let kind = match entry.kind {
            Kind::File => 'r',
            Kind::Folder => 'd',
            Kind::Link => 'l',
            Kind::Other => '-',
        };
        let seconds = |time: Option<i64>| time.map_or(0, |time| time.div_euclid(civil::SECOND_NS));
        let times = &entry.times;
        let prefix = match self.partition {
            0 => String::new(),
            number => format!("/#{number}"),
        };
        // A bar would end the field.
        let path = entry.path.replace('|', "\\x7c");
        format!(
            "0|{prefix}{path}{deleted}|{}|{kind}/{kind}---------|0|0|{}|{}|{}|{}|{}",
            entry.inode,
            entry.size,
            seconds(times.accessed),
            seconds(times.modified),
            seconds(times.changed),
            seconds(times.created),
        )
    }
}
