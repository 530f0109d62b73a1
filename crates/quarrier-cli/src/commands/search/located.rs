//! `--where`: rows with the file of each finding.

use std::io;

use quarrier_files::{Places, format_time};

use crate::output::Format;
use crate::output::rows::{Column, Excerpt, Kind, Rows, Value};

/// The additional columns of findings.
const PLACE: [Column; 4] = [
    Column { name: "file", kind: Kind::Text },
    Column { name: "inode", kind: Kind::Optional },
    Column { name: "state", kind: Kind::Text },
    Column { name: "modified", kind: Kind::Text },
];

/// Appends the columns of the file to those of findings.
pub(super) fn with_place(columns: &[Column]) -> &'static [Column] {
    // Leaks once per run.
    columns.iter().copied().chain(PLACE).collect::<Vec<_>>().leak()
}

/// Adds the file of each finding of one source.
pub(super) struct Located<'r> {
    pub(super) rows: &'r mut dyn Rows,
    pub(super) places: &'r Places,
    pub(super) format: Format,
}

impl Rows for Located<'_> {
    fn row(&mut self, values: &[Value<'_>], excerpt: Excerpt<'_>) -> io::Result<()> {
        let [_, Value::Unsigned(offset), _, pattern, name, ..] = values else {
            return self.rows.row(values, excerpt);
        };
        let place = self.places.at(*offset);
        let mut values = values.to_vec();
        if self.format == Format::Text {
            // For people, it follows the name of the finding.
            let label = match (name, pattern) {
                (Value::Text(text), _) | (_, Value::Text(text)) => *text,
                _ => "",
            };
            let label = match place.file {
                Some(file) => format!("{label} in {file} ({})", place.state),
                None => format!("{label} ({})", place.state),
            };
            values[4] = Value::Text(&label);
            return self.rows.row(&values, excerpt);
        }
        let modified = place.modified.map(format_time);
        values.extend([
            place.file.map_or(Value::Missing, Value::Text),
            place.inode.map_or(Value::Missing, Value::Unsigned),
            Value::Text(place.state.name()),
            modified.as_deref().map_or(Value::Missing, Value::Text),
        ]);
        self.rows.row(&values, excerpt)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.rows.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.rows.finish()
    }
}
