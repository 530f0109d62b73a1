//! The members of archives, as scopes.

use std::ops::ControlFlow;
use std::sync::Arc;

use quarrier_carve::embedded::{Limits, TakeMembers, Unpacked, archive_kind, members};
use quarrier_carve::{Extent, View};
use quarrier_core::source::Memory;
use quarrier_report::number;
use quarrier_rules::ScopeName;

use super::bytes;
use super::extents::Extents;
use super::files::{File, Group, plain_extents};
use super::going::{BATCH_BYTES_MAX, BATCH_FILES_MAX, Going, SOURCE_NAME};
use super::outcome::ScopeKind;

/// Maximum total size of all members of a source and of their archives, as a multiple of the source's
/// length, or of a gibibyte.
const MEMBERS_TIMES_MAX: u64 = 16;
/// Maximum number of members, over all archives of a source.
const MEMBERS_MAX: u64 = 4 << 20;
/// Length of a file's prefix that identifies an archive.
const HEAD_BYTES: usize = 512;
/// Minimum length of an archive, or of a compressed file: an empty frame of Zstandard.
const ARCHIVE_BYTES_MIN: u64 = 9;
/// Maximum memory of a decoder: the limit of Zstandard's own program.
const DECODER_BYTES_MAX: u64 = 128 << 20;

/// Evaluates the members of all archives: of the source itself, then of files; returns whether to
/// continue.
pub(super) fn judge_members(going: &mut Going<'_, '_>, groups: &[Group]) -> ControlFlow<()> {
    let length = going.source.length();
    let bytes = length.max(1 << 30).saturating_mul(MEMBERS_TIMES_MAX);
    let mut archives = Archives { going, left: Unpacked { bytes, members: MEMBERS_MAX } };
    let whole = Extent { offset: 0, length };
    let source = archives.going.source;
    archives.judge(SOURCE_NAME, &Extents::whole(length), View::of(source, &[whole]))?;
    for group in groups {
        for file in &group.files {
            archives.judge_file(&group.name(file), file)?;
        }
    }
    ControlFlow::Continue(())
}

/// The archives of one source.
struct Archives<'a, 'g, 's> {
    going: &'a mut Going<'g, 's>,
    /// The remaining budget for unpacking.
    left: Unpacked,
}

impl Archives<'_, '_, '_> {
    /// Evaluates the members of a file, if it is an archive; returns whether to continue.
    fn judge_file(&mut self, name: &str, file: &File) -> ControlFlow<()> {
        let (source, stop) = (self.going.source, self.going.stop);
        if self.going.is_stopped() {
            return ControlFlow::Break(());
        }
        let entry = &file.entry;
        if entry.size < ARCHIVE_BYTES_MIN {
            return ControlFlow::Continue(());
        }
        let head = bytes::head_of_file(source, entry, HEAD_BYTES as u64, stop);
        if archive_kind(&head).is_none() {
            return ControlFlow::Continue(());
        }
        let extents = Extents::of(entry);
        if let Some(places) = plain_extents(entry) {
            let places: Vec<Extent> = places
                .iter()
                .map(|place| Extent { offset: place.offset, length: place.length })
                .collect();
            return self.judge(name, &extents, View::of(source, &places));
        }
        // The file is compressed, or has holes.
        let most = self.going.run.search.scope_bytes_max;
        if entry.size > most {
            self.going.done.missing(format!(
                "{name}: the rules of its members are not evaluated: it has {}, more than {}; raise \
                 --rules-max-size",
                number::bytes(entry.size),
                number::bytes(most),
            ));
            return ControlFlow::Continue(());
        }
        match bytes::of_file(source, entry, stop) {
            Ok(read) => {
                self.going.done.could_not_read(&read.unreadable);
                let whole = Extent { offset: 0, length: read.bytes.len() as u64 };
                let memory = Memory::new(name, &read.bytes[..]);
                self.judge_unread(name, &extents, &mut View::of(&memory, &[whole]))
            }
            Err(reason) => {
                let line = format!("{name}: the rules of its members are not evaluated: {reason}");
                self.going.done.missing(line);
                ControlFlow::Continue(())
            }
        }
    }

    /// Evaluates the members of an archive whose bytes lie verbatim in the source.
    fn judge(&mut self, name: &str, extents: &Extents, mut view: View<'_>) -> ControlFlow<()> {
        let judged = self.judge_unread(name, extents, &mut view);
        self.going.done.could_not_read(view.unreadable());
        judged
    }

    /// Evaluates the members of an archive, if it is one; returns whether to continue.
    fn judge_unread(
        &mut self,
        name: &str,
        extents: &Extents,
        view: &mut View<'_>,
    ) -> ControlFlow<()> {
        let head =
            view.take(0, HEAD_BYTES.min(usize::try_from(view.length()).unwrap_or(HEAD_BYTES)));
        let Some(kind) = head.and_then(archive_kind) else { return ControlFlow::Continue(()) };
        // Charge the bytes of the archive, even if its members unpack to nothing.
        self.left.bytes = self.left.bytes.saturating_sub(view.length());
        if self.left.bytes == 0 || self.left.members == 0 {
            self.going.done.missing(format!(
                "{name}: the rules of its members are not evaluated: the archives of the source unpack to more \
                 than the limit",
            ));
            return ControlFlow::Continue(());
        }
        let limits = Limits {
            member_bytes_max: self.going.run.search.scope_bytes_max,
            unpacked_bytes_max: self.left.bytes,
            members_max: self.left.members.min(Limits::default().members_max),
            decoder_bytes_max: DECODER_BYTES_MAX,
            ..Limits::default()
        };
        let stop = self.going.stop;
        let mut batch = Batch {
            going: &mut *self.going,
            archive: name,
            extents,
            waiting: Vec::new(),
            bytes: 0,
            flow: ControlFlow::Continue(()),
        };
        let unpacked = members(kind, view, &limits, stop, &mut batch);
        if batch.flow.is_continue() {
            batch.judge();
        }
        let flow = batch.flow;
        self.left.bytes -= unpacked.bytes.min(self.left.bytes);
        self.left.members -= unpacked.members.min(self.left.members);
        match self.going.is_stopped() {
            true => ControlFlow::Break(()),
            false => flow,
        }
    }
}

