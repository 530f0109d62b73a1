//! A row of a listing, the same in every program and binding.

use std::io::{self, Write};
use std::sync::Arc;

use quarrier_core::civil;
use quarrier_files::{Access, Entry, Extent, Kind, State, Times, WrittenFile, format_time};

/// The names of the columns, in their order.
pub const COLUMNS: [&str; 12] = [
    "source",
    "partition",
    "path",
    "inode",
    "type",
    "state",
    "size",
    "modified",
    "accessed",
    "changed",
    "created",
    "extents",
];

/// A file.
#[derive(Debug, Clone)]
pub struct Row {
    /// The name of the source.
    pub source: Arc<str>,
    /// The number of its partition, from 1; 0 if the file system fills the source.
    pub partition: u32,
    /// The file.
    pub entry: Entry,
    /// The written file; `None` if its bytes were not written.
    pub written: Option<WrittenFile>,
    /// The target of a link, if [requested](crate::Files::targets) and readable.
    pub target: Option<Vec<u8>>,
}

impl Row {
    /// The extents of its bytes in the source: `[[offset, length], …]`.
    pub fn extents(&self) -> Vec<[u64; 2]> {
        self.entry.extents().iter().map(|extent| [extent.offset, extent.length]).collect()
    }

    /// The times modified, accessed, changed and created, in the order of [`COLUMNS`]; `None` if
    /// unknown.
    pub fn times(&self) -> [Option<String>; 4] {
        in_order(&self.entry.times).map(|time| time.map(format_time))
    }
}

/// The times in the order of [`COLUMNS`].
fn in_order(times: &Times) -> [Option<i64>; 4] {
    [times.modified, times.accessed, times.changed, times.created]
}

/// Rows of one source without the written files, in a few allocations that other rows can reuse, so
/// that passing a million rows to another thread costs little.
#[derive(Debug, Default)]
pub struct RowBatch {
    source: Option<Arc<str>>,
    paths: String,
    targets: Vec<u8>,
    extents: Vec<Extent>,
    rows: Vec<Fixed>,
}

/// The columns of fixed size, and where the others end in the batch.
#[derive(Debug)]
struct Fixed {
    partition: u32,
    path_end: usize,
    inode: u64,
    kind: Kind,
    state: State,
    size: u64,
    times: [Option<i64>; 4],
    access: Access,
    target_end: usize,
    extents_end: usize,
}

impl RowBatch {
    /// Adds a row, whose source is that of the others.
    pub fn push(&mut self, row: &Row) {
        if self.source.is_none() {
            self.source = Some(Arc::clone(&row.source));
        }
        let entry = &row.entry;
        self.paths.push_str(&entry.path);
        entry.push_extents(&mut self.extents);
        self.targets.extend(row.target.iter().flatten());
        self.rows.push(Fixed {
            partition: row.partition,
            path_end: self.paths.len(),
            inode: entry.inode,
            kind: entry.kind,
            state: entry.state,
            size: entry.size,
            times: in_order(&entry.times),
            access: entry.access,
            target_end: self.targets.len(),
            extents_end: self.extents.len(),
        });
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Removes the rows, and keeps their memory.
    pub fn clear(&mut self) {
        self.source = None;
        self.paths.clear();
        self.targets.clear();
        self.extents.clear();
        self.rows.clear();
    }

    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = RowView<'_>> {
        let source = self.source.as_deref().unwrap_or_default();
        let (mut path_start, mut target_start, mut extents_start) = (0, 0, 0);
        self.rows.iter().map(move |fixed| {
            let path = &self.paths[path_start..fixed.path_end];
            let target = &self.targets[target_start..fixed.target_end];
            let extents = &self.extents[extents_start..fixed.extents_end];
            (path_start, target_start) = (fixed.path_end, fixed.target_end);
            extents_start = fixed.extents_end;
            RowView {
                source,
                partition: fixed.partition,
                path,
                inode: fixed.inode,
                kind: fixed.kind,
                state: fixed.state,
                size: fixed.size,
                times: fixed.times,
                access: fixed.access,
                target,
                extents,
            }
        })
    }
}

/// A row of a [`RowBatch`].
#[derive(Debug, Clone, Copy)]
pub struct RowView<'b> {
    /// The name of the source.
    pub source: &'b str,
    /// The number of its partition, from 1; 0 if the file system fills the source.
    pub partition: u32,
    /// The path from the root of its file system.
    pub path: &'b str,
    /// Its inode.
    pub inode: u64,
    /// Its type.
    pub kind: Kind,
    /// Whether it is deleted.
    pub state: State,
    /// Its size in bytes.
    pub size: u64,
    /// The times modified, accessed, changed and created, in nanoseconds since 1970.
    pub times: [Option<i64>; 4],
    /// Its mode and owner.
    pub access: Access,
    /// The target of a link; empty if unknown.
    pub target: &'b [u8],
    /// The extents of its bytes in the source.
    pub extents: &'b [Extent],
}

