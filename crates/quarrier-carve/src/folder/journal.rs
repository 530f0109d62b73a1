//! The journal of a run, line by line, from which another run can resume after a crash.
//!
//! ```text
//! LINE   = SUM ' ' LETTER ' ' JSON '\n'     SUM: 16 digits of the SHA-256 of the rest
//! H {…}  the source and the options                       the first line
//! F {…}  a file was written: its row in the report        one write for each
//! W […]  the end of a file is known, wanted or not        \
//! B […]  a file is broken                                  } a stride, in one write
//! S {…}  the stride is done: everything before `position` /
//! ```
//!
//! Lines are only appended. Reading ends before the first line with a wrong checksum, and drops `W`
//! and `B` lines at the end: a stride without its `S` line was not done.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use quarrier_core::hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Row;
use super::row::extents_of;
use crate::carved::{Carved, Status};
use crate::carver::{Alignment, BrokenFile, Carver, EarlierResults, Midway, SkimmedRange, Stride};
use crate::view::Extent;

const SUM_DIGITS: usize = 16;
/// Bytes before the JSON of a line: sum, blank, letter, blank.
const BEFORE: usize = SUM_DIGITS + 3;

/// The place of a line's JSON in the journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    offset: u64,
    bytes: u32,
}

/// The journal, open for appending.
pub(super) struct Journal {
    file: File,
    end: u64,
}

/// The contents of a journal up to its last valid line.
pub(super) struct JournalContents {
    pub(super) header: String,
    pub(super) begun: EarlierResults,
    /// Files that were written: their paths, and the places of their rows.
    pub(super) files: Vec<(String, Line)>,
}

impl Journal {
    /// Begins a journal in an empty file.
    pub(super) fn new(file: File, header: &str) -> io::Result<Self> {
        let mut journal = Journal { file, end: 0 };
        journal.append(line_of('H', header))?;
        Ok(journal)
    }

    /// Appends after the valid part of `file`; `None` if not even the header is valid.
    pub(super) fn open(
        file: File,
        carver: &Carver<'_>,
    ) -> io::Result<Option<(Self, JournalContents)>> {
        let Some((contents, end)) = read(&file, carver)? else { return Ok(None) };
        file.set_len(end)?;
        Ok(Some((Journal { file, end }, contents)))
    }

    /// Records a file by its row; returns the row's place.
    pub(super) fn file(&mut self, row: &str) -> io::Result<Line> {
        let offset = self.end + BEFORE as u64;
        self.append(line_of('F', row))?;
        Ok(Line { offset, bytes: row.len() as u32 })
    }

    pub(super) fn stride(&mut self, stride: &Stride<'_>) -> io::Result<()> {
        let mut text = String::new();
        for one in stride.whole {
            let extents: Vec<_> = one.extents.iter().map(|e| [e.offset, e.length]).collect();
            text +=
                &line_of('W', &json!([one.kind, one.extension, extents, one.reason]).to_string());
        }
        for one in stride.broken {
            let (kind, is_whole) = (one.kind.name, one.is_whole);
            let fields =
                json!([one.offset, one.format, kind, one.sure, one.at, one.reason, is_whole]);
            text += &line_of('B', &fields.to_string());
        }
        let unreadable: Vec<_> = stride.unreadable.iter().map(|r| [r.start, r.end]).collect();
        let skimmed = stride.skimmed.iter();
        let skimmed: Vec<_> = skimmed
            .map(|one| json!([one.range.start, one.range.end, one.places, one.types]))
            .collect();
        let done = json!({
            "position": stride.range.end,
            "unreadable": unreadable,
            "skimmed": skimmed,
            "seen": stride.alignment.seen,
            "aligned": stride.alignment.aligned,
            "midway": stride.midway.map(Midway::to_json),
        });
        text += &line_of('S', &done.to_string());
        self.append(text)
    }

    /// Reads the JSON at `line`.
    pub(super) fn text(&self, line: Line) -> io::Result<Vec<u8>> {
        let mut text = vec![0; line.bytes as usize];
        self.file.read_exact_at(&mut text, line.offset)?;
        Ok(text)
    }

    /// Reads the row at `line`.
    pub(super) fn row(&self, line: Line) -> io::Result<Row> {
        let text = String::from_utf8(self.text(line)?).ok();
        text.and_then(|text| Row::from_json(&text))
            .ok_or_else(|| io::Error::other("another program changed the journal"))
    }

    fn append(&mut self, text: String) -> io::Result<()> {
        let written = self.file.write_all_at(text.as_bytes(), self.end);
        match written {
            Ok(()) => self.end += text.len() as u64,
            // Otherwise the bytes after the end would look like a torn line.
            Err(_) => drop(self.file.set_len(self.end)),
        }
        written
    }
}

fn line_of(letter: char, json: &str) -> String {
    let text = format!("{letter} {json}");
    format!("{} {text}\n", sum_of(text.as_bytes()))
}

fn sum_of(text: &[u8]) -> String {
    hex::encode(&Sha256::digest(text)[..SUM_DIGITS / 2])
}