/// Members that are evaluated together.
struct Batch<'b, 'g, 's> {
    going: &'b mut Going<'g, 's>,
    /// The scope that is the archive, and its extents.
    archive: &'b str,
    extents: &'b Extents,
    waiting: Vec<Waiting>,
    bytes: u64,
    flow: ControlFlow<()>,
}

/// A member waiting for evaluation.
struct Waiting {
    name: String,
    bytes: Arc<Vec<u8>>,
    extents: Extents,
}

impl Batch<'_, '_, '_> {
    /// Evaluates all waiting members on all threads, and passes them on in order.
    fn judge(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        self.going.done.files += waiting.len() as u64;
        let (run, stop) = (self.going.run, self.going.stop);
        let judged = self.going.on_all_threads(waiting.len(), |place| {
            let one = &waiting[place];
            run.judge_bytes(Arc::clone(&one.bytes), &scope_name(&one.name), stop)
        });
        for (place, scope) in judged {
            let one = &waiting[place];
            let handed = self.going.hand_over(ScopeKind::Member, &one.name, &one.extents, &scope);
            if handed.is_break() {
                self.flow = handed;
                return;
            }
        }
    }
}

impl TakeMembers for Batch<'_, '_, '_> {
    fn member(&mut self, path: &str, bytes: &Arc<Vec<u8>>, place: Option<u64>) -> bool {
        let length = bytes.len() as u64;
        let extents = place.map(|place| self.extents.part(place, length)).unwrap_or_default();
        let name = format!("{}{path}", self.archive);
        self.waiting.push(Waiting { name, bytes: Arc::clone(bytes), extents });
        self.bytes += length;
        if self.bytes >= BATCH_BYTES_MAX || self.waiting.len() >= BATCH_FILES_MAX {
            self.judge();
        }
        self.flow.is_continue()
    }

    fn skipped(&mut self, path: &str, reason: &'static str) {
        if !self.going.is_stopped() && self.flow.is_continue() {
            let line = format!("{}{path}: its rules are not evaluated: {reason}", self.archive);
            self.going.done.missing(line);
        }
    }
}

/// The name of a member as rules can refer to it: its own name is the part after the last `!` and
/// slash.
fn scope_name(path: &str) -> ScopeName {
    let name = path.rsplit(['!', '/']).next().unwrap_or_default().to_string();
    ScopeName { name, path: path.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_member_is_that_in_its_archive() {
        let name = |path| scope_name(path).name;
        assert_eq!(name("/a.zip!word/document.xml"), "document.xml");
        assert_eq!(name("source!b.tar!c.exe"), "c.exe");
        assert_eq!(scope_name("zip/000.zip!d").path, "zip/000.zip!d");
    }
}
