//! Images made by system tools, compared with sleuthkit.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use quarrier_core::source::{FileSource, Memory, Source};
use quarrier_files::{Access, Entry, Kind, Piece, Places, Reach, State, find, read};
use tempfile::TempDir;

pub(super) fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// A folder with an image in it, and files to copy into it.
pub(super) struct Lab {
    folder: TempDir,
}

/// What a bodyfile has of a file: its size, its times in seconds (modified, accessed, changed, created),
/// its permissions, owner and group.
struct ListedFile {
    size: u64,
    times: [i64; 4],
    access: (u16, u32, u32),
}

impl Lab {
    /// A sparse image of `mebibytes`.
    pub(super) fn new(mebibytes: u64) -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab { folder };
        let image = std::fs::File::create(lab.path("image")).unwrap();
        image.set_len(mebibytes << 20).unwrap();
        let files = [
            ("a.txt", 6),
            ("empty", 0),
            ("random.bin", 100_000),
            ("gone.bin", 30_000),
            ("docs/gone too.bin", 20_000),
            ("docs/deep/deeper/leaf.txt", 700),
            ("docs/A long name, with Ümläüten and spaces - and so on.dat", 5_000),
            ("lost folder/lost file with a name.dat", 3_000),
        ];
        for (name, bytes) in files {
            lab.put(&format!("files/{name}"), &noise(name, bytes));
        }
        lab
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Whether a program exists and succeeds.
    pub(super) fn does(&self, program: &str, args: &[&str]) -> bool {
        self.run(program, args).is_some()
    }

    /// The output of a program, or `None` if it is missing or fails.
    pub(super) fn run(&self, program: &str, args: &[&str]) -> Option<Vec<u8>> {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin")).env("MTOOLS_SKIP_CHECK", "1");
        command.env("TZ", "UTC").env("LC_ALL", "C.UTF-8").args(args);
        let output = command.current_dir(self.folder.path()).output().ok()?;
        output.status.success().then_some(output.stdout)
    }

    pub(super) fn source(&self) -> FileSource {
        FileSource::open(&self.path("image")).unwrap()
    }

    /// Whether sleuthkit reads owners: those of NTFS from what follows the attribute, if it is an old one.
    fn has_owners(&self) -> bool {
        !std::fs::read(self.path("image")).unwrap()[3..].starts_with(b"NTFS")
    }

    /// Compares names, sizes, times and content with sleuthkit. Returns the entries, or `None` without
    /// sleuthkit.
    pub(super) fn compare(&self, clock: Clock) -> Option<Vec<Entry>> {
        let source = self.source();
        let entries = entries(&source);
        let Some(output) = self.run("fls", &["-r", "-p", "-m", "/", "image"]) else {
            skip("fls does not run");
            return None;
        };
        let expected = bodyfile(&escaped(&output));
        let key = |entry: &Entry| (entry.path.clone(), entry.inode, entry.state.name());
        let ours: BTreeMap<_, _> = entries.iter().map(|entry| (key(entry), entry)).collect();
        let has_owners = self.has_owners();
        for (key, ListedFile { size, times, access }) in &expected {
            let entry = ours.get(key).unwrap_or_else(|| {
                let same: Vec<_> = ours.keys().filter(|one| one.1 == key.1).collect();
                panic!("{key:?} is missing; there is {same:?}")
            });
            if entry.kind == Kind::File && entry.content.lost.is_none() {
                assert_eq!(entry.size, *size, "{key:?}");
            }
            if entry.content.lost.is_none() {
                clock.check(entry, times);
                let Access { mode, user, group } = entry.access;
                let (user, group) = if has_owners { (user, group) } else { (access.1, access.2) };
                assert_eq!((mode.unwrap_or(0) & 0o7777, user, group), *access, "{key:?}");
            }
        }
        for (key, entry) in &ours {
            let is_own = key.0 == "/" || entry.path.starts_with("/$OrphanFiles");
            let is_nameless = key.0.starts_with("/$") && entry.size == 0;
            assert!(
                is_own || is_nameless || expected.contains_key(key),
                "{key:?} is unknown to fls"
            );
        }
        // Each comparison starts a process, so only some of the many small files are compared.
        let is_file = |entry: &&&Entry| {
            let is_one_of_many = entry.path.contains("/number ") && !entry.inode.is_multiple_of(50);
            let has_bytes = entry.size > 0 && entry.content.lost.is_none();
            entry.kind == Kind::File && has_bytes && !is_one_of_many
        };
        for entry in ours.values().filter(is_file).filter(|entry| !entry.path.contains(':')) {
            let Some(bytes) = self.run("icat", &["-r", "image", &entry.inode.to_string()]) else {
                panic!("icat does not read {}", entry.path)
            };
            assert!(content(&source, entry) == bytes, "bytes of {}", entry.path);
        }
        Some(entries)
    }
}

