//! The header: the compression of the bytes, and the files in them. `files` reads their names.

use std::ops::Range;

use super::START_BYTES;
use super::fields::{WRONG, byte, bytes, checksums, count, number};
use crate::crc32;
use crate::unpack::{Failed, UNKNOWN};
use crate::view::View;

pub(super) const END: u8 = 0x00;
const PROPERTIES: u8 = 0x02;
const MORE_STREAMS: u8 = 0x03;
const STREAMS: u8 = 0x04;
pub(super) const FILES: u8 = 0x05;
const PACK_INFO: u8 = 0x06;
const FOLDER_INFO: u8 = 0x07;
const FILE_INFO: u8 = 0x08;
const SIZES: u8 = 0x09;
const CHECKSUMS: u8 = 0x0A;
const FOLDERS: u8 = 0x0B;
const FOLDER_SIZES: u8 = 0x0C;
const FILE_COUNTS: u8 = 0x0D;
/// Maximum number of coders of a folder, and of streams of a coder; programs use at most four.
const CODERS_MAX: u64 = 32;
/// Maximum number of folders and packed ranges: each folder takes some 300 bytes of memory.
const PARTS_MAX: usize = 1 << 18;
/// Maximum number of files of all folders; each takes 16 bytes.
pub(super) const FILES_MAX: usize = 1 << 21;
const TOO_MANY: &str = "very many separately packed files were not read";

/// Checks a count against the maximum that may be in memory.
pub(super) fn bounded(count: usize, most: usize) -> Result<usize, Failed> {
    if count <= most { Ok(count) } else { Err(Failed::NotRead(TOO_MANY)) }
}

/// A compression method with its properties.
#[derive(Debug, Clone)]
pub(super) struct Coder {
    pub(super) method: Vec<u8>,
    pub(super) inputs: usize,
    pub(super) properties: Vec<u8>,
}

/// Files that are compressed together.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    pub(super) coders: Vec<Coder>,
    /// Inputs of coders that are outputs of others: the index of the input, and of the other coder.
    pub(super) bound: Vec<(usize, usize)>,
    /// Inputs of coders that are packed ranges of the archive, in the order of the ranges.
    pub(super) packed: Vec<usize>,
    /// The index in the archive of the first of these ranges.
    first_packed: usize,
    /// The output size of each coder, in bytes.
    pub(super) sizes: Vec<u64>,
    pub(super) crc: Option<u32>,
    /// The files in it, in order: size and checksum.
    pub(super) files: Vec<(u64, Option<u32>)>,
}

impl Folder {
    /// Returns the coder whose output is not the input of another.
    pub(super) fn last(&self) -> Option<usize> {
        (0..self.coders.len()).find(|coder| self.bound.iter().all(|(_, from)| from != coder))
    }

    /// Returns the size of its contents, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.last().map_or(0, |coder| self.sizes[coder])
    }
}

/// The contents of an archive.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// The ranges of packed bytes, in order, with their own checksums.
    packed: Vec<Range<u64>>,
    checksums: Vec<Option<u32>>,
    pub(super) folders: Vec<Folder>,
}

/// Reads the main header up to its list of files, which remains in `fields`.
pub(super) fn main(fields: &mut &[u8]) -> Result<Streams, Failed> {
    if fields.first() == Some(&PROPERTIES) {
        byte(fields)?;
        while byte(fields)? != END {
            let length = number(fields)?;
            bytes(fields, length)?;
        }
    }
    match fields.first() {
        Some(&STREAMS) => {
            byte(fields)?;
            Streams::read(fields)
        }
        Some(&MORE_STREAMS) => Err(Failed::NotRead(UNKNOWN)),
        // There are only folders and empty files.
        Some(&(FILES | END)) => Ok(Streams::default()),
        _ => Err(WRONG),
    }
}

