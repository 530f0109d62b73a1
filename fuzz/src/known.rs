//! Hash sets: lists of any bytes, and an SQLite database with any mutations: an error, or an
//! answer.

use quarrier_files::{HashKinds, Hasher, KnownHashes};

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "known", run, once: &[], seeds: SEEDS, words: WORDS };

const DATABASE: &[u8] = include_bytes!("../seeds/known.db");

/// The first byte is the kind: a list, or a database with mutations, each an offset of two bytes, a
/// length, and the new bytes.
const SEEDS: &[&[u8]] = &[
    b"\x00900150983cd24fb0d6963f7d28e17f72  abc\n# x\n%%%% HASHDEEP-1.0\n3,a9993e36,x\n",
    b"\x01",
    b"\x01\x10\x00\x02\x02\x00\x1c\x00\x04\0\0\0\x09",
    b"\x01\x00\x02\x08\x0a\0\0\0\x01\0\x10\0",
    b"\x01\x64\x00\x04\x05\0\0\0",
];

const WORDS: &[&[u8]] = &[&[0xFF; 4], &[0; 8], b"CREATE VIEW FILE AS SELECT", b"index", b"sha256"];

/// Adds a file, and looks two hashes up in it.
///
/// # Panics
/// If a sound database does not find its hash, or an error has no message.
pub fn run(bytes: &[u8]) -> Verdict {
    let Some((kind, rest)) = bytes.split_first() else { return Verdict::Skipped };
    let file = match kind % 2 {
        0 => rest.to_vec(),
        _ => changed(rest),
    };
    let thread = std::thread::current().id();
    let name = format!("quarrier-fuzz-known-{}-{thread:?}", std::process::id());
    let path = std::env::temp_dir().join(name);
    if std::fs::write(&path, &file).is_err() {
        return Verdict::Skipped;
    }
    let mut known = KnownHashes::default();
    let added = known.add(&path);
    known.sort();
    let has = |text: &[u8]| {
        let mut hasher = Hasher::new(HashKinds { md5: true, sha1: true, blake3: false });
        hasher.update(text);
        known.has(&hasher.finish())
    };
    let verdict = match added {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Verdict::Skipped
        }
        Ok(()) => {
            let (abc, other) = (has(b"abc"), has(b"abd"));
            if file == DATABASE {
                assert!(matches!((abc, other), (Ok(true), Ok(false))), "a sound database");
            }
            Verdict::Checked
        }
    };
    drop(known);
    // If it stays, the next input replaces it.
    let _ = std::fs::remove_file(&path);
    verdict
}

/// Makes the database, with mutations.
fn changed(mut rest: &[u8]) -> Vec<u8> {
    let mut file = DATABASE.to_vec();
    while let [low, high, length, more @ ..] = rest {
        let (put, after) = more.split_at(usize::from(*length).min(more.len()));
        let at = (usize::from(*low) | usize::from(*high) << 8) % file.len();
        let room = put.len().min(file.len() - at);
        file[at..at + room].copy_from_slice(&put[..room]);
        rest = after;
    }
    file
}
