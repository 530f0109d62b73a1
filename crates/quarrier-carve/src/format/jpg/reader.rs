//! Reads a picture marker by marker and block by block, in steps that can end anywhere.

use std::rc::Rc;

use super::blocks::State;
use super::frame::{Coding, Frame, Scan, Tables};
use super::huffman::Huffman;
use super::mpf;
use super::seam::{self, Mosaic};
use crate::mend::{Reading, Step};
use crate::view::{TAKE_BYTES_MAX, View};

/// Bytes of the first fetch of a scan; later fetches grow.
const FIRST_BYTES: usize = 1 << 10;
/// Minimum number of bytes to fetch of an interval.
const LEAST_BYTES: usize = 64;

/// Maximum number of bytes between a segment and the next marker: some segments are longer than
/// stated.
const JUNK_BYTES_MAX: u64 = 32;

/// A picture, read up to some byte.
#[derive(Clone)]
pub(crate) struct Reader {
    /// The next byte, and the next bit of it.
    pub(super) at: u64,
    pub(super) bit: u32,
    pub(super) part: Where,
    tables: Tables,
    /// The first entry of each quantisation table.
    pub(super) quantisers: [u32; 4],
    /// MCUs between restart markers; 0 for none.
    pub(super) restart: u32,
    pub(super) frame: Option<Rc<Frame>>,
    pub(super) scan: Option<Rc<Scan>>,
    /// MCUs of the scan that are done, and blocks of the next one.
    pub(super) mcu: u32,
    pub(super) slot: usize,
    pub(super) state: State,
    /// Components whose DC scan is done.
    pub(super) seen: [bool; 4],
    segments: u32,
    /// The place of the first index of further pictures; see [`mpf`].
    pub(super) index: Option<u64>,
    /// Kept for callers that examine it.
    pub(super) mosaic: Option<Box<Mosaic>>,
    /// All bytes before this one belong to the file for certain.
    pub(super) sure: u64,
    /// Why it is broken.
    pub(super) reason: &'static str,
}

/// The part of the picture to which the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    Start,
    Markers,
    Blocks,
    /// Between two intervals of blocks.
    Restart,
    /// In entropy-coded data that are not decoded.
    Foreign,
}

/// The result of a step.
pub(super) enum Done {
    /// Another part is next.
    Part,
    /// It continues at or after the limit.
    Limit,
    Whole(u64),
    Broken(u64, &'static str),
}

impl Reader {
    pub(crate) fn new() -> Self {
        Reader {
            at: 0,
            bit: 0,
            part: Where::Start,
            tables: Tables::default(),
            quantisers: [0; 4],
            restart: 0,
            frame: None,
            scan: None,
            mcu: 0,
            slot: 0,
            state: State::default(),
            seen: [false; 4],
            segments: 0,
            index: None,
            mosaic: None,
            sure: 0,
            reason: "",
        }
    }

    /// Makes a reader that can decide whether fragments belong together.
    pub(super) fn of_fragments() -> Self {
        Reader { mosaic: Some(Box::default()), ..Reader::new() }
    }

    /// Makes a reader of a picture that begins at `at` of the view.
    pub(super) fn starting_at(at: u64) -> Self {
        Reader { at, ..Reader::new() }
    }

    /// Whether it has read more than would match by chance.
    pub(super) fn is_likely(&self) -> bool {
        self.segments > 1
    }

    fn step(&mut self, view: &mut View<'_>, limit: u64, want: usize) -> Done {
        match self.part {
            Where::Start if limit < self.at + 3 => self.limit_or_end(view, limit),
            Where::Start if view.is_at(self.at, &[0xFF, 0xD8, 0xFF]) => {
                (self.at, self.part) = (self.at + 2, Where::Markers);
                Done::Part
            }
            Where::Start => Done::Broken(self.at, "not a picture"),
            Where::Markers => self.marker(view, limit),
            Where::Blocks => self.blocks(view, limit, want),
            Where::Restart => self.restart_marker(view, limit),
            Where::Foreign => self.foreign(view, limit),
        }
    }

    /// Skips entropy-coded data up to a marker that ends them.
    fn foreign(&mut self, view: &mut View<'_>, limit: u64) -> Done {
        loop {
            let Some(place) = view.find(self.at..limit, &[0xFF]) else {
                self.at = limit.min(view.length()).max(self.at);
                return self.limit_or_end(view, limit);
            };
            self.at = place;
            if place + 2 > limit {
                return self.limit_or_end(view, limit);
            }
            match view.byte(place + 1) {
                Some(0x00 | 0xD0..=0xD7) => self.at += 2,
                Some(0xFF) => self.at += 1,
                Some(_) => {
                    self.part = Where::Markers;
                    return Done::Part;
                }
                None => return Done::Broken(place, "truncated"),
            }
        }
    }

