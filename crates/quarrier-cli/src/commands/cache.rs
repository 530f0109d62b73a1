//! `quarrier cache`.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier::source::{clear_indexes, fill, index_bytes, is_remote, shown};
use quarrier::{Error, Opener, Sources};
use quarrier_files::format_time;
use quarrier_remote::{Cache as Folder, CacheOptions, CachedObject};

use super::search::progress::Progress;
use super::{broken_output, failed};
use crate::args::{Cache, CacheVerb};
use crate::output::rows::{self, Column, Excerpt, Kind, Layout, Rows, Value};
use crate::{Outcome, complain, host, interrupt};

const LISTED: &[Column] = &[
    Column { name: "source", kind: Kind::Text },
    Column { name: "length", kind: Kind::Unsigned },
    Column { name: "held", kind: Kind::Unsigned },
    Column { name: "disk", kind: Kind::Unsigned },
    Column { name: "used", kind: Kind::Text },
    Column { name: "etag", kind: Kind::Text },
    Column { name: "last_modified", kind: Kind::Text },
];

const VERIFIED: &[Column] = &[
    Column { name: "source", kind: Kind::Text },
    Column { name: "length", kind: Kind::Unsigned },
    Column { name: "verified", kind: Kind::Unsigned },
    Column { name: "damaged", kind: Kind::Json },
];

const FILLED: &[Column] = &[
    Column { name: "source", kind: Kind::Text },
    Column { name: "length", kind: Kind::Unsigned },
    Column { name: "fetched", kind: Kind::Unsigned },
];

const CLEARED: &[Column] = &[
    Column { name: "source", kind: Kind::Text },
    Column { name: "length", kind: Kind::Unsigned },
    Column { name: "freed", kind: Kind::Unsigned },
];

/// Runs the command.
pub(crate) fn run(cache: &Cache) -> Outcome {
    let stop = interrupt::watch();
    let done = match cache.verb {
        CacheVerb::Fill => fill_all(cache, &stop),
        _ => with_objects(cache, &stop),
    };
    match done {
        Ok(outcome) => outcome,
        Err(Ended::Output(error)) => broken_output(&error),
        Err(Ended::Failed(message)) => failed(&message, &stop),
    }
}

enum Ended {
    Output(io::Error),
    Failed(String),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Ended::Output(error)
    }
}

/// The folder of the cache.
fn folder(cache: &Cache) -> Result<PathBuf, Ended> {
    let environment = host::environment();
    let named = cache.cache.folder.clone().or_else(|| environment.remote_cache().cloned());
    named.or_else(|| environment.default_remote_cache()).ok_or_else(|| {
        Ended::Failed(
            "there is no cache folder, as HOME is not set; name one with --cache".to_string(),
        )
    })
}

/// The rows of a command.
struct Printer<'c> {
    cache: &'c Cache,
    columns: &'static [Column],
    rows: Option<Box<dyn Rows>>,
}

impl<'c> Printer<'c> {
    fn new(cache: &'c Cache) -> Self {
        let columns = match cache.verb {
            CacheVerb::List => LISTED,
            CacheVerb::Verify => VERIFIED,
            CacheVerb::Fill => FILLED,
            CacheVerb::Clear => CLEARED,
        };
        Printer { cache, columns, rows: None }
    }

    fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        let rows = match &mut self.rows {
            Some(rows) => rows,
            None => {
                self.rows.insert(rows::to_stdout(self.cache.format, Layout::Cached, self.columns)?)
            }
        };
        rows.row(values, Excerpt::default())
    }

    fn finish(mut self) -> io::Result<()> {
        self.rows.as_mut().map_or(Ok(()), |rows| rows.finish())
    }
}

/// Lists, verifies or clears the objects that were named, or all.
fn with_objects(cache: &Cache, stop: &AtomicBool) -> Result<Outcome, Ended> {
    let path = folder(cache)?;
    let mut outcome = Outcome::Nothing;
    if path.is_dir() {
        let mut options = CacheOptions::new(&path);
        options.bytes_max = cache.cache.bytes_max;
        let all = Folder::open(options).map_err(Ended::Failed)?;
        let wanted: HashSet<String> =
            cache.names.iter().map(|name| shown(&name.to_string_lossy())).collect();
        let is_wanted = |object: &CachedObject| {
            let name = object.name.as_ref();
            wanted.is_empty() || name.is_some_and(|name| wanted.contains(name))
        };
        let mut printer = Printer::new(cache);
        for object in all.objects().iter().filter(|object| is_wanted(object)) {
            if stop.load(Ordering::Relaxed) {
                outcome = outcome.worse(Outcome::Interrupted);
                break;
            }
            let one = match cache.verb {
                CacheVerb::Verify => verify(object, stop, &mut printer)?,
                CacheVerb::Clear => clear(object, &mut printer)?,
                _ => list(object, &mut printer)?,
            };
            outcome = if outcome == Outcome::Nothing { one } else { outcome.worse(one) };
        }
        if cache.names.is_empty() && indexes(cache.verb, &path, &mut printer)? {
            outcome = if outcome == Outcome::Nothing { Outcome::Found } else { outcome };
        }
        printer.finish()?;
    }
    Ok(outcome)
}

