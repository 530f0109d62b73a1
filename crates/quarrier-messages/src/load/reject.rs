//! Rejected messages.

use super::Loaded;
use super::run::Lines;
use crate::frame::Rejected;
use crate::{Fault, Limits};

/// A message that was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// The name of the source.
    pub source: Box<str>,
    /// The line number, from 1.
    pub line: u64,
    /// The offset in the source, after decompression.
    pub offset: u64,
    /// The reason.
    pub fault: Fault,
    /// The message's bytes, or the first [`Limits::reject_bytes_max`] of them.
    pub bytes: Box<[u8]>,
    source_number: usize,
}

impl Reject {
    /// Makes a reject of a message at this line and offset of `source`.
    pub fn new(source: &str, (line, offset): (u64, u64), fault: Fault, bytes: &[u8]) -> Self {
        Reject { source: source.into(), line, offset, fault, bytes: bytes.into(), source_number: 0 }
    }

    /// Returns the sort key of rejects.
    pub(super) fn place(&self) -> (usize, u64) {
        (self.source_number, self.offset)
    }
}

/// The origin of a chunk of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Origin {
    /// The index of the source.
    pub(super) source: usize,
    /// The index of the claim, among those of all sources.
    pub(super) claim: usize,
}

/// Rejects of one worker; their line numbers are known only when all workers are done.
#[derive(Debug, Default)]
pub(super) struct Rejects {
    kept: Vec<RejectedMessage>,
    kept_max: usize,
    bytes_max: usize,
    count: u64,
}

#[derive(Debug)]
struct RejectedMessage {
    origin: Origin,
    line: u64,
    offset: u64,
    fault: Fault,
    bytes: Box<[u8]>,
}

impl Rejects {
    pub(super) fn new(limits: &Limits) -> Self {
        Rejects {
            kept_max: limits.rejects_max,
            bytes_max: limits.reject_bytes_max,
            ..Rejects::default()
        }
    }

    /// Adds a reject; `offset` is that of the chunk's bytes.
    #[cold]
    pub(super) fn add(&mut self, origin: Origin, offset: u64, reject: Rejected<'_>) {
        self.count += 1;
        if self.kept.len() < self.kept_max {
            let bytes = &reject.bytes[..reject.bytes.len().min(self.bytes_max)];
            self.kept.push(RejectedMessage {
                origin,
                line: reject.line,
                offset: offset + reject.at as u64,
                fault: reject.fault,
                bytes: bytes.into(),
            });
        }
    }

    pub(super) fn hand_over(self, names: &[Box<str>], lines: &Lines, to: &mut Loaded) {
        to.rejected += self.count;
        to.rejects.extend(self.kept.into_iter().map(|kept| Reject {
            source: names[kept.origin.source].clone(),
            line: 1 + lines.before(kept.origin) + kept.line,
            offset: kept.offset,
            fault: kept.fault,
            bytes: kept.bytes,
            source_number: kept.origin.source,
        }));
    }
}
