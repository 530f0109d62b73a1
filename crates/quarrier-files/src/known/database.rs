//! Hash sets in SQLite, as NSRL publishes them (RDS v3). Hashes are looked up in the file, by an index
//! that it must have.
//!
//! The file may be hostile. It is opened read-only and immutable, so that no journal beside it is
//! replayed. Memory and the steps of a look-up are bounded.

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

/// The magic number of a SQLite file.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The file header, which changes with every write.
const HEADER_BYTES: usize = 100;
/// Relations that may hold hashes, the most common first.
const RELATIONS: [&str; 3] = ["FILE", "METADATA", "DISTINCT_HASH"];
/// SQLite virtual machine steps between calls of the progress handler.
const STEP: i32 = 1000;
/// Maximum calls of the progress handler for one look-up, which takes about a hundred steps.
const STEPS_MAX: u64 = 2000;
/// Maximum memory for SQLite, in bytes.
const MEMORY_BYTES_MAX: i64 = 256 << 20;
/// Maximum length of a string or row, in bytes.
const LENGTH_BYTES_MAX: i32 = 1 << 20;

/// The hash column that has an index.
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
    /// Incremented by the progress handler of the connection.
    steps: Arc<AtomicU64>,
    query: String,
    column: Column,
    fingerprint: [u8; 32],
}

impl Database {
    /// Opens the database at `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for a file that is damaged, has no hashes, or has no index of
    /// them; errors of the operating system.
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
        let name = quarrier_core::name::of_path(path);
        let connection = Mutex::new(connection);
        Ok(Database { name, connection, steps, query, column, fingerprint })
    }

    /// Whether the database contains a file with one of these hashes.
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

    /// The hashes that a look-up needs besides SHA-256.
    pub(super) fn needs(&self) -> HashKinds {
        HashKinds {
            md5: self.column == Column::Md5,
            sha1: self.column == Column::Sha1,
            blake3: false,
        }
    }

    /// Identifies the contents.
    pub(super) fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }
}

/// The hash of the file's length and header, which contains a change counter.
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

/// The URI by which SQLite opens the file as immutable, without locks and journals.
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

/// Limits the resources that a hostile file can make SQLite use.
fn bound(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LENGTH_BYTES_MAX)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, 100)?;
    connection.set_limit(Limit::SQLITE_LIMIT_COMPOUND_SELECT, 10)?;
    // This pragma returns a row, so it runs as a query.
    let heap = format!("PRAGMA hard_heap_limit={MEMORY_BYTES_MAX}");
    connection.query_row(&heap, [], |_| Ok(()))?;
    connection.execute_batch("PRAGMA cell_size_check=ON; PRAGMA query_only=ON")
}

/// Finds an indexed column; returns the look-up statement and the column.
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
                // The relation or column does not exist.
                Err(rusqlite::Error::SqlInputError { .. }) => {}
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {}
                Err(error) => return Err(refused(error)),
            }
        }
    }
    Err(invalid(match unindexed {
        Some((relation, column)) => format!(
            "is an SQLite database without an index of its hashes; create one: sqlite3 FILE 'CREATE INDEX \
             known ON {relation}({column})'"
        ),
        None => {
            "is an SQLite database without hashes: it has no table FILE with sha256, sha1 or md5"
                .to_string()
        }
    }))
}

/// The query plan of SQLite, one string per step.
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