impl RowView<'_> {
    /// Writes a line of a bodyfile for sleuthkit's `mactime`, as `fls -m /` writes it; times are in
    /// seconds. The root has no line.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write_bodyfile(&self, out: &mut impl Write) -> io::Result<()> {
        if self.path == "/" {
            return Ok(());
        }
        out.write_all(b"0|")?;
        if self.partition > 0 {
            write!(out, "/#{}", self.partition)?;
        }
        write_name(self.path, out)?;
        if !self.target.is_empty() {
            out.write_all(b" -> ")?;
            for chunk in self.target.utf8_chunks() {
                write_name(chunk.valid(), out)?;
                chunk.invalid().iter().try_for_each(|byte| write!(out, "\\x{byte:02x}"))?;
            }
        }
        if self.state == State::Deleted {
            out.write_all(b" (deleted)")?;
        }
        let seconds = |time: Option<i64>| time.map_or(0, |time| time.div_euclid(civil::SECOND_NS));
        let [modified, accessed, changed, created] = self.times.map(seconds);
        // Several times as fast as formatting by `write!`.
        let mut digits = itoa::Buffer::new();
        out.write_all(b"|")?;
        out.write_all(digits.format(self.inode).as_bytes())?;
        out.write_all(b"|")?;
        out.write_all(&mode_letters(self.kind, self.access.mode.unwrap_or_default()))?;
        for number in [self.access.user, self.access.group] {
            out.write_all(b"|")?;
            out.write_all(digits.format(number).as_bytes())?;
        }
        out.write_all(b"|")?;
        out.write_all(digits.format(self.size).as_bytes())?;
        for time in [accessed, modified, changed, created] {
            out.write_all(b"|")?;
            out.write_all(digits.format(time).as_bytes())?;
        }
        out.write_all(b"\n")
    }
}

/// Writes a name. A bar would end the field, and a line feed the line: a name could forge lines.
fn write_name(name: &str, out: &mut impl Write) -> io::Result<()> {
    let splits = |byte: &u8| *byte == b'|' || byte.is_ascii_control();
    for part in name.as_bytes().split_inclusive(splits) {
        match part.split_last() {
            Some((last, before)) if splits(last) => {
                out.write_all(before)?;
                write!(out, "\\x{last:02x}")?;
            }
            _ => out.write_all(part)?,
        }
    }
    Ok(())
}

