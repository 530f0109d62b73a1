//! Removes old segments from the log.

use std::sync::Arc;
use std::time::Duration;

use super::disk::{Access, Disk, DiskFile};
use super::error::{Error, Result};
use super::segment::{HEAD_BYTES, Head};
use super::steps::segments;

/// The part of a log to keep: by default, all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Maximum bytes of all segments; beyond it, the oldest ones are removed.
    pub bytes_max: Option<u64>,
    /// Maximum age of messages, by the time of their commit. A segment is removed when all of its messages
    /// are older.
    pub age_max: Option<Duration>,
}

/// The segments that retention removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Number of segments.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes whole segments from the oldest on, as long as all of their messages have marks below `checkpoint`.
/// Never removes the last segment.
pub(super) fn retain(disk: &dyn Disk, retention: Retention, checkpoint: u64) -> Result<Removed> {
    let segments = segments(disk)?;
    let mut lengths = Vec::with_capacity(segments.len());
    for (_, name) in &segments {
        lengths.push(length(disk, name)?);
    }
    let mut bytes: u64 = lengths.iter().sum();
    let oldest_us = retention.age_max.map(|age| {
        disk.now_us().saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX))
    });
    let mut removed = Removed::default();
    for (pair, length) in segments.windows(2).zip(&lengths) {
        let [(_, name), (next_mark, next_name)] = pair else { break };
        let is_kept = *next_mark > checkpoint;
        let is_much = retention.bytes_max.is_some_and(|most| bytes > most);
        if is_kept || !(is_much || is_old(disk, next_name, oldest_us)?) {
            break;
        }
        let path = disk.path(name);
        disk.remove(name).map_err(|error| Error::io(&path, "remove it", error))?;
        // Remove them individually, so that a crash leaves no gap.
        disk.sync_folder().map_err(|error| Error::io(&path, "sync its folder", error))?;
        bytes -= length;
        removed.segments += 1;
        removed.bytes += length;
    }
    Ok(removed)
}

/// Returns whether all messages of the oldest segment have marks below `mark`, and it is not the last one.
pub(super) fn is_any_before(disk: &dyn Disk, mark: u64) -> Result<bool> {
    Ok(segments(disk)?.get(1).is_some_and(|(second, _)| *second <= mark))
}

/// Returns whether the previous segment is too old: its messages were committed before this segment was made.
fn is_old(disk: &dyn Disk, next_name: &str, oldest_us: Option<i64>) -> Result<bool> {
    let Some(oldest_us) = oldest_us else { return Ok(false) };
    let path = disk.path(next_name);
    let file = disk.open(next_name, Access::Read).map_err(|e| Error::io(&path, "open it", e))?;
    let mut head = [0; HEAD_BYTES as usize];
    let mut filled = 0;
    while filled < head.len() {
        let read = file.read_at(filled as u64, &mut head[filled..]);
        match read.map_err(|error| Error::io(&path, "read its head", error))? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(Head::from_bytes(&head[..filled]).is_some_and(|(head, _)| head.made_us < oldest_us))
}

pub(super) fn length(disk: &dyn Disk, name: &str) -> Result<u64> {
    let path = disk.path(name);
    let file = disk.open(name, Access::Read).map_err(|e| Error::io(&path, "open it", e))?;
    let file: Arc<dyn DiskFile> = file.into();
    file.length().map_err(|error| Error::io(&path, "read its length", error))
}
