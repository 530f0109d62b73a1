//! Hash sets in SQLite, as NSRL publishes them.

use std::path::{Path, PathBuf};

use quarrier_files::{Digests, HashKinds, Hasher, KnownHashes};
use rusqlite::Connection;

/// The schema of RDS v3, abridged.
const FILE: &str = "CREATE TABLE FILE (sha256 VARCHAR NOT NULL, sha1 VARCHAR NOT NULL, md5 VARCHAR NOT \
     NULL, file_name VARCHAR NOT NULL, file_size INTEGER NOT NULL, package_id INTEGER NOT NULL, \
     PRIMARY KEY (sha256, sha1, md5, file_name, file_size, package_id))";
const HASHES: [&str; 3] = [
    "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
    "A9993E364706816ABA3E25717850C26C9CD0D89D",
    "900150983CD24FB0D6963F7D28E17F72",
];

fn digests(bytes: &[u8]) -> Digests {
    let mut hasher = Hasher::new(HashKinds { md5: true, sha1: true, blake3: false });
    hasher.update(bytes);
    hasher.finish()
}

/// A database with the hashes of "abc".
fn database(folder: &Path, name: &str, schema: &str, insert: &str) -> PathBuf {
    let path = folder.join(name);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA page_size=1024").unwrap();
    connection.execute_batch(schema).unwrap();
    if !insert.is_empty() {
        let [sha256, sha1, md5] = HASHES;
        connection.execute(insert, [sha256, sha1, md5]).unwrap();
    }
    path
}

#[test]
fn hashes_are_looked_up_in_the_database_of_nsrl() {
    let folder = tempfile::tempdir().unwrap();
    let insert = "INSERT INTO FILE VALUES (?1, ?2, ?3, 'abc.txt', 3, 1)";
    let odd = "RDS 2026?#%41 modern.db";
    for name in ["RDS.db", odd] {
        let path = database(folder.path(), name, FILE, insert);
        let mut known = KnownHashes::default();
        known.add(&path).unwrap();
        known.sort();
        assert_eq!((known.needs(), known.is_empty()), (HashKinds::default(), false));
        assert!(known.has(&digests(b"abc")).unwrap());
        assert!(!known.has(&digests(b"abd")).unwrap());
    }
    // SQLite leaves no other files behind.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn the_hash_with_an_index_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let by_sha1 = "CREATE TABLE METADATA (sha256, sha1, md5); CREATE INDEX i ON METADATA(sha1)";
    let by_md5 = "CREATE TABLE FILE (sha256 TEXT, sha1 TEXT, md5 TEXT PRIMARY KEY)";
    let by_view = format!("{}; CREATE VIEW FILE AS SELECT * FROM METADATA", by_sha1);
    let of = |md5, sha1| HashKinds { md5, sha1, blake3: false };
    for (name, schema, table, needs) in [
        ("sha1", by_sha1, "METADATA", of(false, true)),
        ("md5", by_md5, "FILE", of(true, false)),
        ("view", &*by_view, "METADATA", of(false, true)),
    ] {
        let insert = format!("INSERT INTO {table} VALUES (lower(?1), ?2, ?3)");
        let path = database(folder.path(), name, schema, &insert);
        let mut known = KnownHashes::default();
        known.add(&path).unwrap();
        assert_eq!(known.needs(), needs, "{name}");
        assert!(known.has(&digests(b"abc")).unwrap(), "{name}");
        assert!(!known.has(&digests(b"")).unwrap(), "{name}");
    }
}

#[test]
fn databases_that_cannot_serve_are_errors_that_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT ";
    for (name, schema, why) in [
        ("empty", "CREATE TABLE t (x)", "without hashes"),
        ("slow", "CREATE TABLE FILE (sha256, md5)", "CREATE INDEX"),
        (
            "view",
            &format!("CREATE VIEW FILE AS {endless} hex(x) AS sha256 FROM c"),
            "without an index",
        ),
        (
            "late",
            &format!(
                "CREATE TABLE T (sha256 PRIMARY KEY); CREATE VIEW FILE AS SELECT sha256 FROM T \
                 WHERE ({endless} count(*) FROM c) > 0"
            ),
            "",
        ),
    ] {
        let path = database(folder.path(), name, schema, "");
        let error = KnownHashes::default().add(&path).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{name}");
        assert!(error.to_string().contains(why), "{name}: {error}");
    }
    let missing = KnownHashes::default().add(&folder.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_damaged_database_gives_an_error_or_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let insert = "INSERT INTO FILE VALUES (?1, ?2, ?3, 'abc.txt', 3, 1)";
    let path = database(folder.path(), "sound", FILE, insert);
    let sound = std::fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged");
    let (abc, other) = (digests(b"abc"), digests(b"abd"));
    let mut errors = 0;
    let mut check = |bytes: &[u8]| {
        std::fs::write(&damaged, bytes).unwrap();
        let mut known = KnownHashes::default();
        let found = known.add(&damaged).and_then(|()| {
            known.has(&abc)?;
            known.has(&other)
        });
        if let Err(error) = found {
            assert!(!error.to_string().is_empty() && !error.to_string().contains('\n'));
            errors += 1;
        }
    };
    for at in (16..sound.len()).step_by(sound.len() / 150) {
        for value in [0, 0xFF, sound[at] ^ 1] {
            let mut bytes = sound.clone();
            bytes[at] = value;
            check(&bytes);
        }
    }
    for length in (17..sound.len()).step_by(sound.len() / 20) {
        check(&sound[..length]);
    }
    assert!(errors > 20, "{errors} errors");
}