impl Streams {
    pub(super) fn read(fields: &mut &[u8]) -> Result<Streams, Failed> {
        let mut streams = Streams::default();
        let mut kind = byte(fields)?;
        if kind == PACK_INFO {
            streams.pack_info(fields)?;
            kind = byte(fields)?;
        }
        if kind == FOLDER_INFO {
            streams.folder_info(fields)?;
            kind = byte(fields)?;
        }
        for folder in &mut streams.folders {
            folder.files = vec![(folder.bytes(), folder.crc)];
        }
        if kind == FILE_INFO {
            streams.file_info(fields)?;
            kind = byte(fields)?;
        }
        let mut first = 0;
        for folder in &mut streams.folders {
            folder.first_packed = first;
            first += folder.packed.len();
        }
        if kind == END { Ok(streams) } else { Err(WRONG) }
    }

    /// Checks whether the packed bytes of a folder, in `ranges`, match the checksums in the header.
    /// Few programs write such checksums; the files have their own.
    pub(super) fn verify(
        &self,
        view: &mut View<'_>,
        folder: &Folder,
        ranges: &[Range<u64>],
    ) -> Result<(), Failed> {
        let stated = self.checksums.iter().skip(folder.first_packed);
        for (range, stated) in ranges.iter().zip(stated) {
            if stated.is_some() && crc32::of_range(view, range.clone()) != *stated {
                return Err(Failed::Wrong("CRC of packed data"));
            }
        }
        Ok(())
    }

    /// Returns the ranges of a folder's packed bytes, in order, all of them before `end`.
    pub(super) fn packed(&self, folder: &Folder, end: u64) -> Result<Vec<Range<u64>>, Failed> {
        let first = folder.first_packed;
        let ranges = self.packed.get(first..first + folder.packed.len()).ok_or(WRONG)?;
        match ranges.iter().all(|range| range.end <= end) {
            true => Ok(ranges.to_vec()),
            false => Err(WRONG),
        }
    }

    fn pack_info(&mut self, fields: &mut &[u8]) -> Result<(), Failed> {
        let mut at = number(fields)?.checked_add(START_BYTES).ok_or(WRONG)?;
        let streams = bounded(count(fields)?, PARTS_MAX)?;
        loop {
            match byte(fields)? {
                END => return Ok(()),
                SIZES => {
                    for _ in 0..streams {
                        let end = at.checked_add(number(fields)?).ok_or(WRONG)?;
                        self.packed.push(at..end);
                        at = end;
                    }
                }
                CHECKSUMS => self.checksums = checksums(fields, streams)?,
                _ => return Err(WRONG),
            }
        }
    }

    fn folder_info(&mut self, fields: &mut &[u8]) -> Result<(), Failed> {
        if byte(fields)? != FOLDERS {
            return Err(WRONG);
        }
        let folders = bounded(count(fields)?, PARTS_MAX)?;
        if byte(fields)? != 0 {
            return Err(Failed::NotRead(UNKNOWN));
        }
        self.folders = (0..folders).map(|_| Folder::read(fields)).collect::<Result<_, _>>()?;
        if byte(fields)? != FOLDER_SIZES {
            return Err(WRONG);
        }
        for folder in &mut self.folders {
            let coders = folder.coders.len();
            folder.sizes = (0..coders).map(|_| number(fields)).collect::<Result<_, _>>()?;
        }
        loop {
            match byte(fields)? {
                END => return Ok(()),
                CHECKSUMS => {
                    let crcs = checksums(fields, folders)?;
                    self.folders.iter_mut().zip(crcs).for_each(|(folder, crc)| folder.crc = crc);
                }
                _ => return Err(WRONG),
            }
        }
    }