/// Reads all valid lines. Returns them and their end.
fn read(file: &File, carver: &Carver<'_>) -> io::Result<Option<(JournalContents, u64)>> {
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(0))?;
    let mut contents: Option<JournalContents> = None;
    let mut stride = EarlierResults::default();
    let (mut at, mut end) = (0u64, 0u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let Some((letter, json)) = checked(&line) else { break };
        let place = Line { offset: at + BEFORE as u64, bytes: json.len() as u32 };
        at += line.len() as u64;
        let is_understood = match (letter, &mut contents) {
            ('H', contents @ None) => {
                let header = json.to_string();
                *contents = Some(JournalContents {
                    header,
                    begun: EarlierResults::default(),
                    files: Vec::new(),
                });
                true
            }
            (_, Some(contents)) => {
                take(contents, &mut stride, letter, json, place, carver).is_some()
            }
            (_, None) => false,
        };
        if !is_understood {
            break;
        }
        if !matches!(letter, 'W' | 'B') {
            end = at;
        }
    }
    Ok(contents.map(|contents| (contents, end)))
}

/// Returns the letter and the JSON of a line, if its checksum is right.
fn checked(line: &[u8]) -> Option<(char, &str)> {
    let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (sum, rest) = text.split_at_checked(SUM_DIGITS)?;
    let rest = rest.strip_prefix(' ')?;
    if sum_of(rest.as_bytes()) != sum {
        return None;
    }
    let (letter, json) = rest.split_once(' ')?;
    let mut letters = letter.chars();
    letters.next().filter(|_| letters.next().is_none()).map(|letter| (letter, json))
}

/// Handles a line after the header.
fn take(
    contents: &mut JournalContents,
    stride: &mut EarlierResults,
    letter: char,
    json: &str,
    place: Line,
    carver: &Carver<'_>,
) -> Option<()> {
    let value: Value = serde_json::from_str(json).ok()?;
    match letter {
        'F' => {
            // The lines of a stride follow those of its files: any before this line are from an
            // attempt that was cut short.
            *stride = EarlierResults::default();
            contents.files.push((value.get("path")?.as_str()?.to_string(), place));
        }
        'W' => stride.whole.push(whole_of(&value)?),
        'B' => stride.broken.push(broken_of(&value, carver)?),
        'S' => {
            let skimmed = value.get("skimmed")?.as_array()?.iter();
            let skimmed = skimmed.map(|one| skimmed_of(one, carver)).collect::<Option<Vec<_>>>()?;
            let stride = std::mem::take(stride);
            let begun = &mut contents.begun;
            begun.position = value.get("position")?.as_u64()?;
            begun.alignment = alignment_of(&value)?;
            begun.midway = match value.get("midway")? {
                Value::Null => None,
                midway => Some(Midway::from_json(midway)?),
            };
            begun.whole.extend(stride.whole);
            begun.broken.extend(stride.broken);
            let ranges = extents_of(value.get("unreadable")?)?;
            begun.skimmed.extend(skimmed);
            begun.unreadable.extend(ranges.iter().map(|pair| pair.offset..pair.length));
        }
        _ => return None,
    }
    Some(())
}

fn whole_of(value: &Value) -> Option<Carved> {
    let reason = value.get(3)?.as_str()?.to_string();
    Some(Carved {
        kind: value.get(0)?.as_str()?.to_string(),
        extension: value.get(1)?.as_str()?.to_string(),
        extents: Some(extents_of(value.get(2)?)?)
            .filter(|extents: &Vec<Extent>| !extents.is_empty())?,
        status: if reason.is_empty() { Status::Valid } else { Status::Partial },
        reason,
        is_ended: true,
    })
}

fn broken_of(value: &Value, carver: &Carver<'_>) -> Option<BrokenFile> {
    let (format, kind) = carver.known_as(value.get(1)?.as_str()?, value.get(2)?.as_str()?)?;
    Some(BrokenFile {
        offset: value.get(0)?.as_u64()?,
        format,
        kind,
        sure: value.get(3)?.as_u64()?,
        at: value.get(4)?.as_u64()?,
        reason: value.get(5)?.as_str()?.to_string(),
        is_whole: value.get(6)?.as_bool()?,
    })
}

fn skimmed_of(value: &Value, carver: &Carver<'_>) -> Option<SkimmedRange> {
    let number = |place: usize| value.get(place)?.as_u64();
    let types = value.get(3)?.as_array()?.iter();
    let types = types.map(|name| Some(carver.known_as(name.as_str()?, name.as_str()?)?.0));
    let range = number(0)?..number(1)?;
    Some(SkimmedRange::noted(range, types.collect::<Option<_>>()?, number(2)?))
}

fn alignment_of(value: &Value) -> Option<Alignment> {
    let counts = value.get("aligned")?.as_array()?.iter();
    let aligned: Vec<u64> = counts.map(Value::as_u64).collect::<Option<_>>()?;
    Some(Alignment { seen: value.get("seen")?.as_u64()?, aligned: aligned.try_into().ok()? })
}