/// Type and mode as sleuthkit shows them: the type by the name, a slash, the type by the inode, and the
/// permissions as `ls` shows them.
fn mode_letters(kind: Kind, mode: u16) -> [u8; 12] {
    let (name, inode) = match (kind, mode >> 12) {
        (Kind::File, _) => (b'r', b'r'),
        (Kind::Folder, _) => (b'd', b'd'),
        (Kind::Link, _) => (b'l', b'l'),
        (Kind::Other, 1) => (b'p', b'p'),
        (Kind::Other, 2) => (b'c', b'c'),
        (Kind::Other, 6) => (b'b', b'b'),
        (Kind::Other, 12) => (b's', b'h'),
        (Kind::Other, _) => (b'-', b'-'),
    };
    let mut letters = *b"-/----------";
    (letters[0], letters[2]) = (name, inode);
    for (bit, letter) in b"xwrxwrxwr".iter().enumerate() {
        if mode >> bit & 1 != 0 {
            letters[11 - bit] = *letter;
        }
    }
    // Set-user, set-group and sticky are shown in place of the three `x`.
    for (bit, at, letter) in [(11, 5, b's'), (10, 8, b's'), (9, 11, b't')] {
        if mode >> bit & 1 != 0 {
            letters[at] = if letters[at] == b'x' { letter } else { letter.to_ascii_uppercase() };
        }
    }
    letters
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use quarrier_files::Content;

    use super::*;

    fn row(number: u64) -> Row {
        let mut content = Content::default();
        let run = |place, length| quarrier_files::Run { place, length };
        content.runs = match number % 3 {
            0 => Vec::new(),
            1 => vec![run(Some(4096), 4096), run(Some(8192), 4096), run(None, 4096)],
            _ => vec![run(Some(8192), 512), run(None, 512), run(Some(512), 9_000)],
        };
        let time =
            (!number.is_multiple_of(4)).then(|| number as i64 * 1_000_000_007 - 5_000_000_000);
        let entry = Entry {
            path: format!("/a|b/{number}{}", "ü".repeat(number as usize % 5)),
            inode: number * 7,
            kind: [Kind::File, Kind::Folder, Kind::Link, Kind::Other][number as usize % 4],
            state: [State::Allocated, State::Deleted][number as usize % 2],
            size: number * 3_000,
            times: Times { modified: time, created: Some(number as i64), ..Times::default() },
            access: Access {
                mode: (!number.is_multiple_of(5)).then_some(number as u16 * 0o1537),
                user: number as u32,
                group: number as u32 * 100,
            },
            content,
        };
        let target = (entry.kind == Kind::Link).then(|| b"../a|b\xFF".repeat(number as usize % 3));
        Row { source: "image".into(), partition: number as u32 % 3, entry, written: None, target }
    }

    #[test]
    fn a_batch_has_the_columns_of_its_rows() {
        let mut batch = RowBatch::default();
        for _ in 0..2 {
            assert!(batch.is_empty() && batch.rows().next().is_none());
            let rows: Vec<Row> = (0..40).map(row).collect();
            rows.iter().for_each(|row| batch.push(row));
            assert_eq!(batch.len(), 40);
            for (view, Row { source, partition, entry, target, .. }) in batch.rows().zip(&rows) {
                assert_eq!(view.target, target.as_deref().unwrap_or_default());
                assert_eq!(view.access, entry.access);
                assert_eq!((view.source, view.partition), (&**source, *partition));
                assert_eq!((view.path, view.inode), (entry.path.as_str(), entry.inode));
                assert_eq!((view.kind, view.state), (entry.kind, entry.state));
                assert_eq!((view.size, view.extents), (entry.size, &entry.extents()[..]));
                assert_eq!(view.times, in_order(&entry.times));
            }
            batch.clear();
        }
    }

    #[test]
    fn a_name_cannot_forge_a_line_of_a_bodyfile() {
        let (mut batch, mut hostile) = (RowBatch::default(), row(3));
        hostile.entry.path = "/a\n0|/b|7|\r\x1b[2J\x7f\tü".into();
        batch.push(&hostile);
        let mut lines = Vec::new();
        batch.rows().for_each(|row| row.write_bodyfile(&mut lines).unwrap());
        let line = String::from_utf8(lines).unwrap();
        let name = "/a\\x0a0\\x7c/b\\x7c7\\x7c\\x0d\\x1b[2J\\x7f\\x09ü (deleted)";
        assert!(line.starts_with(&format!("0|{name}|21|")), "{line}");
        assert_eq!((line.lines().count(), line.split('|').count()), (1, 11));
    }

    #[test]
    fn lines_of_a_bodyfile_have_eleven_fields() {
        let mut batch = RowBatch::default();
        (3..6).for_each(|number| batch.push(&row(number)));
        let mut lines = Vec::new();
        batch.rows().for_each(|row| row.write_bodyfile(&mut lines).unwrap());
        let expected = "\
            0|/a\\x7cb/3üüü (deleted)|21|-/---S-wxr-t|3|300|9000|0|-2|0|0\n\
            0|/#1/a\\x7cb/4üüüü|28|r/rr-srwsr--|4|400|12000|0|0|0|0\n\
            0|/#2/a\\x7cb/5 (deleted)|35|d/d---------|5|500|15000|0|0|0|0\n";
        assert_eq!(String::from_utf8(lines).unwrap(), expected);
    }

    #[test]
    fn modes_are_as_fls_prints_them() {
        for (kind, mode, letters) in [
            (Kind::File, 0o100_644, "r/rrw-r--r--"),
            (Kind::File, 0o107_644, "r/rrwSr-Sr-T"),
            (Kind::File, 0o104_751, "r/rrwsr-x--x"),
            (Kind::Folder, 0o041_777, "d/drwxrwxrwt"),
            (Kind::Folder, 0o042_750, "d/drwxr-s---"),
            (Kind::Link, 0o120_777, "l/lrwxrwxrwx"),
            (Kind::Other, 0o010_644, "p/prw-r--r--"),
            (Kind::Other, 0o020_600, "c/crw-------"),
            (Kind::Other, 0o060_600, "b/brw-------"),
            (Kind::Other, 0o140_755, "s/hrwxr-xr-x"),
            (Kind::Other, 0, "-/----------"),
        ] {
            assert_eq!(str::from_utf8(&mode_letters(kind, mode)), Ok(letters));
        }
    }
}
