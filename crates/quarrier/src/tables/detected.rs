//! Sources with a detected format.

use std::io::Read;
use std::mem::discriminant;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Source;
use quarrier_messages::Format;
use quarrier_messages::format::fix::Dictionary;
use quarrier_remote::{Counters, RemoteSource};

use super::Tables;
use super::stream::{self, Patient};
use crate::{Error, Opened, Result, read_instructions};

/// An opened source and the format of its messages.
pub struct DetectedSource<'s> {
    format: Format,
    origin: Origin<'s>,
    damages: Vec<String>,
    notice: Option<String>,
    /// Whether its messages are those of a log, whose offsets are not those of its file.
    is_log: bool,
}

/// How several processes can share the messages of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Each loads any [range](Tables::range).
    Ranges,
    /// One process loads all of it.
    Whole,
}

enum Origin<'s> {
    Source(Box<dyn Source + 's>),
    Remote(RemoteSource),
    /// A stream with its name; `None` once it has been read.
    Stream(String, Option<Box<dyn Read + Send + 's>>),
}

impl Tables<'_> {
    /// Detects the format of a source's messages: the requested one, or by its first bytes, by its name, or
    /// else the likeliest.
    ///
    /// # Errors
    /// [`Error::Messages`] if the first bytes cannot be read, [`Error::Dictionary`] for an unusable data
    /// dictionary, [`Error::Request`] for a dictionary when the messages are not FIX.
    pub fn detect(
        &self,
        opened: Opened,
        stop: &Arc<AtomicBool>,
    ) -> Result<DetectedSource<'static>> {
        let notice = opened.notice_line();
        // A log says the format of its messages.
        let (of_log, damages) = (opened.format().cloned(), opened.damages().to_vec());
        let is_log = of_log.is_some() || !damages.is_empty();
        let source: Box<dyn Source> = match opened {
            Opened::Local { source, .. } => source,
            Opened::FarImage { image, .. } => Box::new(image),
            Opened::Remote(source) => {
                let whole = 0..source.length();
                source.announce(self.range.clone().unwrap_or(whole));
                let format = self.format_of(&source)?;
                return Ok(DetectedSource::of(format, Origin::Remote(source)));
            }
            Opened::Stream { name, reader } => {
                let patient = Box::new(Patient::new(reader, stop));
                let plain = quarrier_messages::decompressed_stream(&name, patient, stop)?;
                let (format, bytes) = match &self.format {
                    Some(format) => (format.clone(), plain),
                    None => stream::detect_format(&name, plain),
                };
                let format = self.with_dictionary(format)?;
                return Ok(DetectedSource::of(format, Origin::Stream(name, Some(bytes))));
            }
        };
        let format = match of_log {
            Some(format) => format,
            None => self.format_of(&*source)?,
        };
        Ok(DetectedSource { format, origin: Origin::Source(source), damages, notice, is_log })
    }

    /// Like [`Tables::detect`], for a source that the caller supplies, such as bytes in memory.
    ///
    /// # Errors
    /// Those of [`Tables::detect`].
    pub fn detect_source<'s>(&self, source: Box<dyn Source + 's>) -> Result<DetectedSource<'s>> {
        let format = self.format_of(&*source)?;
        Ok(DetectedSource::of(format, Origin::Source(source)))
    }

    fn format_of(&self, source: &dyn Source) -> Result<Format> {
        self.with_dictionary(match &self.format {
            Some(format) => format.clone(),
            None => Format::of(source)?,
        })
    }

    /// The format, with the requested dictionary.
    fn with_dictionary(&self, format: Format) -> Result<Format> {
        let Some(path) = &self.dictionary else { return Ok(format) };
        match format {
            Format::Fix(_) => Ok(Format::Fix(dictionary(path)?)),
            Format::Nvfix(_) => Ok(Format::Nvfix(dictionary(path)?)),
            other => Err(Error::Request(format!(
                "a dictionary is for FIX and NVFIX; the messages are {}",
                other.name()
            ))),
        }
    }
}

fn dictionary(path: &Path) -> Result<Arc<Dictionary>> {
    let xml = read_instructions(path, "dictionary", &AtomicBool::new(false))?;
    let dictionary = Dictionary::from_xml(&xml);
    dictionary.map(Arc::new).map_err(|error| Error::Dictionary { path: path.to_path_buf(), error })
}

impl<'s> DetectedSource<'s> {
    fn of(format: Format, origin: Origin<'s>) -> Self {
        DetectedSource { format, origin, damages: Vec::new(), notice: None, is_log: false }
    }

    /// The name in errors.
    pub fn name(&self) -> &str {
        match &self.origin {
            Origin::Source(source) => source.name(),
            Origin::Remote(source) => source.name(),
            Origin::Stream(name, _) => name,
        }
    }

    /// Damaged places of a log that were skipped, a line each.
    pub fn damages(&self) -> &[String] {
        &self.damages
    }

    /// The notice of its image, if any: a line that begins with the name of the source.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// The format of its messages.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// How several processes can share its messages; `None` if they cannot: it is a log or a stream, or has
    /// columns instead of messages.
    ///
    /// # Errors
    /// [`Error::Messages`] if the first bytes cannot be read.
    pub fn sharing(&self) -> Result<Option<Sharing>> {
        let is_plain = !self.is_log && self.notice.is_none();
        let Some(source) = self.source().filter(|_| is_plain && !self.format.is_columnar()) else {
            return Ok(None);
        };
        let is_packed = quarrier_messages::decompressed(source)?.is_some();
        Ok(Some(match self.format.is_in_lines() && !is_packed {
            true => Sharing::Ranges,
            false => Sharing::Whole,
        }))
    }

    /// Whether both sources can be loaded at once, as if they were one.
    pub(super) fn goes_with(&self, next: &DetectedSource<'_>) -> bool {
        let is_alike = match (&self.format, &next.format) {
            // Their columns may differ.
            (Format::Arrow | Format::Parquet, _) => false,
            (Format::Csv(one), Format::Csv(other)) => one == other,
            (one, other) => discriminant(one) == discriminant(other),
        };
        is_alike && self.source().is_some() && next.source().is_some()
    }

    pub(super) fn source(&self) -> Option<&dyn Source> {
        match &self.origin {
            Origin::Source(source) => Some(&**source),
            Origin::Remote(source) => Some(source),
            Origin::Stream(..) => None,
        }
    }

    /// Takes the stream and its name; `None` the second time.
    pub(super) fn stream(&mut self) -> Option<(String, Box<dyn Read + Send + '_>)> {
        match &mut self.origin {
            Origin::Stream(name, stream) => Some((name.clone(), stream.take()?)),
            Origin::Source(_) | Origin::Remote(_) => None,
        }
    }

    pub(super) fn counters(&self) -> Option<Counters> {
        match &self.origin {
            Origin::Remote(source) => Some(source.counters()),
            Origin::Source(_) | Origin::Stream(..) => None,
        }
    }
}
