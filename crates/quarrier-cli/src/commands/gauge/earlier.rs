//! Earlier reports, and the changes since.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use quarrier::read_bounded;
use quarrier_gauge::compare::{Comparison, compare};
use quarrier_gauge::report::{EarlierReport, Report};

/// Maximum size of a report.
const FILE_BYTES_MOST: u64 = 256 << 20;

/// A report with the name of its file.
pub(super) struct Earlier {
    name: String,
    report: Report,
}

impl Earlier {
    pub(super) fn read(path: &Path, stop: &AtomicBool) -> Result<Self, String> {
        Ok(Earlier { name: path.display().to_string(), report: read(path, stop)? })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Reads a report that `--json` wrote.
pub(super) fn read(path: &Path, stop: &AtomicBool) -> Result<Report, String> {
    let name = path.display().to_string();
    let bytes = read_bounded(path, "report", FILE_BYTES_MOST, stop);
    let bytes = bytes.map_err(|error| error.to_string())?;
    Report::from_json(&name, &bytes).map_err(|error| error.to_string())
}

/// Compares the report with each earlier one.
pub(super) fn comparisons<'r>(earlier: &'r [Earlier], report: &'r Report) -> Vec<Comparison<'r>> {
    earlier.iter().map(|earlier| compare(&earlier.report, report)).collect()
}

/// The same comparisons for the page.
pub(super) fn against<'r>(
    earlier: &'r [Earlier],
    comparisons: &'r [Comparison<'r>],
) -> Vec<EarlierReport<'r>> {
    let pairs = earlier.iter().zip(comparisons);
    pairs
        .map(|(earlier, comparison)| EarlierReport {
            name: &earlier.name,
            report: &earlier.report,
            comparison,
        })
        .collect()
}
