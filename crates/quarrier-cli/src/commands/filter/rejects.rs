//! Messages that are left out: counted, the first one told, all of them listed in a file.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use crate::complain;
use crate::output::rejects::reject_row;

/// A message that was left out.
#[derive(Debug)]
pub(super) struct Reject {
    /// Its place in the bytes at hand.
    pub(super) at: usize,
    /// How many lines of these bytes started before its own.
    pub(super) line: u64,
    pub(super) reason: String,
    /// Its bytes, or the first of them.
    pub(super) bytes: Box<[u8]>,
}

/// The file of `--rejects`.
pub(super) struct List {
    name: String,
    out: BufWriter<File>,
}

impl List {
    /// # Errors
    /// What the system says, in words.
    pub(super) fn create(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let file = File::create(path)
            .map_err(|error| format!("{name}: cannot write the rejects: {error}"))?;
        Ok(List { name, out: BufWriter::new(file) })
    }

    fn add(&mut self, source: &str, line: u64, offset: u64, reject: &Reject) -> io::Result<()> {
        let row = reject_row(source, (line, offset), &reject.reason, &reject.bytes);
        writeln!(self.out, "{row}")
    }

    /// How long the list is, for who may have to go [`back_to`](Self::back_to).
    ///
    /// # Errors
    /// What the system says, in words.
    pub(super) fn length(&mut self) -> Result<u64, String> {
        let length = self.out.stream_position();
        length.map_err(|error| format!("{}: cannot write the rejects: {error}", self.name))
    }

    /// Takes back what came after the list had this length.
    ///
    /// # Errors
    /// What the system says, in words.
    pub(super) fn back_to(&mut self, length: u64) -> Result<(), String> {
        let cut = self.out.seek(SeekFrom::Start(length));
        let cut = cut.and_then(|_| self.out.get_ref().set_len(length));
        cut.map_err(|error| format!("{}: cannot write the rejects: {error}", self.name))
    }

    /// # Errors
    /// What the system says, in words.
    pub(super) fn finish(mut self) -> Result<(), String> {
        let flushed = self.out.flush();
        flushed.map_err(|error| format!("{}: cannot write the rejects: {error}", self.name))
    }
}

/// The rejects of one source.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) count: u64,
    first: Option<(u64, String)>,
}

impl Account {
    /// Adds rejects from bytes that start at `offset` of the source, before which `lines` lines
    /// started.
    pub(super) fn add(
        &mut self,
        source: &str,
        (offset, lines): (u64, u64),
        rejects: &[Reject],
        list: &mut Option<List>,
    ) -> Result<(), String> {
        for reject in rejects {
            let line = 1 + lines + reject.line;
            if self.first.is_none() {
                self.first = Some((line, reject.reason.clone()));
            }
            if let Some(list) = list {
                list.add(source, line, offset + reject.at as u64, reject)
                    .map_err(|error| format!("{}: cannot write the rejects: {error}", list.name))?;
            }
        }
        Ok(())
    }

    /// Says how many there were, of so many messages.
    pub(super) fn tell(&self, source: &str, messages: u64, is_listed: bool) {
        let Some((line, reason)) = &self.first else { return };
        let hint = if is_listed { "" } else { "; --rejects FILE lists them" };
        let count = self.count;
        let were = if count == 1 { "was" } else { "were" };
        complain(&format!(
            "{source}: {count} of {messages} messages {were} left out, the first at line {line}: \
             {reason}{hint}"
        ));
    }
}
