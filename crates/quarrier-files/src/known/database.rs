//! Hash sets in SQLite, as NSRL publishes them (RDS v3): hashes are looked up in the file, by an index
//! that it has.
//!
//! The file may be hostile. It is opened read-only, as one that nothing changes, so that no journal
//! beside it is followed; the memory of SQLite and the steps of a look-up are bounded.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use quarrier_core::hex;
use quarrier_core::sync::lock;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use crate::digests::{Digests, HashKinds, Hasher};

/// How a file of SQLite begins.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The header of a file, which changes with its contents.
const HEADER_BYTES: usize = 100;
/// Relations that may hold hashes, the usual one first.
const RELATIONS: [&str; 3] = ["FILE", "METADATA", "DISTINCT_HASH"];
/// Steps of the machine of SQLite after which it is asked whether it goes on.
const STEP: i32 = 1000;
/// So many times that many steps for a look-up, which takes a hundred or so.
const STEPS_MAX: u64 = 2000;
/// The most memory that SQLite takes, in bytes.
const MEMORY_BYTES_MAX: i64 = 256 << 20;
/// The longest text or row, in bytes.
const LENGTH_BYTES_MAX: i32 = 1 << 20;

/// The hash that a database finds fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Sha256,
    Sha1,
    Md5,
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Column::Sha256 => "sha256",
            Column::Sha1 => "sha1",
            Column::Md5 => "md5",
        }
    }
}

/// An open database.
pub(super) struct Database {
    name: String,
    connection: Mutex<Connection>,
    /// Counted by the connection's handler.
    steps: Arc<AtomicU64>,
    query: String,
    column: Column,
    fingerprint: [u8; 32],
}

impl Database {
    /// Opens the database at `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for a file that is damaged, has no hashes, or would have to be read
    /// as a whole for each; the system's error.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let fingerprint = fingerprint(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(uri(path), flags).map_err(refused)?;
        let steps = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&steps);
        let is_over = move || counted.fetch_add(1, Ordering::Relaxed) >= STEPS_MAX;
        connection.progress_handler(STEP, Some(is_over)).map_err(refused)?;
        bound(&connection).map_err(refused)?;
        let (query, column) = look_up(&connection)?;
        let name = path.display().to_string();
        let connection = Mutex::new(connection);
        Ok(Database { name, connection, steps, query, column, fingerprint })
    }

    /// Whether it has a file with these hashes.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it is damaged.
    pub(super) fn has(&self, digests: &Digests) -> io::Result<bool> {
        let hash = match self.column {
            Column::Sha256 => hex::encode(&digests.sha256),
            Column::Sha1 => digests.sha1.as_ref().map(|hash| hex::encode(hash)).unwrap_or_default(),
            Column::Md5 => digests.md5.as_ref().map(|hash| hex::encode(hash)).unwrap_or_default(),
        };
        let both = [hash.to_ascii_uppercase(), hash];
        let connection = lock(&self.connection);
        self.steps.store(0, Ordering::Relaxed);
        let found = connection.prepare(&self.query).and_then(|mut query| {
            query.query_row(both, |_| Ok(())).optional().map(|row| row.is_some())
        });
        found.map_err(|error| {
            let error = refused(error);
            io::Error::new(error.kind(), format!("{}: {error}", self.name))
        })
    }

    /// The hashes that a look-up needs beside SHA-256.
    pub(super) fn needs(&self) -> HashKinds {
        HashKinds {
            md5: self.column == Column::Md5,
            sha1: self.column == Column::Sha1,
            blake3: false,
        }
    }

    /// Identifies its contents.
    pub(super) fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }
}

/// The hash of a file's length and header, which counts its changes.
fn fingerprint(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut header = [0; HEADER_BYTES];
    file.read_exact(&mut header)
        .map_err(|_| invalid("is a damaged SQLite database".to_string()))?;
    let mut hasher = Hasher::sha256();
    hasher.update(&file.metadata()?.len().to_le_bytes());
    hasher.update(&header);
    Ok(hasher.finish().sha256)
}

/// The file as SQLite names it: it does not change, so there are no locks and no journals.
fn uri(path: &Path) -> String {
    let mut uri = "file:".to_string();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(byte));
            }
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    uri
}

/// Bounds what a hostile file can make SQLite do.
fn bound(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LENGTH_BYTES_MAX)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, 100)?;
    connection.set_limit(Limit::SQLITE_LIMIT_COMPOUND_SELECT, 10)?;
    // Returns its value, so it is a query.
    let heap = format!("PRAGMA hard_heap_limit={MEMORY_BYTES_MAX}");
    connection.query_row(&heap, [], |_| Ok(()))?;
    connection.execute_batch("PRAGMA cell_size_check=ON; PRAGMA query_only=ON")
}

/// The statement that looks a hash up by an index, and whose hash.
fn look_up(connection: &Connection) -> io::Result<(String, Column)> {
    let mut unindexed = None;
    for relation in RELATIONS {
        for column in [Column::Sha256, Column::Sha1, Column::Md5] {
            let name = column.name();
            let query =
                format!("SELECT 1 FROM \"{relation}\" WHERE \"{name}\" IN (?1, ?2) LIMIT 1");
            match plan(connection, &query) {
                Ok(steps) if steps.iter().any(|step| step.starts_with("SCAN")) => {
                    unindexed.get_or_insert((relation, name));
                }
                Ok(_) => return Ok((query, column)),
                // No such relation or column.
                Err(rusqlite::Error::SqlInputError { .. }) => {}
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {}
                Err(error) => return Err(refused(error)),
            }
        }
    }
    Err(invalid(match unindexed {
        Some((relation, column)) => format!(
            "is an SQLite database without an index of its hashes; make one: sqlite3 FILE 'CREATE INDEX \
             known ON {relation}({column})'"
        ),
        None => {
            "is an SQLite database without hashes: it has no table FILE with sha256, sha1 or md5"
                .to_string()
        }
    }))
}

/// How SQLite would carry a query out, a step each.
fn plan(connection: &Connection, query: &str) -> rusqlite::Result<Vec<String>> {
    let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {query}"))?;
    let steps = explained.query_map(["", ""], |row| row.get::<_, String>(3))?;
    steps.collect()
}

fn refused(error: rusqlite::Error) -> io::Error {
    invalid(match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            format!("is a damaged SQLite database: {error}")
        }
        Some(ErrorCode::OperationInterrupted) => {
            "is an SQLite database in which a look-up takes too long".to_string()
        }
        _ => format!("cannot be read as an SQLite database: {error}"),
    })
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