/// The timestamps of a file system that can be compared with sleuthkit.
#[derive(Clone, Copy)]
pub(super) enum Clock {
    /// All of them.
    Whole,
    /// All but the change time, which sleuthkit lacks or has only by day.
    NotChanged,
    /// Only the modification time, since sleuthkit orders the others differently.
    Modified,
}

impl Clock {
    fn check(self, entry: &Entry, expected: &[i64; 4]) {
        let times = &entry.times;
        let seconds = |time: Option<i64>| time.map_or(0, |ns| ns.div_euclid(1_000_000_000));
        let own = [times.modified, times.accessed, times.changed, times.created].map(seconds);
        let which: &[usize] = match self {
            Clock::Whole => &[0, 1, 2, 3],
            Clock::NotChanged => &[0, 1, 3],
            Clock::Modified => &[0],
        };
        for &one in which {
            // Sleuthkit drops the 10 ms counter of exFAT, which may reach 199, and reports zero times
            // as set.
            let is_same = (expected[one]..=expected[one] + 1).contains(&own[one]) || own[one] == 0;
            assert!(
                is_same,
                "time {one} of {}: {} and not {}",
                entry.path, own[one], expected[one]
            );
        }
    }
}

/// Decodes bytes to a string; bytes that are not UTF-8 become `\xNN`.
fn escaped(bytes: &[u8]) -> String {
    let invalid =
        |bytes: &[u8]| bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    bytes.utf8_chunks().map(|chunk| chunk.valid().to_string() + &invalid(chunk.invalid())).collect()
}

/// HFS+ structures that sleuthkit lists as files.
const HFS_STRUCTURES: [&str; 6] = [
    "/$ExtentsFile",
    "/$CatalogFile",
    "/$BadBlockFile",
    "/$AllocationFile",
    "/$StartupFile",
    "/$AttributesFile",
];

/// Parses a bodyfile, without the entries that sleuthkit makes up.
fn bodyfile(text: &str) -> BTreeMap<(String, u64, &'static str), ListedFile> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [_, path, inode, mode, user, group, size, accessed, modified, changed, created] =
            fields[..]
        else {
            panic!("{line}")
        };
        let is_made_up = mode.starts_with(['v', 'V'])
            || path.contains("$OrphanFiles")
            || path.ends_with("(Volume Label Entry)")
            || path.ends_with("($FILE_NAME)")
            || path.ends_with("($FILE_NAME) (deleted)")
            // NTFS indexes other than those of folders.
            || (inode.contains("-144-") && path.contains(':'))
            || ["/$ALLOC_BITMAP", "/$UPCASE_TABLE"].contains(&path)
            || HFS_STRUCTURES.contains(&path);
        if is_made_up {
            continue;
        }
        let path = path.split(" -> ").next().unwrap();
        let deleted = [" (deleted)", " (deleted-realloc)"];
        let stripped = deleted.iter().find_map(|end| path.strip_suffix(end));
        let state = if stripped.is_some() { State::Deleted } else { State::Allocated };
        let number = |text: &str| text.parse::<i64>().unwrap();
        let inode = inode.split('-').next().unwrap().parse().unwrap();
        let key = (stripped.unwrap_or(path).to_string(), inode, state.name());
        let times = [modified, accessed, changed, created].map(number);
        let access = (permissions(mode), user.parse().unwrap(), group.parse().unwrap());
        all.insert(key, ListedFile { size: size.parse().unwrap(), times, access });
    }
    all
}

/// The permissions in a mode such as `r/rrwxr-xr-x`.
fn permissions(mode: &str) -> u16 {
    let letters = mode.as_bytes()[3..].iter().rev().enumerate();
    letters.fold(0, |mode, (bit, letter)| {
        let special = if bit % 3 == 0 { 0o1000 << (bit / 3) } else { 0 };
        mode | match letter {
            b'-' => 0,
            b'S' | b'T' => special,
            b's' | b't' => special | 1 << bit,
            _ => 1 << bit,
        }
    })
}

