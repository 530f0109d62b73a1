//! The header, the allocation table and the directory.

use super::storages::{self, Links, NOWHERE};
use crate::view::View;

/// Sector numbers from here on have a special meaning.
const SPECIAL: u32 = 0xFFFF_FFFA;
const DIFAT_SECTOR: u32 = 0xFFFF_FFFC;
const FAT_SECTOR: u32 = 0xFFFF_FFFD;
const END: u32 = 0xFFFF_FFFE;
const FREE: u32 = 0xFFFF_FFFF;
/// Maximum number of sectors of a file: 8 GiB with sectors of 512 bytes. Each takes 4 bytes of
/// memory.
const SECTORS_MAX: usize = 1 << 24;
const ENTRIES_MAX: usize = 1 << 16;
const ENTRY_BYTES: u64 = 128;

/// Why a file is not whole, and the byte that shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) at: u64,
    pub(super) reason: &'static str,
}

pub(super) fn trouble<T>(at: u64, reason: &'static str) -> Result<T, Trouble> {
    Err(Trouble { at, reason })
}

/// The contents of the header.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) sector_bytes: u64,
    /// The number of sectors of the allocation table.
    tables: u32,
    /// The first sector of the directory.
    directory: u32,
    /// Shorter streams are inside the stream of the root.
    small_bytes: u64,
    small_table: u32,
    small_tables: u32,
    difat: u32,
    difats: u32,
    first_tables: Vec<u32>,
}

