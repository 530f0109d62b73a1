//! The file of a profile, written whole or not at all, and validated when read.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;

use super::{FORMAT, MachineProfile};
use crate::error::{Error, Result};

/// Maximum size of a profile in bytes.
const FILE_BYTES_MOST: u64 = 1 << 20;
/// Maximum length of a list.
const LIST_MOST: usize = 4096;

impl MachineProfile {
    /// Loads the profile at `path`; `None` if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a profile of this version: larger than 1 MiB, not JSON,
    /// another format, an impossible number. The machine should then be measured again.
    pub fn load(path: &Path) -> Result<Option<Self>> {
        let Some(bytes) = read(path, FILE_BYTES_MOST)? else { return Ok(None) };
        let profile = parse(&bytes).map_err(|reason| bad(path, &reason))?;
        Ok(Some(profile))
    }

    /// Writes the profile to `path`, replacing any file there, and creates the folders above it.
    ///
    /// # Errors
    /// The operating system's error; no partial file is left behind.
    pub fn save(&self, path: &Path) -> Result<()> {
        write(path, self)
    }
}

/// Reads the file at `path`; `None` if there is no file.
pub(super) fn read(path: &Path, bytes_most: u64) -> Result<Option<Vec<u8>>> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(Error::io(path.display().to_string(), "open", error)),
    };
    let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
    if !is_file {
        return Err(bad(path, "is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Error::io(path.display().to_string(), "read", error))?;
    if bytes.len() as u64 > bytes_most {
        return Err(bad(path, "is larger than any profile"));
    }
    Ok(Some(bytes))
}

/// Writes `content` as JSON, replacing any file at `path`, whole or not at all.
pub(super) fn write(path: &Path, content: &impl Serialize) -> Result<()> {
    let wrong = |what: &str| {
        let what = what.to_owned();
        move |error| Error::io(path.display().to_string(), what, error)
    };
    let text = serde_json::to_vec_pretty(content)
        .map_err(|error| wrong("write")(io::Error::other(error)))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(wrong("make the folder of"))?;
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".part-{}", std::process::id()));
    let part = path.with_file_name(name);
    let written = fs::File::create(&part).and_then(|mut file| {
        file.write_all(&text)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&part, path)).map_err(|error| {
        // The partial file may not exist.
        let _ = fs::remove_file(&part);
        wrong("write")(error)
    })
}

/// Whether the file is missing, or a file is in the place of a folder, which writing will report.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(super) fn bad(path: &Path, reason: &str) -> Error {
    Error::BadRequest(format!("{}: {reason}; run 'quarrier gauge --quick' again", path.display()))
}

fn parse(bytes: &[u8]) -> std::result::Result<MachineProfile, String> {
    /// The field that every format has.
    #[derive(serde::Deserialize)]
    struct Form {
        format: u32,
    }
    let no_profile = |error: serde_json::Error| format!("is not a profile: {error}");
    let form: Form = serde_json::from_slice(bytes).map_err(no_profile)?;
    if form.format != FORMAT {
        return Err(format!("has format {}, and this version reads {FORMAT}", form.format));
    }
    let profile: MachineProfile = serde_json::from_slice(bytes).map_err(no_profile)?;
    match profile.is_possible() {
        true => Ok(profile),
        false => Err("holds an impossible number".to_string()),
    }
}

impl MachineProfile {
    /// Whether every number is usable for planning (finite, above 0, possible for a machine) and every
    /// list is short enough.
    fn is_possible(&self) -> bool {
        let rate = |rate: f64| rate.is_finite() && rate > 0.0 && rate < 1e18;
        let time = |time: f64| time.is_finite() && time > 0.0 && time < 1e4;
        let count = |count: u32| (1..=1 << 20).contains(&count);
        let threads = |list: &[super::ByThreads]| {
            list.len() <= LIST_MOST
                && list.iter().all(|by| rate(by.per_second) && count(by.threads))
        };
        let blocks = |list: &[super::ByBlock]| {
            list.len() <= LIST_MOST
                && list.iter().all(|by| {
                    rate(by.bytes_per_second)
                        && (1..=1 << 40).contains(&by.block_bytes)
                        && count(by.threads)
                        && count(by.depth)
                })
        };
        let depths = |list: &[super::ByDepth]| {
            list.len() <= LIST_MOST
                && list.iter().all(|by| rate(by.per_second) && count(by.depth) && count(by.threads))
        };
        self.cpu.as_ref().is_none_or(|cpu| cpu.clock_hertz.is_none_or(rate) && threads(&cpu.flops))
            && self.memory.as_ref().is_none_or(|memory| {
                threads(&memory.read)
                    && threads(&memory.copy)
                    && blocks(&memory.cached_file_read)
                    && memory.latency_seconds.is_none_or(time)
            })
            && self.disks.len() <= LIST_MOST
            && self.disks.iter().all(|disk| {
                blocks(&disk.sequential_read)
                    && depths(&disk.random_read)
                    && disk.latency_seconds.is_none_or(time)
            })
            && self.network.as_ref().is_none_or(|network| {
                network.tcp_bytes_per_second.is_none_or(rate)
                    && network.round_trip_seconds.is_none_or(time)
            })
    }
}
