//! A durable table that grows: the messages of a file are appended in parts of any size to a data
//! folder, which is closed or dropped and opened again between them; its columns are stored and merged at
//! random, after retention has perhaps removed other messages.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::kept::Retention;
use quarrier::{DataFolder, KeptLoad};
use quarrier_core::source::Memory;
use quarrier_messages::{Format, Table};

use crate::draw::Draw;

/// Appends the lines in parts to a data folder at `folder`, and returns the resulting table.
///
/// # Errors
/// If the folder cannot be written.
pub(super) fn grown(
    draw: &mut Draw,
    lines: &[String],
    folder: &Path,
) -> std::io::Result<Arc<Table>> {
    let stop = Arc::new(AtomicBool::new(false));
    let workers = 1 + draw.below(4);
    let table = |kept: &DataFolder| kept.table("t", workers, &stop).map_err(std::io::Error::other);
    let load = KeptLoad::new("t").format(Some(Format::Json)).workers(workers);
    let mut kept = open(folder)?;
    if draw.chance(30) {
        let count = draw.magnitude(1, lines.len()).min(lines.len());
        let source = Memory::new("gone", crate::file::joined(&lines[..count]).into_bytes());
        load.source(&kept, &source, &stop, &mut ()).map_err(std::io::Error::other)?;
        if draw.chance(50) {
            table(&kept)?;
        }
        let nothing = Retention { bytes_max: Some(0), age_max: None };
        for (bounds, is_applied) in [(nothing, true), (Retention::default(), false)] {
            kept.set_retention("t", bounds).map_err(std::io::Error::other)?;
            if is_applied {
                kept.tend(workers, &stop).map_err(std::io::Error::other)?;
            }
        }
    }
    let mut rest = lines;
    while !rest.is_empty() {
        let count = draw.magnitude(1, lines.len()).min(rest.len());
        let (part, later) = rest.split_at(count);
        rest = later;
        let source = Memory::new("part", crate::file::joined(part).into_bytes());
        load.source(&kept, &source, &stop, &mut ()).map_err(std::io::Error::other)?;
        if draw.chance(60) {
            table(&kept)?;
        }
        if draw.chance(30) {
            kept.tend(workers, &stop).map_err(std::io::Error::other)?;
        }
        if draw.chance(30) {
            kept.checkpoint().map_err(std::io::Error::other)?;
        }
        if draw.chance(30) {
            if draw.chance(50) {
                kept.close().map_err(std::io::Error::other)?;
            } else {
                drop(kept);
            }
            kept = open(folder)?;
        }
    }
    table(&kept)
}

fn open(folder: &Path) -> std::io::Result<DataFolder> {
    // Small segments, so that there are several; a batch has up to 1 MiB.
    DataFolder::open_with(folder, 4 << 20).map_err(std::io::Error::other)
}