impl Header {
    pub(super) fn read(view: &mut View<'_>) -> Option<Header> {
        let bytes = view.array::<512>(0)?;
        let two = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let four = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|index| bytes[at + index]));
        let shift = match (two(26), two(30)) {
            (3, 9) => 9,
            (4, 12) => 12,
            _ => return None,
        };
        if two(28) != 0xFFFE || two(32) != 6 || four(44) == 0 {
            return None;
        }
        Some(Header {
            sector_bytes: 1 << shift,
            tables: four(44),
            directory: four(48),
            small_bytes: u64::from(four(56)),
            small_table: four(60),
            small_tables: four(64),
            difat: four(68),
            difats: four(72),
            first_tables: (0..109).map(|index| four(76 + 4 * index)).collect(),
        })
    }

    /// The offset of a sector in the file, in bytes.
    pub(super) fn place(&self, sector: u32) -> u64 {
        (u64::from(sector) + 1) * self.sector_bytes
    }

    /// Returns the sectors of the allocation table, and those that list them.
    fn tables(&self, view: &mut View<'_>) -> Result<(Vec<u32>, Vec<u32>), Trouble> {
        let count = self.tables as usize;
        let numbers = self.sector_bytes / 4;
        if count as u64 * numbers > SECTORS_MAX as u64 {
            return trouble(44, "too many sectors");
        }
        let mut tables: Vec<u32> = self.first_tables.iter().copied().take(count).collect();
        let mut lists = Vec::new();
        let mut list = self.difat;
        while tables.len() < count {
            let place = self.place(list);
            if list >= SPECIAL || lists.len() as u64 > u64::from(self.difats) {
                return trouble(68, "the list of tables is short");
            }
            lists.push(list);
            let missing = (count - tables.len()).min(numbers as usize - 1);
            let Some(bytes) = view.take(place, self.sector_bytes as usize) else {
                return trouble(place, "truncated");
            };
            let (more, next) = bytes.split_at(bytes.len() - 4);
            tables.extend(words(more).take(missing));
            list = words(next).next().unwrap_or(END);
        }
        match tables.iter().find(|sector| **sector >= SPECIAL) {
            Some(_) => trouble(76, "an allocation table outside of the file"),
            None => Ok((tables, lists)),
        }
    }

    /// Returns places in the file with the bytes that must be there: the entries that mark sectors
    /// of the allocation table, and the name of the directory's root.
    pub(super) fn marks(&self) -> Vec<(u64, Vec<u8>)> {
        let per_sector = self.sector_bytes / 4;
        let mut marks = Vec::new();
        for (index, sector) in self.first_tables.iter().take(self.tables as usize).enumerate() {
            let own = u64::from(*sector).checked_sub(index as u64 * per_sector);
            if let Some(own) = own.filter(|own| *own < per_sector) {
                marks.push((self.place(*sector) + 4 * own, FAT_SECTOR.to_le_bytes().to_vec()));
            }
        }
        if self.directory < SPECIAL {
            marks.push((self.place(self.directory), b"R\0o\0o\0t\0".to_vec()));
        }
        marks.sort();
        marks
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// The places of a stream's bytes in the file.
#[derive(Debug, Default, Clone)]
pub(super) struct Stream {
    /// Its name in the directory.
    pub(super) name: String,
    /// Its storage, by the index of the entry: 0 is the root, [`NOWHERE`] none.
    pub(super) storage: u32,
    pub(super) bytes: u64,
    /// The offset in the stream and in the file of each contiguous part, in order.
    runs: Vec<(u64, u64)>,
}

impl Stream {
    /// Makes the stream of `entry`, without bytes.
    fn empty(entry: &Entry) -> Stream {
        let (name, bytes) = (entry.name.clone(), entry.bytes);
        Stream { name, storage: NOWHERE, bytes, runs: Vec::new() }
    }

    /// Finds the stream of this name in the same storage.
    pub(super) fn sibling<'s>(
        &self,
        view: &mut View<'_>,
        streams: &'s [Stream],
        name: &str,
    ) -> Option<&'s Stream> {
        // Many streams may each look for another one.
        view.spend(streams.len() as u64);
        if view.is_starved() {
            return None;
        }
        streams.iter().find(|other| other.storage == self.storage && other.name == name)
    }

    /// The offset in the file of byte `at`.
    pub(super) fn place(&self, at: u64) -> Option<u64> {
        let index = self.runs.partition_point(|run| run.0 <= at).checked_sub(1)?;
        (at < self.bytes).then(|| self.runs[index].1 + (at - self.runs[index].0))
    }

    /// Reads the `N` bytes at `at`.
    pub(super) fn array<const N: usize>(&self, view: &mut View<'_>, at: u64) -> Option<[u8; N]> {
        let place = self.place(at)?;
        let last = at.checked_add(N as u64 - 1)?;
        if self.place(last)? == place + N as u64 - 1 {
            return view.array(place);
        }
        let mut bytes = [0; N];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = view.byte(self.place(at + index as u64)?)?;
        }
        Some(bytes)
    }
}

/// A compound file: its allocation table and its directory.
#[derive(Debug)]
pub(super) struct Compound {
    pub(super) length: u64,
    pub(super) streams: Vec<Stream>,
    /// The class of the root, which identifies the program that wrote it.
    pub(super) class: [u8; 16],
}

