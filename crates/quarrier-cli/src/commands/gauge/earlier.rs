//! Reports that were kept, and what changed since.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use quarrier_gauge::compare::{Comparison, compare};
use quarrier_gauge::report::{Against, Report};

/// No report is larger.
const FILE_BYTES_MOST: u64 = 256 << 20;

/// A report with the name of its file.
pub(super) struct Earlier {
    name: String,
    report: Report,
}

impl Earlier {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        Ok(Earlier { name: path.display().to_string(), report: read(path)? })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// The report in a file that `--json` wrote.
pub(super) fn read(path: &Path) -> Result<Report, String> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| {
        // A pipe without an end must not fill the memory.
        file.take(FILE_BYTES_MOST + 1).read_to_end(&mut bytes)
    });
    read.map_err(|error| format!("{name}: cannot read the report: {error}"))?;
    if bytes.len() as u64 > FILE_BYTES_MOST {
        return Err(format!("{name}: is larger than any report of 'quarrier gauge --json'"));
    }
    Report::from_json(&name, &bytes).map_err(|error| error.to_string())
}

/// What changed since each of them.
pub(super) fn comparisons<'r>(earlier: &'r [Earlier], report: &'r Report) -> Vec<Comparison<'r>> {
    earlier.iter().map(|earlier| compare(&earlier.report, report)).collect()
}

/// The same for the page.
pub(super) fn against<'r>(
    earlier: &'r [Earlier],
    comparisons: &'r [Comparison<'r>],
) -> Vec<Against<'r>> {
    let pairs = earlier.iter().zip(comparisons);
    pairs
        .map(|(earlier, comparison)| Against {
            name: &earlier.name,
            report: &earlier.report,
            comparison,
        })
        .collect()
}
