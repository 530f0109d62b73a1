//! Checks messages piece by piece while they arrive, and puts the valid ones aside as batches for the log.

use std::sync::Arc;

use quarrier_core::source::{Memory, Source};

use super::blocks::{Checked, checked_by};
use super::definition::{Checker, Definition};
use super::encoding::encoding_of;
use super::intake::failed;
use super::spool::Spool;
use crate::load::{Block, Cutter, decompressed};
use crate::log::{Batch, Encoding};
use crate::{Error, Format, FormatReader, Limits, Opening, Reject, Result};

/// Maximum length of a piece in bytes, unless a message is longer.
const PIECE_BYTES: usize = 128 << 10;
/// The name of the messages in errors and rejects.
const NAME: &str = "messages";

/// How to parse messages whose format is known.
struct Parser {
    encoding: Encoding,
    reader: FormatReader,
    opening: Opening,
    cutter: Cutter,
    /// The record that precedes the messages of a batch; None until the first piece is cut.
    header: Option<Vec<u8>>,
}

/// Messages on their way into batches.
pub(super) struct Batches {
    /// The format as requested; None: detect it.
    format: Option<Format>,
    definition: Option<Arc<Definition>>,
    limits: Limits,
    parser: Option<Parser>,
    /// The bytes after the last piece.
    waiting: Spool,
    /// The number of waiting bytes at which they are parsed.
    wanted_bytes: u64,
    /// Maximum length of a batch in bytes, unless a message is longer.
    batch_bytes: u64,
    payloads: Spool,
    /// The length and the number of messages of each batch.
    batches: Vec<(usize, u32)>,
    is_finished: bool,
    lines: u64,
    pub(super) messages: u64,
    pub(super) rejected: u64,
    /// The first rejected message.
    pub(super) first: Option<Reject>,
}

impl Batches {
    /// Prepares for messages of a format, or of the format that their first bytes indicate.
    pub(super) fn new(
        format: Option<Format>,
        definition: Option<Arc<Definition>>,
        (waiting, payloads): (Spool, Spool),
        batch_bytes: u64,
    ) -> Self {
        Batches {
            format,
            definition,
            limits: Limits { rejects_max: 1, ..Limits::default() },
            parser: None,
            waiting,
            wanted_bytes: (PIECE_BYTES as u64).min(batch_bytes),
            batch_bytes,
            payloads,
            batches: Vec::new(),
            is_finished: false,
            lines: 0,
            messages: 0,
            rejected: 0,
            first: None,
        }
    }

    /// Returns whether `more` bytes can wait in memory.
    pub(super) fn can_wait(&self, more: usize) -> bool {
        self.waiting.length() + (more as u64) < self.wanted_bytes && self.waiting.is_in_memory(more)
    }

    /// Appends bytes, and checks the messages that are complete.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = self.wanted_bytes.saturating_sub(self.waiting.length());
            let room = usize::try_from(room).unwrap_or(usize::MAX).max(1);
            let (piece, rest) = bytes.split_at(room.min(bytes.len()));
            self.waiting.push(piece).map_err(failed)?;
            bytes = rest;
            if self.waiting.length() >= self.wanted_bytes {
                self.check(false)?;
            }
        }
        Ok(())
    }

    /// Returns whether there are so few messages that checking them takes no time.
    pub(super) fn is_small(&self) -> bool {
        self.batches.is_empty() && self.waiting.length() < PIECE_BYTES as u64
    }

    /// Checks the rest, after all bytes have arrived.
    pub(super) fn finish(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_finished, true) {
            return Ok(());
        }
        self.check(true)
    }

    /// Checks the messages that are complete; at the end, all.
    fn check(&mut self, is_over: bool) -> Result<()> {
        let mut bytes = self.waiting.bytes(0, self.waiting.length() as usize).map_err(failed)?;
        let parser = match &mut self.parser {
            Some(parser) => parser,
            none => none.insert(Parser::new(self.format.take(), &bytes, &self.limits)?),
        };
        let mut rest = Vec::new();
        let how = (&parser.reader, self.limits.message_bytes_max);
        let Some(block) = parser.cutter.cut(how, (&mut bytes, is_over), &mut rest) else {
            self.wanted_bytes = 2 * self.waiting.length();
            return Ok(());
        };
        self.waiting.clear();
        self.waiting.push(&rest).map_err(failed)?;
        self.wanted_bytes = (PIECE_BYTES as u64).min(self.batch_bytes).max(rest.len() as u64 + 1);
        // The piece may get a line feed at its end.
        let fits = |batch: &(usize, u32)| self.batch_bytes > (batch.0 + bytes.len()) as u64;
        let begins = !self.batches.last().is_some_and(fits);
        let checked =
            parser.checked((&block, bytes), begins, self.definition.as_deref(), &self.limits);
        self.add(&block, checked, begins)
    }

    fn add(&mut self, block: &Block, checked: Checked, begins: bool) -> Result<()> {
        if let (None, Some(reject)) = (&self.first, checked.rejects.first()) {
            let place = (1 + self.lines + reject.line, block.offset + reject.at);
            self.first = Some(Reject::new(NAME, place, reject.fault, &reject.bytes));
        }
        self.lines += checked.lines;
        self.rejected += checked.rejected;
        if checked.messages == 0 {
            return Ok(());
        }
        self.messages += u64::from(checked.messages);
        self.payloads.push(&checked.payload).map_err(failed)?;
        match self.batches.last_mut().filter(|_| !begins) {
            Some((bytes, messages)) => {
                *bytes += checked.payload.len();
                *messages += checked.messages;
            }
            None => self.batches.push((checked.payload.len(), checked.messages)),
        }
        Ok(())
    }

    /// Returns the batches for a table.
    pub(super) fn of_table(&self, table: u32) -> impl ExactSizeIterator<Item = Result<Batch>> {
        // A batch has messages, so a parser made it.
        let encoding = self.parser.as_ref().map_or(Encoding::Json, |parser| parser.encoding);
        let mut offset = 0;
        self.batches.iter().map(move |(bytes, messages)| {
            let payload = self.payloads.bytes(offset, *bytes).map_err(failed)?;
            offset += *bytes as u64;
            Ok(Batch::new(table, encoding, *messages, payload)?)
        })
    }
}

impl Parser {
    /// Makes a parser for messages that begin with these bytes, of a format that they indicate if none is
    /// given.
    fn new(format: Option<Format>, bytes: &[u8], limits: &Limits) -> Result<Self> {
        let source = Memory::new(NAME, bytes);
        if decompressed(&source)?.is_some() {
            let reason = "they are compressed: send them uncompressed".to_string();
            return Err(Error::Store { place: NAME.to_string(), reason });
        }
        let format = match format {
            Some(format) => format,
            None => Format::of(&source)?,
        };
        let opening = Opening::default();
        Ok(Parser {
            encoding: encoding_of(&format, NAME)?,
            reader: FormatReader::new(&format, limits, &opening),
            opening,
            cutter: Cutter::default(),
            header: None,
        })
    }

    fn checked(
        &mut self,
        block: (&Block, Vec<u8>),
        begins_batch: bool,
        definition: Option<&Definition>,
        limits: &Limits,
    ) -> Checked {
        let opening = &self.opening;
        let header = self.header.get_or_insert_with(|| opening.csv_header().unwrap_or_default());
        let header = if begins_batch { header.as_slice() } else { &[] };
        let mut checker = definition.map(Checker::new);
        checked_by(checker.as_mut(), &mut self.reader, block, (self.encoding, header), limits)
    }
}