/// Reads and checks the table and the directory.
pub(super) fn read(view: &mut View<'_>, header: &Header) -> Result<Compound, Trouble> {
    let (tables, lists) = header.tables(view)?;
    let fat = numbers(view, header, &tables)?;
    for (sectors, mark) in [(&tables, FAT_SECTOR), (&lists, DIFAT_SECTOR)] {
        for sector in sectors {
            if fat.get(*sector as usize) != Some(&mark) {
                return trouble(
                    header.place(*sector),
                    "an allocation table that does not list itself",
                );
            }
        }
    }
    let used = fat.iter().rposition(|next| *next != FREE).map_or(0, |last| last as u64 + 1);
    let length = (used + 1) * header.sector_bytes;
    check_links(header, &fat, &tables)?;
    if length > view.length() {
        return trouble(view.length(), "truncated");
    }
    // An error in a chain is an error in a table.
    let tables_end = tables.iter().map(|sector| header.place(*sector)).max().unwrap_or(0);
    let directory = chain(&fat, header.directory, used)
        .ok_or(Trouble { at: tables_end, reason: "the directory's sectors" })?;
    let mut left = used;
    let mut left_small = 0;
    let mut streams = Vec::new();
    let mut class = [0; 16];
    let mut links = Vec::new();
    let mut small: Option<Small> = None;
    let per_sector = header.sector_bytes / ENTRY_BYTES;
    for index in 0..(directory.len() as u64 * per_sector).min(ENTRIES_MAX as u64) {
        let sector = directory[(index / per_sector) as usize];
        let place = header.place(sector) + index % per_sector * ENTRY_BYTES;
        let Some(bytes) = view.array::<128>(place) else { return trouble(place, "truncated") };
        let entry = Entry::read(&bytes, header.sector_bytes)
            .ok_or(Trouble { at: place, reason: "an invalid directory entry" })?;
        links.push(entry.links);
        match (index, entry.kind) {
            (0, 5) => {
                class.copy_from_slice(&bytes[80..96]);
                let holder = long(header, &fat, &entry, &mut left);
                let read = Small::read(view, header, &fat, holder, used);
                small = Some(read.unwrap_or(trouble(tables_end, "the sectors of small streams"))?);
                left_small = small.as_ref().map_or(0, |small| small.fat.len() as u64);
            }
            (0, _) | (_, 5) => return trouble(place, "the root of the directory"),
            (_, 2) => {
                let stream = match &small {
                    Some(small) if entry.bytes < header.small_bytes => {
                        small.stream(&entry, &mut left_small)
                    }
                    _ => long(header, &fat, &entry, &mut left),
                };
                match stream {
                    // Its storage is known once all entries are read.
                    Some(stream) => streams.push(Stream { storage: index as u32, ..stream }),
                    None => {
                        let table_end = small.as_ref().map_or(0, |small| small.table_end);
                        return trouble(tables_end.max(table_end), "a stream's sectors");
                    }
                }
            }
            _ => {}
        }
        view.spend(8);
    }
    let storages = storages::of(&links);
    for stream in &mut streams {
        stream.storage = storages[stream.storage as usize];
    }
    Ok(Compound { length, streams, class })
}

/// Reads the numbers in `sectors`, in order.
fn numbers(view: &mut View<'_>, header: &Header, sectors: &[u32]) -> Result<Vec<u32>, Trouble> {
    let mut numbers = Vec::new();
    for sector in sectors {
        let place = header.place(*sector);
        let Some(bytes) = view.take(place, header.sector_bytes as usize) else {
            return trouble(place.min(view.length()), "truncated");
        };
        numbers.extend(words(bytes));
    }
    Ok(numbers)
}

/// Checks that no sector follows two others or itself, or is outside of the file.
fn check_links(header: &Header, fat: &[u32], tables: &[u32]) -> Result<(), Trouble> {
    let mut is_followed = vec![false; fat.len()];
    for (sector, next) in fat.iter().enumerate() {
        if *next >= SPECIAL {
            continue;
        }
        match is_followed.get_mut(*next as usize) {
            Some(seen) if !*seen && *next as usize != sector && fat[*next as usize] != FREE => {
                *seen = true;
            }
            _ => {
                let per_sector = (header.sector_bytes / 4) as usize;
                let place = header.place(tables[sector / per_sector]);
                return trouble(place, "an invalid link in the allocation table");
            }
        }
    }
    Ok(())
}

/// Returns the chain of sectors from `first` on.
fn chain(fat: &[u32], first: u32, most: u64) -> Option<Vec<u32>> {
    let mut sectors = Vec::new();
    let mut sector = first;
    while sector != END {
        if sectors.len() as u64 >= most {
            return None;
        }
        sectors.push(sector);
        sector = *fat.get(sector as usize)?;
    }
    Some(sectors)
}

