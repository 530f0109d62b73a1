//! A file as every door shows it.

use quarrier_core::civil;
use quarrier_files::{Entry, Kind, State, Written, time_in_words};
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
    /// The number of its partition, from 1; 0 where the file system has the source for itself.
    pub partition: u32,
    /// The file.
    pub entry: Entry,
    /// Where its bytes were written, if they were.
    pub written: Option<Written>,
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

    /// Modified, accessed, changed, created, in the order of [`COLUMNS`]; `None` if it is not known.
    pub fn times(&self) -> [Option<String>; 4] {
        let times = &self.entry.times;
        [times.modified, times.accessed, times.changed, times.created]
            .map(|time| time.map(time_in_words))
    }

    /// A line of a bodyfile, as sleuthkit's `mactime` reads it; times are in seconds.
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
