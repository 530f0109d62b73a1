//! Reads pages, and tracks the open streams.

use crc_fast::{CrcAlgorithm, Digest};

use crate::mend::{Reading, Step};
use crate::view::View;

/// Maximum number of streams of a file.
const STREAMS_MAX: usize = 64;
/// A page's header without its table.
const HEADER_BYTES: u64 = 27;

const CONTINUED: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;

/// The state after the last valid page.
#[derive(Clone, Default)]
pub(super) struct Pages {
    pub(super) at: u64,
    streams: Vec<Stream>,
    /// Why the last step was [`Step::Broken`].
    pub(super) fault: &'static str,
}

#[derive(Clone, Copy)]
struct Stream {
    serial: u32,
    next: u32,
    is_ended: bool,
}

/// The result of reading a page.
enum Page {
    /// A valid page, which ends at this byte.
    Right(u64),
    /// It continues after the readable bytes.
    Beyond,
    /// An invalid page, at this byte.
    Wrong(u64, &'static str),
}

impl Reading for Pages {
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step {
        let length = view.length();
        let to_seen = to.min(length);
        while self.at < to {
            let is_over = self.streams.iter().all(|stream| stream.is_ended);
            if is_over && !self.streams.is_empty() {
                if self.at + 6 > to_seen && to_seen < length {
                    return Step::Going;
                }
                // Another file may follow directly, as a chain.
                if !view.is_at(self.at, b"OggS\0\x02") {
                    return Step::Whole { length: self.at };
                }
            }
            match self.page(view, to_seen) {
                Page::Right(end) => self.at = end,
                Page::Beyond if to_seen < length => return Step::Going,
                Page::Beyond => {
                    self.fault = "truncated";
                    return Step::Broken { at: length };
                }
                // The first stream has ended, and no other page follows its last one.
                Page::Wrong(..) if is_over && !self.streams.is_empty() => {
                    return Step::Whole { length: self.at };
                }
                Page::Wrong(at, fault) => {
                    self.fault = fault;
                    return Step::Broken { at };
                }
            }
        }
        Step::Going
    }

    fn copy(&self) -> Box<dyn Reading> {
        Box::new(self.clone())
    }
}

impl Pages {
    /// Reads the page that begins here, without reading after `to`.
    fn page(&mut self, view: &mut View<'_>, to: u64) -> Page {
        let at = self.at;
        if at + HEADER_BYTES > to {
            return Page::Beyond;
        }
        let Some(header) = view.array::<{ HEADER_BYTES as usize }>(at) else {
            return Page::Beyond;
        };
        if !header.starts_with(b"OggS\0") || header[5] > (CONTINUED | FIRST | LAST) {
            return Page::Wrong(at + 6, "no page begins here");
        }
        let body = at + HEADER_BYTES + u64::from(header[26]);
        if body > to {
            return Page::Beyond;
        }
        let Some(table) = view.take(at + HEADER_BYTES, usize::from(header[26])) else {
            return Page::Beyond;
        };
        let end = body + table.iter().map(|bytes| u64::from(*bytes)).sum::<u64>();
        if end > to {
            return Page::Beyond;
        }
        if !is_checksum_right(view, &header, at, end) {
            return Page::Wrong(end, "checksum of a page");
        }
        let serial = u32::from_le_bytes([header[14], header[15], header[16], header[17]]);
        let number = u32::from_le_bytes([header[18], header[19], header[20], header[21]]);
        match self.follow(serial, number, header[5]) {
            Ok(()) => Page::Right(end),
            Err(fault) => Page::Wrong(at + HEADER_BYTES, fault),
        }
    }

    /// Records a page of a stream.
    fn follow(&mut self, serial: u32, number: u32, flags: u8) -> Result<(), &'static str> {
        let is_ended = flags & LAST != 0;
        if flags & FIRST != 0 {
            if self.streams.iter().all(|stream| stream.is_ended) {
                self.streams.clear();
            }
            if self.streams.iter().any(|stream| stream.serial == serial) {
                return Err("a stream begins twice");
            }
            if self.streams.len() == STREAMS_MAX {
                return Err("too many streams");
            }
            self.streams.push(Stream { serial, next: number.wrapping_add(1), is_ended });
            return Ok(());
        }
        let stream = self.streams.iter_mut().find(|stream| stream.serial == serial);
        match stream {
            Some(stream) if stream.next == number => {
                stream.next = number.wrapping_add(1);
                stream.is_ended |= is_ended;
                Ok(())
            }
            Some(_) => Err("pages are missing"),
            None => Err("page of a stream that has not begun"),
        }
    }
}

/// Whether the checksum of the page from `at` to `end` is right.
fn is_checksum_right(view: &mut View<'_>, header: &[u8; 27], at: u64, end: u64) -> bool {
    let mut header = *header;
    let stated = u32::from_le_bytes([header[22], header[23], header[24], header[25]]);
    header[22..26].fill(0);
    // CRC-32 of `cksum` has the same polynomial, order of bits and initial value 0; only its result
    // is inverted.
    let mut digest = Digest::new(CrcAlgorithm::Crc32Cksum);
    digest.update(&header);
    let body = at + HEADER_BYTES;
    view.each(body..end, |bytes| digest.update(bytes)) == end - body
        && !(digest.finalize() as u32) == stated
}