/// An entry of the directory.
struct Entry {
    name: String,
    /// 0 none, 1 storage, 2 stream, 5 root.
    kind: u8,
    first: u32,
    bytes: u64,
    links: Links,
}

impl Entry {
    fn read(bytes: &[u8; 128], sector_bytes: u64) -> Option<Entry> {
        let name_bytes = usize::from(u16::from_le_bytes([bytes[64], bytes[65]]));
        let kind = bytes[66];
        if !matches!(kind, 0 | 1 | 2 | 5) || name_bytes > 64 || (kind != 0 && bytes[67] > 1) {
            return None;
        }
        if kind != 0 && (name_bytes < 2 || name_bytes % 2 != 0) {
            return None;
        }
        let units = bytes[..name_bytes.saturating_sub(2)].chunks_exact(2);
        let units = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let name = char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{FFFD}')).collect();
        let four = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|index| bytes[at + index]));
        // In files with small sectors the upper half is undefined.
        let high = if sector_bytes == 512 { 0 } else { u64::from(four(124)) << 32 };
        let is_storage = matches!(kind, 1 | 5);
        let child = if is_storage { four(76) } else { NOWHERE };
        let links = Links { siblings: [four(68), four(72)], child };
        Some(Entry { name, kind, first: four(116), bytes: high | u64::from(four(120)), links })
    }
}

/// Makes a stream that has its own sectors. All streams together have at most `left` sectors.
fn long(header: &Header, fat: &[u32], entry: &Entry, left: &mut u64) -> Option<Stream> {
    let mut stream = Stream::empty(entry);
    if entry.bytes == 0 {
        return Some(stream);
    }
    let sectors = chain(fat, entry.first, *left)?;
    *left -= sectors.len() as u64;
    if (sectors.len() as u64) < entry.bytes.div_ceil(header.sector_bytes) {
        return None;
    }
    let mut expected = u64::MAX;
    for (index, sector) in sectors.iter().enumerate() {
        let place = header.place(*sector);
        if place != expected {
            stream.runs.push((index as u64 * header.sector_bytes, place));
        }
        expected = place + header.sector_bytes;
    }
    Some(stream)
}

/// The places of small streams.
struct Small {
    holder: Stream,
    fat: Vec<u32>,
    /// The end of the last sector of its table.
    table_end: u64,
}

const SMALL_SECTOR_BYTES: u64 = 64;

impl Small {
    /// Returns `None` if its sectors are outside of the file.
    fn read(
        view: &mut View<'_>,
        header: &Header,
        fat: &[u32],
        holder: Option<Stream>,
        used: u64,
    ) -> Option<Result<Small, Trouble>> {
        let sectors = match header.small_tables {
            0 => Vec::new(),
            _ => chain(fat, header.small_table, used)?,
        };
        let holder = holder?;
        let last = sectors.iter().map(|sector| header.place(*sector)).max().unwrap_or(0);
        let table_end = last + header.sector_bytes;
        Some(numbers(view, header, &sectors).map(|fat| Small { holder, fat, table_end }))
    }

    fn stream(&self, entry: &Entry, left: &mut u64) -> Option<Stream> {
        let mut stream = Stream::empty(entry);
        if entry.bytes == 0 {
            return Some(stream);
        }
        let sectors = chain(&self.fat, entry.first, *left)?;
        *left -= sectors.len() as u64;
        if (sectors.len() as u64) < entry.bytes.div_ceil(SMALL_SECTOR_BYTES) {
            return None;
        }
        let mut expected = u64::MAX;
        for (index, sector) in sectors.iter().enumerate() {
            let place = self.holder.place(u64::from(*sector) * SMALL_SECTOR_BYTES)?;
            if place != expected {
                stream.runs.push((index as u64 * SMALL_SECTOR_BYTES, place));
            }
            expected = place + SMALL_SECTOR_BYTES;
        }
        Some(stream)
    }
}
