//! One source made of consecutive parts: `image.001`, `image.002`, …

use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{FileSource, Source};
use crate::error::{Error, Result};
use crate::name;
use crate::region::Region;

/// Parts of an image, end to end, as one source.
pub struct SplitSource {
    name: String,
    parts: Vec<(u64, Box<dyn Source>)>,
    length: u64,
}

impl std::fmt::Debug for SplitSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SplitSource")
            .field("name", &self.name)
            .field("parts", &self.parts.len())
            .field("length", &self.length)
            .finish()
    }
}

impl SplitSource {
    /// Joins `parts` in the order given.
    ///
    /// # Errors
    /// [`Error::BadPlan`] if the lengths together exceed 2^63 - 1 bytes.
    pub fn new(name: impl Into<String>, parts: Vec<Box<dyn Source>>) -> Result<Self> {
        let name = name.into();
        let mut length = 0u64;
        let mut placed = Vec::with_capacity(parts.len());
        for part in parts {
            let start = length;
            length = length
                .checked_add(part.length())
                .filter(|&sum| sum <= i64::MAX as u64)
                .ok_or_else(|| {
                    Error::BadPlan(format!("{name}: the total length of the parts is too large"))
                })?;
            placed.push((start, part));
        }
        Ok(SplitSource { name, parts: placed, length })
    }

    /// Opens `first` (its name ends in `.000` or `.001`, or `000`/`001` as in
    /// `ext2.splitraw.000`) and all parts that follow it by number without a gap.
    ///
    /// # Errors
    /// As [`FileSource::open`], for each part that exists.
    pub fn open(first: &Path) -> Result<Self> {
        let mut parts: Vec<Box<dyn Source>> = Vec::new();
        for path in Self::parts_from(first) {
            parts.push(Box::new(FileSource::open(&path)?));
        }
        SplitSource::new(name::of_path(first), parts)
    }

    /// Returns the paths that [`open`](Self::open) would join to `first`, in order.
    pub fn parts_from(first: &Path) -> Vec<PathBuf> {
        Self::parts_among(first, Path::exists)
    }

    /// As [`parts_from`](Self::parts_from), among the files of a list.
    pub fn parts_among(first: &Path, has: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let others = Self::following(first).take_while(|path| has(path));
        std::iter::once(first.to_path_buf()).chain(others).collect()
    }

    /// Returns the names of the parts after `first`, whether or not they exist.
    pub fn following(first: &Path) -> impl Iterator<Item = PathBuf> + '_ {
        let (stem, digits) = split_number(first).unwrap_or((first.as_os_str(), ""));
        let number: u64 = digits.parse().unwrap_or(u64::MAX);
        (number..u64::MAX).map(move |before| {
            let mut name = stem.to_os_string();
            name.push(format!("{:0width$}", before + 1, width = digits.len()));
            PathBuf::from(name)
        })
    }

    /// Whether `path` has the name of the first part of a split image.
    pub fn is_first_part(path: &Path) -> bool {
        matches!(split_number(path), Some((_, digits)) if matches!(digits.trim_start_matches('0'), "" | "1"))
    }

    fn part_at(&self, offset: u64) -> usize {
        self.parts.partition_point(|(start, _)| *start <= offset).saturating_sub(1)
    }
}

/// Splits `image.001` into `image.` and `001`, if the extension is three or more digits.
fn split_number(path: &Path) -> Option<(&OsStr, &str)> {
    let bytes = path.as_os_str().as_bytes();
    let dot = bytes.iter().rposition(|&byte| byte == b'.')?;
    let (stem, digits) = bytes.split_at(dot + 1);
    let digits = str::from_utf8(digits).ok()?;
    (digits.len() >= 3 && digits.len() <= 9 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| (OsStr::from_bytes(stem), digits))
}

impl Source for SplitSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset >= self.length || buffer.is_empty() {
            return Ok(0);
        }
        // Empty parts share their start with the next part; `part_at` finds the last part that
        // starts here, which has bytes.
        let (start, part) = &self.parts[self.part_at(offset)];
        part.read_at(offset - start, buffer)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        if offset >= self.length {
            return Ok(None);
        }
        for (start, part) in &self.parts[self.part_at(offset)..] {
            let from = offset.saturating_sub(*start);
            if let Some(range) = part.next_data(from)? {
                return Ok(Some(range.start + start..range.end + start));
            }
        }
        Ok(None)
    }

    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        let (start, part) = self.parts.get(self.part_at(range.start))?;
        let inner = range.start - start..range.end - start;
        if inner.end > part.length() {
            return None; // crosses into the next part: must be read
        }
        part.window(inner)
    }

    fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
        for (start, part) in &self.parts[self.part_at(range.start)..] {
            if *start >= range.end {
                break;
            }
            let from = range.start.max(*start) - start;
            let to = (range.end - start).min(part.length());
            if from < to
                && let Some(window) = part.next_window(from..to, bytes_min)
            {
                return Some(window.start + start..window.end + start);
            }
        }
        None
    }

    fn is_resident(&self) -> bool {
        self.parts.iter().all(|(_, part)| part.is_resident())
    }

    fn sector_bytes(&self) -> usize {
        self.parts.iter().map(|(_, part)| part.sector_bytes()).max().unwrap_or(512)
    }
}