    /// Reads the files of each folder.
    fn file_info(&mut self, fields: &mut &[u8]) -> Result<(), Failed> {
        let mut counts = vec![1; self.folders.len()];
        let mut kind = byte(fields)?;
        if kind == FILE_COUNTS {
            for files in &mut counts {
                *files = number(fields)?;
            }
            kind = byte(fields)?;
        }
        let sum = counts.iter().fold(0u64, |sum, files| sum.saturating_add(*files));
        bounded(usize::try_from(sum).unwrap_or(usize::MAX), FILES_MAX)?;
        let is_sized = kind == SIZES;
        for (folder, files) in self.folders.iter_mut().zip(&counts) {
            folder.files.truncate(*files as usize);
            folder.files.iter_mut().for_each(|file| file.1 = None);
            if *files > 1 {
                folder.split(fields, *files, is_sized)?;
            } else if let Some(file) = folder.files.first_mut() {
                file.1 = folder.crc;
            }
        }
        if is_sized {
            kind = byte(fields)?;
        }
        if kind == CHECKSUMS {
            let files = || self.folders.iter().flat_map(|folder| &folder.files);
            let missing = files().filter(|(_, crc)| crc.is_none()).count();
            let mut crcs = checksums(fields, missing)?.into_iter();
            let files = self.folders.iter_mut().flat_map(|folder| &mut folder.files);
            for file in files.filter(|(_, crc)| crc.is_none()) {
                file.1 = crcs.next().flatten();
            }
            kind = byte(fields)?;
        }
        if kind == END { Ok(()) } else { Err(WRONG) }
    }
}

impl Folder {
    fn read(fields: &mut &[u8]) -> Result<Folder, Failed> {
        let count = number(fields)?;
        if !(1..=CODERS_MAX).contains(&count) {
            return Err(WRONG);
        }
        let coders = (0..count).map(|_| Coder::read(fields)).collect::<Result<Vec<_>, _>>()?;
        let inputs: usize = coders.iter().map(|coder| coder.inputs).sum();
        let mut bound = Vec::new();
        for _ in 1..coders.len() {
            let pair = (number(fields)?, number(fields)?);
            let fits = pair.0 < inputs as u64 && pair.1 < count;
            fits.then(|| bound.push((pair.0 as usize, pair.1 as usize))).ok_or(WRONG)?;
        }
        let left = inputs.checked_sub(bound.len()).filter(|left| *left > 0).ok_or(WRONG)?;
        let packed = match left {
            1 => {
                (0..inputs).filter(|input| bound.iter().all(|(bound, _)| bound != input)).collect()
            }
            _ => (0..left).map(|_| Ok(number(fields)? as usize)).collect::<Result<Vec<_>, _>>()?,
        };
        let (sizes, files) = (Vec::new(), Vec::new());
        Ok(Folder { coders, bound, packed, first_packed: 0, sizes, crc: None, files })
    }

    /// Divides the contents into `files` files; all but the last have their size in the header.
    fn split(&mut self, fields: &mut &[u8], files: u64, is_sized: bool) -> Result<(), Failed> {
        if !is_sized {
            return Err(WRONG);
        }
        let mut left = self.bytes();
        self.files.clear();
        for _ in 1..files {
            let size = number(fields)?;
            left = left.checked_sub(size).ok_or(WRONG)?;
            self.files.push((size, None));
        }
        self.files.push((left, None));
        Ok(())
    }
}

impl Coder {
    fn read(fields: &mut &[u8]) -> Result<Coder, Failed> {
        let flags = byte(fields)?;
        let method = bytes(fields, (flags & 15).into())?.to_vec();
        let (mut inputs, mut outputs) = (1, 1);
        if flags & 0x10 != 0 {
            (inputs, outputs) = (number(fields)?, number(fields)?);
        }
        let mut properties = Vec::new();
        if flags & 0x20 != 0 {
            let length = number(fields)?;
            properties = bytes(fields, length)?.to_vec();
        }
        match (1..=CODERS_MAX).contains(&inputs) && outputs == 1 && flags & 0xC0 == 0 {
            true => Ok(Coder { method, inputs: inputs as usize, properties }),
            // Two old compression methods had several outputs.
            false => Err(Failed::NotRead(UNKNOWN)),
        }
    }
}