/// Lists or removes the indexes of compressed images. Returns whether any exist.
fn indexes(verb: CacheVerb, folder: &Path, printer: &mut Printer<'_>) -> io::Result<bool> {
    let bytes = match verb {
        CacheVerb::List => index_bytes(folder),
        CacheVerb::Clear => clear_indexes(folder),
        CacheVerb::Verify | CacheVerb::Fill => 0,
    };
    if bytes > 0 {
        let [source, bytes] =
            [Value::Text("(indexes of compressed images)"), Value::Unsigned(bytes)];
        let (used, more) = (Value::Missing, [Value::Missing; 2]);
        let values = [&[source, bytes, bytes, bytes, used][..], &more].concat();
        let columns = if verb == CacheVerb::List { LISTED.len() } else { CLEARED.len() };
        printer.row(&values[..columns])?;
    }
    Ok(bytes > 0)
}

fn name_of(object: &CachedObject) -> &str {
    object.name.as_deref().unwrap_or("(without a name)")
}

fn optional(text: Option<&String>) -> Value<'_> {
    text.map_or(Value::Missing, |text| Value::Text(text))
}

fn list(object: &CachedObject, printer: &mut Printer<'_>) -> io::Result<Outcome> {
    let used = object.used.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let used = format_time(i64::try_from(used.as_nanos()).unwrap_or(i64::MAX));
    printer.row(&[
        Value::Text(name_of(object)),
        Value::Unsigned(object.length),
        Value::Unsigned(object.held_bytes),
        Value::Unsigned(object.disk_bytes),
        Value::Text(&used),
        optional(object.etag.as_ref()),
        optional(object.last_modified.as_ref()),
    ])?;
    Ok(Outcome::Found)
}

fn verify(
    object: &CachedObject,
    stop: &AtomicBool,
    printer: &mut Printer<'_>,
) -> io::Result<Outcome> {
    let name = name_of(object);
    let checked = match object.verify(stop) {
        Ok(checked) => checked,
        Err(error) => {
            complain(&format!("{name}: cannot be verified: {error}"));
            return Ok(Outcome::Incomplete);
        }
    };
    let damaged: Vec<_> =
        checked.damaged.iter().map(|one| [one.start, one.end - one.start]).collect();
    let damaged = serde_json::json!(damaged).to_string();
    printer.row(&[
        Value::Text(name),
        Value::Unsigned(object.length),
        Value::Unsigned(checked.bytes),
        Value::Json(&damaged),
    ])?;
    for range in &checked.damaged {
        let (start, end) = (range.start, range.end);
        complain(&format!(
            "{name}: the cached bytes {start}..{end} are damaged; 'fill' fetches them"
        ));
    }
    Ok(match () {
        () if checked.stopped => Outcome::Interrupted,
        () if checked.damaged.is_empty() => Outcome::Found,
        () => Outcome::Incomplete,
    })
}

fn clear(object: &CachedObject, printer: &mut Printer<'_>) -> io::Result<Outcome> {
    let name = name_of(object);
    if !object.remove() {
        complain(&format!("{name}: is in use, so it was not removed"));
        return Ok(Outcome::Incomplete);
    }
    printer.row(&[
        Value::Text(name),
        Value::Unsigned(object.length),
        Value::Unsigned(object.disk_bytes),
    ])?;
    Ok(Outcome::Found)
}

/// Fetches sources completely.
fn fill_all(cache: &Cache, stop: &Arc<AtomicBool>) -> Result<Outcome, Ended> {
    let options = cache.cache.options().cache(Some(folder(cache)?));
    let opener = Opener::new(options, host::environment(), stop);
    let mut printer = Printer::new(cache);
    let mut outcome = Outcome::Found;
    for named in Sources::of(&cache.names).listed(&opener).iter() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match fill_one(cache, named, &opener, stop, &mut printer) {
            Ok(one) => outcome = outcome.worse(one),
            Err(Ended::Failed(message)) => {
                complain(&message);
                outcome = outcome.worse(Outcome::Failed);
            }
            Err(ended) => return Err(ended),
        }
    }
    printer.finish()?;
    if let Some(warning) = opener.cache_warning() {
        complain(&warning);
        outcome = outcome.worse(Outcome::Failed);
    }
    let is_stopped = stop.load(Ordering::Relaxed);
    Ok(if is_stopped { outcome.worse(Outcome::Interrupted) } else { outcome })
}

fn fill_one(
    cache: &Cache,
    named: &quarrier::Named,
    opener: &Opener,
    stop: &AtomicBool,
    printer: &mut Printer<'_>,
) -> Result<Outcome, Ended> {
    let as_failed = |error: Error| Ended::Failed(error.to_string());
    let name = named.name().unwrap_or_default();
    let name = shown(&name.to_string_lossy());
    if !is_remote(&name) {
        let message =
            format!("{name}: is not remote; only https://, s3:// and the like are cached");
        return Err(Ended::Failed(message));
    }
    let opened = opener.open(named).map_err(as_failed)?;
    let mut bar: Option<Progress> = None;
    let filled = fill(&opened, stop, &mut |done, all| {
        bar.get_or_insert_with(|| Progress::new(&name, 0..all, cache.quiet)).advance_to(done);
    });
    if let Some(mut bar) = bar {
        bar.clear();
    }
    let filled = filled.map_err(as_failed)?;
    printer.row(&[
        Value::Text(&name),
        Value::Unsigned(filled.bytes),
        Value::Unsigned(filled.bytes_fetched),
    ])?;
    filled.incomplete.iter().for_each(|line| complain(line));
    Ok(if filled.incomplete.is_empty() { Outcome::Found } else { Outcome::Incomplete })
}