    /// Reads a segment, or another marker.
    fn marker(&mut self, view: &mut View<'_>, limit: u64) -> Done {
        let mut at = self.at;
        let marker = loop {
            if at + 2 > limit {
                return self.limit_or_end(view, limit);
            }
            match view.array::<2>(at) {
                Some([0xFF, 0xFF]) => at += 1,
                Some([0xFF, marker]) if marker > 0 => break marker,
                Some(_) if self.segments > 0 && at < self.at + JUNK_BYTES_MAX => at += 1,
                Some(_) => return Done::Broken(at + 2, "no marker where one must be"),
                None => return Done::Broken(at, "truncated"),
            }
        };
        let body = at + 2;
        match marker {
            0xD9 if self.seen_all() => return Done::Whole(body),
            0x00..=0x01 | 0xD0..=0xD9 => return Done::Broken(body, "a marker that cannot be here"),
            _ => {}
        }
        if body + 2 > limit {
            return self.limit_or_end(view, limit);
        }
        let Some(length) = view.u16_be(body) else { return Done::Broken(body, "truncated") };
        let end = body + u64::from(length);
        if length < 2 {
            return Done::Broken(body + 2, "a segment without a length");
        }
        if end > limit {
            return self.limit_or_end(view, limit);
        }
        if end > view.length() {
            return Done::Broken(view.length(), "truncated");
        }
        if !matches!(marker, 0xE0..=0xEF | 0xFE) {
            let Some(bytes) = view.take(body + 2, usize::from(length) - 2) else {
                return Done::Broken(body, "truncated");
            };
            let bytes = bytes.to_vec();
            view.spend(bytes.len() as u64 * 8);
            if self.segment(marker, &bytes).is_none() {
                return Done::Broken(end, "a header that says nothing");
            }
        }
        if marker == 0xE2 && self.index.is_none() && view.is_at(body + 2, mpf::NAME) {
            self.index = Some(body + 2 + mpf::NAME.len() as u64);
        }
        self.segments += 1;
        self.sure = at;
        self.at = end;
        Done::Part
    }

    /// Reports the limit, unless the view ends there.
    pub(super) fn limit_or_end(&self, view: &View<'_>, limit: u64) -> Done {
        match limit >= view.length() {
            true => Done::Broken(view.length(), "truncated"),
            false => Done::Limit,
        }
    }

    fn seen_all(&self) -> bool {
        let Some(frame) = &self.frame else { return false };
        self.seen[..frame.components.len()].iter().all(|seen| *seen)
    }

    /// Reads a segment. `None` if it is invalid.
    fn segment(&mut self, marker: u8, bytes: &[u8]) -> Option<()> {
        match marker {
            0xC4 => {
                let mut rest = bytes;
                while let Some((&class, table)) = rest.split_first() {
                    let tables = match class >> 4 {
                        0 => &mut self.tables.dc,
                        1 => &mut self.tables.ac,
                        _ => return None,
                    };
                    let (huffman, length) = Huffman::parse(table, class >> 4 == 0)?;
                    *tables.get_mut(usize::from(class & 15))? = Some(Rc::new(huffman));
                    rest = &table[length..];
                }
            }
            0xDB => {
                let mut rest = bytes;
                while let Some((&class, table)) = rest.split_first() {
                    let quantiser = self.quantisers.get_mut(usize::from(class & 15))?;
                    let length = match class >> 4 {
                        0 => 64,
                        1 => 128,
                        _ => return None,
                    };
                    let first = table.get(..length)?.first_chunk::<2>()?;
                    *quantiser = match length {
                        64 => u32::from(first[0]),
                        _ => u32::from(u16::from_be_bytes(*first)),
                    };
                    rest = &table[length..];
                }
            }
            0xDD => self.restart = u32::from(u16::from_be_bytes(bytes.try_into().ok()?)),
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                if self.frame.is_some() {
                    return None;
                }
                self.frame = Some(Rc::new(Frame::parse(marker, bytes)?));
            }
            0xDA => {
                let frame = self.frame.clone()?;
                if frame.coding == Coding::Foreign {
                    self.seen = [true; 4];
                    self.part = Where::Foreign;
                    return Some(());
                }
                let scan = Scan::parse(&frame, &self.tables, bytes)?;
                if let Some(mosaic) = &mut self.mosaic {
                    let components =
                        scan.parts.iter().map(|part| &frame.components[part.component]);
                    let quantisers = components.map(|one| self.quantisers[one.quantiser]);
                    mosaic.begin(scan.across, &quantisers.collect::<Vec<_>>());
                }
                self.scan = Some(Rc::new(scan));
                (self.mcu, self.slot, self.bit) = (0, 0, 0);
                self.state.dc = [0; 4];
                self.state.end_run = 0;
                self.part = Where::Blocks;
            }
            _ => {}
        }
        Some(())
    }
}

impl Reading for Reader {
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step {
        let mut want = FIRST_BYTES;
        let mut begun = self.at;
        loop {
            let before = self.part;
            match self.step(view, to, want) {
                Done::Part => match (before, self.part) {
                    // Bytes fetched beyond an interval are fetched again with the next one, which
                    // is about as long.
                    (Where::Blocks, Where::Restart) => {
                        let last = (self.at - begun) as usize;
                        want = (last + last / 4).clamp(LEAST_BYTES, TAKE_BYTES_MAX);
                    }
                    (Where::Restart, Where::Blocks) => begun = self.at,
                    (Where::Markers, Where::Blocks) => begun = self.at,
                    _ => want = (want * 2).min(TAKE_BYTES_MAX),
                },
                Done::Limit => return Step::Going,
                Done::Whole(length) => return Step::Whole { length },
                Done::Broken(at, reason) => {
                    self.reason = reason;
                    return Step::Broken { at: at.min(view.length()) };
                }
            }
        }
    }

    fn join(&mut self) {
        if let Some(mosaic) = &mut self.mosaic {
            mosaic.join();
        }
    }

    fn misfit(&self) -> u32 {
        self.mosaic.as_ref().map_or(0, |mosaic| mosaic.misfit_of_last())
    }

    fn fits(&self, view: &mut View<'_>, joints: &[u64]) -> bool {
        seam::fits(view, joints)
    }

    fn copy(&self) -> Box<dyn Reading> {
        Box::new(self.clone())
    }
}
