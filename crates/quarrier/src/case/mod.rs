//! The case file of an output folder: the command, its input and its output, with hashes that reveal
//! later changes.
//!
//! ```text
//! FOLDER/case.json    {program, command, options, source or sources, outputs, seal, host, clock}
//! ```
//!
//! The seal is the hash of everything before it. Only the host and the clock follow it, so two runs
//! differ in nothing else.

mod hash;
mod verify;

pub(crate) use hash::{of_file, while_hashing};
pub use verify::{Differences, verify};

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use quarrier_files::{Digests, HashKinds, Hasher, format_time};
use serde_json::{Value, json};

/// The name of the case file.
pub const CASE: &str = "case.json";

/// Facts about a run that only the calling program knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// The command line as typed, without passwords.
    pub command: Option<String>,
    /// The name of the machine.
    pub host: Option<String>,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    /// The path, relative to the folder.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// The hash in hexadecimal.
    pub(crate) sha256: String,
    /// Other hashes, with their names.
    pub(crate) more: Vec<(&'static str, String)>,
}

impl Output {
    pub(crate) fn new(path: String, bytes: u64, digests: &Digests, kinds: HashKinds) -> Self {
        Output { path, bytes, sha256: digests.sha256_hex(), more: digests.named(kinds) }
    }

    /// An output of the case file in the subfolder `part`, `None` if it is damaged.
    pub(crate) fn of_part(part: &str, output: &Value) -> Option<Self> {
        let text = |name: &str| output[name].as_str().map(str::to_string);
        let more = ["md5", "sha1", "blake3"].into_iter();
        Some(Output {
            path: format!("{part}/{}", output["path"].as_str()?),
            bytes: output["bytes"].as_u64()?,
            sha256: text("sha256")?,
            more: more.filter_map(|name| Some((name, text(name)?))).collect(),
        })
    }
}

/// A run.
pub(crate) struct Run<'r> {
    pub(crate) verb: &'static str,
    pub(crate) notes: &'r Notes,
    pub(crate) options: Value,
    pub(crate) started: SystemTime,
}

/// The facts about a run over one source.
pub(crate) struct Facts<'f> {
    pub(crate) run: Run<'f>,
    pub(crate) source_name: &'f str,
    pub(crate) source_bytes: u64,
    /// The hashes of the whole source, if all of it was read.
    pub(crate) source_digests: Option<Digests>,
    /// The hashes to record besides SHA-256.
    pub(crate) hashes: HashKinds,
    /// The range that was read.
    pub(crate) range: Range<u64>,
    /// Ranges that could not be read.
    pub(crate) unreadable: &'f [Range<u64>],
}

impl Facts<'_> {
    /// The source, formatted for the case file.
    fn source(&self) -> Value {
        let pairs = |ranges: &[Range<u64>]| -> Vec<[u64; 2]> {
            ranges.iter().map(|range| [range.start, range.end]).collect()
        };
        let mut source = json!({
            "name": self.source_name,
            "bytes": self.source_bytes,
            "sha256": self.source_digests.as_ref().map(Digests::sha256_hex),
        });
        for (name, hash) in self.source_digests.iter().flat_map(|all| all.named(self.hashes)) {
            source[name] = json!(hash);
        }
        source["range"] = json!([self.range.start, self.range.end]);
        source["unreadable"] = json!(pairs(self.unreadable));
        source
    }
}

/// Writes the case file into a folder that has none.
///
/// # Errors
/// The system's error.
pub(crate) fn write(
    folder: &Path,
    facts: &Facts<'_>,
    outputs: impl Iterator<Item = io::Result<Output>>,
) -> io::Result<()> {
    write_run(folder, &facts.run, ("source", facts.source()), outputs)
}

/// Like [`write`], with one source or several as a named value.
///
/// # Errors
/// The system's error.
pub(crate) fn write_run(
    folder: &Path,
    run: &Run<'_>,
    (source_key, source): (&'static str, Value),
    outputs: impl Iterator<Item = io::Result<Output>>,
) -> io::Result<()> {
    quarrier_carve::folder::write_new(folder, CASE, |file| {
        let mut out = Sealed { out: file, hasher: Hasher::sha256() };
        let head = [
            ("program", json!({"name": "quarrier", "version": env!("CARGO_PKG_VERSION")})),
            ("verb", json!(run.verb)),
            ("command", json!(run.notes.command)),
            ("options", run.options.clone()),
            (source_key, source),
        ];
        out.write_all(b"{\n")?;
        for (name, value) in head {
            writeln!(out, "\"{name}\": {value},")?;
        }
        out.write_all(b"\"outputs\": [")?;
        for (number, output) in outputs.enumerate() {
            let Output { path, bytes, sha256, more } = output?;
            let comma = if number > 0 { "," } else { "" };
            let mut line = json!({"path": path, "bytes": bytes, "sha256": sha256});
            more.into_iter().for_each(|(name, hash)| line[name] = json!(hash));
            write!(out, "{comma}\n{line}")?;
        }
        out.write_all(b"\n],\n")?;
        let Sealed { out, hasher } = out;
        let seal = hasher.finish().sha256_hex();
        let ended = SystemTime::now();
        let clock = json!({"started": moment(run.started), "ended": moment(ended)});
        let host = json!(run.notes.host);
        write!(out, "{SEAL}\"{seal}\",\n\"host\": {host},\n\"clock\": {clock}\n}}\n")
    })
}

/// The start of the line with the seal.
const SEAL: &str = "\"seal\": ";

/// A writer that hashes its bytes.
struct Sealed<'o> {
    out: &'o mut dyn Write,
    hasher: Hasher,
}

impl Write for Sealed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn moment(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    format_time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
