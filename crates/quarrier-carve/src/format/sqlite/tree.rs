//! Pages and their trees.

use crate::view::View;

/// Maximum number of pages of a file; each takes one bit of memory.
const PAGES_MAX: u64 = 1 << 31;
/// The walk ends after this many wrong pages.
const WRONG_MAX: u64 = 16;
/// Maximum number of pages in the queue.
const WAITING_MAX: usize = 1 << 22;

/// The fields of the header that a walk needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) page_bytes: u64,
    /// The number of bytes of a page that trees may use.
    usable_bytes: u64,
    /// The number of pages; 0 if not stated.
    pub(super) pages: u64,
    free: u32,
}

impl Header {
    pub(super) fn read(view: &mut View<'_>) -> Option<Header> {
        let bytes = view.array::<100>(0)?;
        let four = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|index| bytes[at + index]));
        let page_bytes = match u16::from_be_bytes([bytes[16], bytes[17]]) {
            1 => 65536,
            bytes => u64::from(bytes),
        };
        let reserved = u64::from(bytes[20]);
        let is_sane = page_bytes.is_power_of_two()
            && page_bytes >= 512
            && matches!(bytes[18..20], [1 | 2, 1 | 2])
            && bytes[21..24] == [64, 32, 32]
            && page_bytes - reserved >= 480
            && four(44) <= 4
            && four(56) <= 3
            && bytes[72..92] == [0; 20];
        let is_counted = four(24) == four(92);
        let pages = if is_counted { u64::from(four(28)) } else { 0 };
        is_sane.then(|| Header {
            page_bytes,
            usable_bytes: page_bytes - reserved,
            pages,
            free: four(32),
        })
    }
}

/// A page to read.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    page: u32,
    kind: PageKind,
}

#[derive(Debug, Clone, Copy)]
enum PageKind {
    /// A page of a table's tree, with row numbers in this range, both ends included.
    Rows(i64, i64),
    /// The same, for the schema table.
    Schema(i64, i64),
    /// A page of an index's tree.
    Index,
    /// The root of a tree.
    Root,
    /// An overflow page: the rest of a long row.
    Rest,
    /// A list of free pages.
    Free,
}

/// The result of a walk through all trees.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// The last page in use.
    pub(super) last: u64,
    pub(super) wrong: u64,
    /// The offset of the first wrong page in the file.
    pub(super) first_wrong: u64,
    /// The number of valid pages.
    pub(super) right: u64,
}

struct Walk<'w, 'v> {
    view: &'w mut View<'v>,
    header: Header,
    most: u64,
    seen: Vec<u64>,
    waiting: Vec<Waiting>,
    walked: Walked,
}

/// Walks all trees.
pub(super) fn walk(view: &mut View<'_>, header: &Header) -> Walked {
    let there = view.length().div_ceil(header.page_bytes);
    let most = if header.pages > 0 { header.pages } else { there }.min(PAGES_MAX);
    let first = Waiting { page: 1, kind: PageKind::Schema(i64::MIN, i64::MAX) };
    let mut walk = Walk {
        view,
        header: *header,
        most,
        seen: Vec::new(),
        waiting: vec![first],
        walked: Walked::default(),
    };
    walk.walked.first_wrong = u64::MAX;
    if header.free > 0 {
        walk.waiting.push(Waiting { page: header.free, kind: PageKind::Free });
    }
    while let Some(waiting) = walk.waiting.pop() {
        if walk.view.is_starved() || walk.walked.wrong > WRONG_MAX {
            break;
        }
        walk.look(waiting);
    }
    walk.walked
}

fn be16(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Reads the number of one to nine bytes at `at`; returns it and its end.
fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for index in 0..9 {
        let byte = *bytes.get(at + index)?;
        if index == 8 {
            return Some((value << 8 | u64::from(byte), at + 9));
        }
        value = value << 7 | u64::from(byte & 0x7F);
        if byte < 0x80 {
            return Some((value, at + index + 1));
        }
    }
    None
}

impl Walk<'_, '_> {
    fn look(&mut self, waiting: Waiting) {
        let page = u64::from(waiting.page);
        let place = page.wrapping_sub(1).saturating_mul(self.header.page_bytes);
        let is_new = page > 0 && page <= self.most && self.see(page);
        let bytes = self.view.take(place, self.header.page_bytes as usize).map(<[u8]>::to_vec);
        let is_right = match bytes {
            Some(bytes) if is_new => self.page(&bytes, waiting).is_some(),
            _ => false,
        };
        if is_right {
            self.walked.last = self.walked.last.max(page);
            self.walked.right += 1;
        } else {
            self.walked.wrong += 1;
            self.walked.first_wrong = self.walked.first_wrong.min(place);
        }
    }

    /// Marks a page as seen. Returns whether it was new.
    fn see(&mut self, page: u64) -> bool {
        let (word, bit) = ((page / 64) as usize, 1 << (page % 64));
        if word >= self.seen.len() {
            // Bounds the size by the number of pages in the file.
            if page * self.header.page_bytes > self.view.length() + self.header.page_bytes {
                return false;
            }
            self.seen.resize(word + 1, 0);
        }
        let is_new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        is_new
    }

    fn wait(&mut self, page: u32, kind: PageKind) -> Option<()> {
        let has_room = self.waiting.len() < WAITING_MAX;
        has_room.then(|| self.waiting.push(Waiting { page, kind }))
    }

