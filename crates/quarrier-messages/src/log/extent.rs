//! The bytes of each segment that belong to the durable log, for a copy of it.

use std::io;

use super::disk::Disk;
use super::error::{Error, Result};
use super::segment;
use super::steps::{head_of, segments};

/// The end of the durable log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Durable {
    /// The last segment, by its first mark.
    pub(crate) segment: u64,
    /// The salt of that segment.
    pub(crate) salt: u64,
    /// The end in that segment.
    pub(crate) end: u64,
    /// The mark of the next message.
    pub(crate) next_mark: u64,
}

/// The part of a segment that belongs to the log: its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentExtent {
    pub(crate) first_mark: u64,
    pub(crate) salt: u64,
    pub(crate) end: u64,
    /// The first mark of the next segment; None for the last one, which still grows.
    pub(crate) next_mark: Option<u64>,
}

impl SegmentExtent {
    /// Returns the name of the segment's file.
    pub(crate) fn name(&self) -> String {
        segment::name(self.first_mark)
    }
}

/// Returns the extents of all segments up to the end of the durable log, from the one that has the mark `from` on,
/// or else from the oldest one.
///
/// # Errors
/// [`Error::Io`] if a segment cannot be read; also if it is damaged so that its end is unknown.
pub(crate) fn extents_from(
    disk: &dyn Disk,
    from: u64,
    durable: Durable,
) -> Result<Vec<SegmentExtent>> {
    let mut all = segments(disk)?;
    all.retain(|(mark, _)| *mark <= durable.segment);
    let first = all.partition_point(|(mark, _)| *mark <= from).saturating_sub(1);
    all.drain(..first);
    let mut heads = Vec::with_capacity(all.len());
    for (mark, name) in &all {
        let head = head_of(disk, name)?.filter(|head| head.first_mark == *mark);
        heads.push(head.ok_or_else(|| unknown(disk, name))?);
    }
    let mut extents = Vec::with_capacity(heads.len());
    for (at, head) in heads.iter().enumerate() {
        let next = heads.get(at + 1);
        let end = match next {
            Some(next) => next.before.filter(|it| it.salt == head.salt).map(|it| it.end),
            None => (durable.salt == head.salt).then_some(durable.end),
        };
        let end = end.ok_or_else(|| unknown(disk, &all[at].1))?;
        let (first_mark, salt) = (head.first_mark, head.salt);
        let next_mark = next.map(|next| next.first_mark);
        extents.push(SegmentExtent { first_mark, salt, end, next_mark });
    }
    Ok(extents)
}

fn unknown(disk: &dyn Disk, name: &str) -> Error {
    let error = io::Error::new(io::ErrorKind::InvalidData, "its head, or the next one, is damaged");
    Error::io(disk.path(name), "find its end", error)
}