/// The mode and the owner of a file that was copied into an image.
pub(super) fn access_of(metadata: &Metadata) -> Access {
    let mode = Some(metadata.mode() as u16);
    Access { mode, user: metadata.uid(), group: metadata.gid() }
}

/// All entries of the only file system of a source.
pub(super) fn entries(source: &dyn Source) -> Vec<Entry> {
    let found = find(source).unwrap();
    assert_eq!(found.systems.len(), 1, "{:?}", found.notices());
    let mut entries = Vec::new();
    let damages = found.systems[0]
        .list(source, Reach::FreeClusters, &false.into(), &mut |entry| {
            entries.push(entry);
            Ok(())
        })
        .unwrap();
    assert_eq!(damages.describe(), Vec::<String>::new());
    entries
}

/// The bytes of an entry.
pub(super) fn content(source: &dyn Source, entry: &Entry) -> Vec<u8> {
    let mut bytes = Vec::new();
    let unreadable = read(source, entry, &mut |piece| {
        match piece {
            Piece::Bytes(more) => bytes.extend_from_slice(more),
            Piece::Zeros(zeros) => bytes.resize(bytes.len() + zeros as usize, 0),
        }
        Ok(())
    })
    .unwrap();
    assert!(unreadable.is_empty());
    bytes
}

/// Lists and reads a volume after random changes of three nonzero bytes, with checksums recomputed: the result
/// is a listing or an error.
pub(super) fn survive(volume: &[u8], seal: fn(&mut [u8])) {
    const CHANGES: usize = 3;
    let places: Vec<usize> = (0..volume.len()).filter(|at| volume[*at] != 0).collect();
    for draw in noise("changes", 300 * CHANGES * 4).chunks_exact(CHANGES * 4) {
        let mut image = volume.to_vec();
        for change in draw.chunks_exact(4) {
            let at = usize::from(change[0]) << 16 | usize::from(change[1]) << 8;
            let at = places[(at | usize::from(change[2])) % places.len()];
            image[at] = if change[3] < 64 { 0xFF } else { change[3] };
        }
        seal(&mut image);
        let source = Memory::new("image", image);
        let Ok(found) = find(&source) else { continue };
        for system in &found.systems {
            let listed = system.list(&source, Reach::FreeClusters, &false.into(), &mut |entry| {
                if entry.size < 1 << 20 {
                    let mut bytes = 0;
                    let done = read(&source, &entry, &mut |piece| {
                        bytes += match piece {
                            Piece::Bytes(piece) => piece.len() as u64,
                            Piece::Zeros(zeros) => zeros,
                        };
                        Ok(())
                    });
                    assert!(done.is_err() || bytes == entry.size, "{entry:?}");
                }
                Ok(())
            });
            assert!(listed.map_or_else(|error| !error.to_string().is_empty(), |_| true));
        }
        let places = Places::read(&source, Reach::FreeClusters, &false.into()).unwrap();
        assert!(places.unallocated().iter().all(|range| range.end <= source.length()));
    }
}

/// The entry with this path.
pub(super) fn named<'e>(entries: &'e [Entry], path: &str) -> &'e Entry {
    entries.iter().find(|entry| entry.path == path).unwrap_or_else(|| {
        let all: Vec<_> = entries.iter().map(|entry| &entry.path).collect();
        panic!("no {path} in {all:#?}")
    })
}

/// Pseudo-random bytes, seeded by name.
pub(super) fn noise(name: &str, bytes: usize) -> Vec<u8> {
    let mut state = name.bytes().fold(0x9E37_79B9_7F4A_7C15u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(next).collect()
}

pub(super) fn folder_of_corpora() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora"))
}

/// A volume mounted by FUSE, which only some users may do.
pub(super) struct Mounted<'l> {
    lab: &'l Lab,
}

impl<'l> Mounted<'l> {
    /// Mounts the image at `mount`, by a program with options.
    pub(super) fn new(lab: &'l Lab, program: &str, options: &str) -> Option<Self> {
        std::fs::create_dir_all(lab.path("mount")).unwrap();
        lab.does(program, &["-o", options, "image", "mount"]).then_some(Mounted { lab })
    }

    pub(super) fn end(self) {}
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        assert!(self.lab.does("umount", &["mount"]), "the volume cannot be unmounted");
    }
}