    fn page(&mut self, bytes: &[u8], waiting: Waiting) -> Option<()> {
        match waiting.kind {
            PageKind::Free => self.free(bytes),
            PageKind::Rest => match be32(bytes, 0)? {
                0 => Some(()),
                next => self.wait(next, PageKind::Rest),
            },
            _ => self.tree(bytes, waiting),
        }
    }

    /// Reads a list of free pages, whose contents are arbitrary.
    fn free(&mut self, bytes: &[u8]) -> Option<()> {
        let (next, count) = (be32(bytes, 0)?, be32(bytes, 4)?);
        if u64::from(count) * 4 + 8 > self.header.usable_bytes {
            return None;
        }
        for index in 0..count as usize {
            let page = u64::from(be32(bytes, 8 + 4 * index)?);
            if page == 0 || page > self.most || !self.see(page) {
                return None;
            }
            self.walked.last = self.walked.last.max(page);
        }
        if next > 0 { self.wait(next, PageKind::Free) } else { Some(()) }
    }

    fn tree(&mut self, bytes: &[u8], waiting: Waiting) -> Option<()> {
        let head = if waiting.page == 1 { 100 } else { 0 };
        let kind = *bytes.get(head)?;
        let (is_rows, is_leaf) = match kind {
            2 => (false, false),
            5 => (true, false),
            10 => (false, true),
            13 => (true, true),
            _ => return None,
        };
        let (low, high) = match waiting.kind {
            PageKind::Rows(low, high) | PageKind::Schema(low, high) if is_rows => (low, high),
            PageKind::Root if is_rows => (i64::MIN, i64::MAX),
            PageKind::Index | PageKind::Root if !is_rows => (0, 0),
            _ => return None,
        };
        let count = be16(bytes, head + 3)?;
        let cells = head + if is_leaf { 8 } else { 12 };
        let content = match be16(bytes, head + 5)? {
            0 => 65536,
            content => content,
        };
        let is_sane = cells + 2 * count <= content && content as u64 <= self.header.usable_bytes;
        if !is_sane || bytes[head + 7] > 60 {
            return None;
        }
        let mut low = low;
        let is_schema = matches!(waiting.kind, PageKind::Schema(..));
        let below = if is_schema { PageKind::Schema } else { PageKind::Rows };
        for index in 0..count {
            let cell = be16(bytes, cells + 2 * index)?;
            if cell < cells + 2 * count || cell as u64 + 4 > self.header.usable_bytes {
                return None;
            }
            match (is_rows, is_leaf) {
                (true, false) => {
                    let (row, _) = varint(bytes, cell + 4)?;
                    self.check_order(row as i64, low, high)?;
                    self.wait(be32(bytes, cell)?, below(low, row as i64))?;
                    low = row as i64;
                }
                (true, true) => {
                    let (length, at) = varint(bytes, cell)?;
                    let (row, at) = varint(bytes, at)?;
                    self.check_order(row as i64, low, high)?;
                    low = row as i64;
                    self.payload(bytes, at, length, true)?;
                    if is_schema {
                        self.schema(bytes, at);
                    }
                }
                (false, _) => {
                    let from = if is_leaf { cell } else { cell + 4 };
                    if !is_leaf {
                        self.wait(be32(bytes, cell)?, PageKind::Index)?;
                    }
                    let (length, at) = varint(bytes, from)?;
                    self.payload(bytes, at, length, false)?;
                }
            }
        }
        if !is_leaf {
            let kind = if is_rows { below(low, high) } else { PageKind::Index };
            self.wait(be32(bytes, head + 8)?, kind)?;
        }
        Some(())
    }

    fn check_order(&self, row: i64, low: i64, high: i64) -> Option<()> {
        (row >= low && row <= high).then_some(())
    }

    /// Reads the bytes of a row that begin at `at`; the rest may be in other pages.
    fn payload(&mut self, bytes: &[u8], at: usize, length: u64, is_row: bool) -> Option<()> {
        let usable = self.header.usable_bytes;
        let most = if is_row { usable - 35 } else { (usable - 12) * 64 / 255 - 23 };
        if length <= most {
            return (at as u64 + length <= usable).then_some(());
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let here = least + (length - least) % (usable - 4);
        let here = if here <= most { here } else { least };
        let next = be32(bytes, at + here as usize)?;
        self.wait(next, PageKind::Rest)
    }

    /// Reads a row of the schema table: its fourth column is the root of a tree.
    fn schema(&mut self, bytes: &[u8], at: usize) -> Option<()> {
        let (head_bytes, mut place) = varint(bytes, at)?;
        let mut data = at + usize::try_from(head_bytes).ok()?;
        for column in 0..4 {
            let (kind, next) = varint(bytes, place)?;
            place = next;
            let length = match kind {
                0 | 8 | 9 => 0,
                1..=4 => kind,
                5 => 6,
                6 | 7 => 8,
                _ => kind.checked_sub(12)? / 2,
            };
            let length = usize::try_from(length).ok()?;
            if column == 3 {
                let value = bytes.get(data..data.checked_add(length)?)?;
                let root = match kind {
                    9 => 1,
                    1..=4 => value.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)),
                    _ => 0,
                };
                if root > 1 {
                    self.wait(u32::try_from(root).ok()?, PageKind::Root)?;
                }
            }
            data = data.checked_add(length)?;
        }
        Some(())
    }
}
