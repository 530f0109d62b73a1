//! Fetches whole remote sources into the cache on disk, so that they can be read without a network.

use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::source::Source;
use quarrier_remote::RemoteSource;

use super::Opened;
use crate::{Error, Result};

/// Bytes per read.
const STEP_BYTES: usize = 8 << 20;

/// The outcome of fetching a source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filled {
    /// The objects of the source, one for each file of an image: names without secrets.
    pub objects: Vec<String>,
    /// The total size of all objects in bytes.
    pub bytes: u64,
    /// The bytes fetched from servers; the cache held the rest.
    pub bytes_fetched: u64,
    /// Objects that are not completely cached, with the reason.
    pub incomplete: Vec<String>,
    /// Whether the run was stopped before its end.
    pub stopped: bool,
}

/// Reads all objects of a remote source, so that the cache holds them. `progress` receives the number of
/// bytes read and the total.
///
/// # Errors
/// [`Error::Unsupported`] for a source that is not remote; [`Error::Remote`] if a range cannot be
/// fetched.
pub fn fill(
    opened: &Opened,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Filled> {
    let objects: &[RemoteSource] = match opened {
        Opened::Remote(object) => std::slice::from_ref(object),
        Opened::FarImage { image, .. } => image.objects(),
        Opened::Local { .. } | Opened::Stream { .. } => {
            let reason = "is not a remote source with random access, so it is not cached";
            let (name, reason) = (opened.name().to_string(), reason.to_string());
            return Err(Error::Unsupported { name, reason });
        }
    };
    let mut filled = Filled {
        objects: objects.iter().map(|object| object.name().to_string()).collect(),
        bytes: objects.iter().map(Source::length).sum(),
        bytes_fetched: 0,
        incomplete: Vec::new(),
        stopped: false,
    };
    let (mut done, mut buffer) = (0, vec![0; STEP_BYTES]);
    for object in objects {
        object.announce(0..object.length());
        let mut at = 0;
        while at < object.length() && !stop.load(Ordering::Relaxed) {
            let read = match object.read_unless(at, &mut buffer, stop) {
                Err(_) if stop.load(Ordering::Relaxed) => break,
                read => read?,
            };
            at += read as u64;
            done += read as u64;
            progress(done, filled.bytes);
        }
        filled.bytes_fetched += object.counters().bytes_fetched;
        filled.stopped |= at < object.length();
        let (name, length) = (object.name(), object.length());
        match object.cached_bytes() {
            Some(held) if held >= length => {}
            _ if filled.stopped => {}
            Some(held) => filled.incomplete.push(format!(
                "{name}: the cache holds {held} of its {length} bytes; make it larger with --cache-size"
            )),
            None => filled.incomplete.push(format!(
                "{name}: is not cached: its server gives neither ETag nor Last-Modified, or the cache cannot \
                 be written"
            )),
        }
    }
    Ok(filled)
}
