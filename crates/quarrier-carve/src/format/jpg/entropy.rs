//! The entropy-coded data of a picture: intervals of MCUs with restart markers in between.

use super::bits::Bits;
use super::blocks::{Wrong, progressive, sequential};
use super::frame::{Coding, Frame, Scan};
use super::reader::{Done, Reader, Where};
use crate::view::{TAKE_BYTES_MAX, View};

/// Minimum run of zeros that a picture does not contain, unless zeros are codes for no change.
const ZEROS: usize = 64;
/// Minimum run of bytes of text that a picture does not contain; random bytes do not even have
/// sixteen.
const TEXT: usize = 384;
/// Text has more distinct byte values than this, unlike a repetition of few codes.
const TEXT_VALUES: u32 = 12;
/// Maximum DC value with 8 bits per sample, before quantisation.
const DC_MAX: u32 = 1024;
/// The tolerance for that maximum, as a factor.
const DC_SLACK: u32 = 2;

impl Reader {
    /// Returns the greatest DC value of each component of a scan.
    fn ranges(&self, frame: &Frame, scan: &Scan) -> [u32; 4] {
        let mut ranges = [u32::MAX; 4];
        for (range, part) in ranges.iter_mut().zip(&scan.parts) {
            let quantiser = self.quantisers[frame.components[part.component].quantiser];
            let most = DC_MAX << (frame.precision - 8);
            *range = (most / quantiser.max(1) + 2).saturating_mul(DC_SLACK);
        }
        ranges
    }

    /// Decodes blocks from the bytes before `limit`.
    pub(super) fn blocks(&mut self, view: &mut View<'_>, limit: u64, want: usize) -> Done {
        let (Some(frame), Some(scan)) = (self.frame.clone(), self.scan.clone()) else {
            return Done::Broken(self.at, "no scan");
        };
        let end = limit.min(view.length());
        let count = (end.saturating_sub(self.at)).min(want as u64).min(view.fuel_bytes().max(1));
        let is_last = self.at + count >= end;
        let Some(bytes) = view.take(self.at, count as usize) else {
            return Done::Broken(self.at, "truncated");
        };
        let zeros = (!scan.is_zero_nothing).then(|| zeros(bytes)).flatten();
        let zeros =
            zeros.map(|at| Alien { at, shown: at + ZEROS / 2, seen: at + ZEROS, what: "zeros" });
        let text = text(bytes).map(|at| Alien { at, shown: at, seen: at + TEXT, what: "text" });
        let alien = [zeros, text].into_iter().flatten().min_by_key(|alien| alien.at);
        let shown = alien.as_ref().map_or(bytes, |alien| &bytes[..alien.shown]);
        let ranges = self.ranges(&frame, &scan);
        let mut bits = Bits::new(shown, self.bit);
        let started = bits.place();
        let outcome = match frame.coding {
            Coding::Progressive => self.progressive(&mut bits, &scan, ranges),
            _ => self.sequential(&mut bits, &scan, ranges),
        };
        let ((place, bit), next) = (bits.place(), bits.next_byte());
        let seen = bits.seen();
        let before = self.at;
        match outcome {
            Outcome::Wrong(wrong) => Done::Broken(before + seen as u64, wrong.reason()),
            Outcome::Marker(at) => Done::Broken(before + at as u64 + 2, "a marker amid a scan"),
            Outcome::Interval | Outcome::Scan if self.state.end_run > 0 => {
                Done::Broken(before + seen as u64, "blocks beyond the last one")
            }
            Outcome::Interval | Outcome::Scan => {
                (self.at, self.bit) = (before + next as u64, 0);
                if let Outcome::Scan = outcome {
                    self.end_of_scan(&scan);
                } else {
                    self.part = Where::Restart;
                }
                Done::Part
            }
            Outcome::Short => {
                (self.at, self.bit) = (before + place as u64, bit);
                if let Some(alien) = alien {
                    return Done::Broken(before + alien.seen as u64, alien.what);
                }
                if !is_last && (place, bit) == started && want >= TAKE_BYTES_MAX {
                    return Done::Broken(self.at, "a block without an end");
                }
                match is_last {
                    true => self.limit_or_end(view, limit),
                    false => Done::Part,
                }
            }
        }
    }

    /// Reads the marker between two intervals.
    pub(super) fn restart_marker(&mut self, view: &mut View<'_>, limit: u64) -> Done {
        loop {
            if self.at + 2 > limit {
                return self.limit_or_end(view, limit);
            }
            let Some([first, marker]) = view.array::<2>(self.at) else {
                return Done::Broken(self.at, "truncated");
            };
            if (first, marker) == (0xFF, 0xFF) {
                self.at += 1;
                continue;
            }
            let interval = self.mcu / self.restart.max(1);
            if first != 0xFF || u32::from(marker) != 0xD0 + (interval - 1) % 8 {
                return Done::Broken(self.at + 2, "not the next restart marker");
            }
            self.at += 2;
            self.sure = self.at;
            self.state.dc = [0; 4];
            self.part = Where::Blocks;
            return Done::Part;
        }
    }

    fn sequential(&mut self, bits: &mut Bits<'_>, scan: &Scan, ranges: [u32; 4]) -> Outcome {
        let mut left = self.until_restart(scan);
        let mut at = *bits;
        let mut dc = self.state.dc;
        let outcome = 'all: loop {
            if left == 0 {
                break if self.mcu == scan.mcus { Outcome::Scan } else { Outcome::Interval };
            }
            while let Some(&index) = scan.slots.get(self.slot) {
                let index = usize::from(index) & 3;
                let before = (at, dc[index]);
                let done = sequential(&mut at, &scan.parts[index], &mut dc[index], ranges[index]);
                if at.is_overrun() {
                    let outcome = short(&at);
                    (at, dc[index]) = before;
                    break 'all outcome;
                }
                if let Err(wrong) = done {
                    break 'all Outcome::Wrong(wrong);
                }
                self.slot += 1;
            }
            if let Some(mosaic) = &mut self.mosaic {
                mosaic.add(dc);
            }
            self.slot = 0;
            self.mcu += 1;
            left -= 1;
        };
        *bits = at;
        self.state.dc = dc;
        outcome
    }

    fn progressive(&mut self, bits: &mut Bits<'_>, scan: &Scan, ranges: [u32; 4]) -> Outcome {
        let mut left = self.until_restart(scan);
        loop {
            if left == 0 {
                return if self.mcu == scan.mcus { Outcome::Scan } else { Outcome::Interval };
            }
            if self.state.end_run > 0 && !scan.refines {
                let run = left.min(self.state.end_run);
                self.state.end_run -= run;
                self.mcu += run;
                left -= run;
                continue;
            }
            while let Some(&index) = scan.slots.get(self.slot) {
                let index = usize::from(index) & 3;
                let before = (*bits, self.state.dc[index], self.state.end_run);
                let done = progressive(bits, scan, index, self.mcu, &mut self.state, ranges[index]);
                if bits.is_overrun() {
                    let outcome = short(bits);
                    (*bits, self.state.dc[index], self.state.end_run) = before;
                    return outcome;
                }
                if let Err(wrong) = done {
                    return Outcome::Wrong(wrong);
                }
                self.slot += 1;
            }
            if let Some(mosaic) = &mut self.mosaic {
                mosaic.add(self.state.dc);
            }
            self.slot = 0;
            self.mcu += 1;
            left -= 1;
        }
    }

    /// Returns the number of MCUs up to the next restart marker, or to the end of the scan.
    fn until_restart(&self, scan: &Scan) -> u32 {
        let left = scan.mcus - self.mcu;
        match self.restart {
            0 => left,
            restart => left.min(restart - self.mcu % restart),
        }
    }

    fn end_of_scan(&mut self, scan: &Scan) {
        if let Some(mosaic) = &mut self.mosaic {
            mosaic.finish();
        }
        for part in &scan.parts {
            self.seen[part.component] |= scan.band.0 == 0;
        }
        self.part = Where::Markers;
    }
}

/// How a piece of a scan ended.
enum Outcome {
    Scan,
    /// A restart marker is next.
    Interval,
    /// There are too few bits for another block.
    Short,
    /// There is a marker at this byte.
    Marker(usize),
    Wrong(Wrong),
}

fn short(bits: &Bits<'_>) -> Outcome {
    bits.marker().map_or(Outcome::Short, Outcome::Marker)
}

/// The first byte in the current range that does not belong to a scan.
struct Alien {
    at: usize,
    /// The bytes to decode.
    shown: usize,
    /// The number of bytes that must be visible for this decision.
    seen: usize,
    what: &'static str,
}

/// Returns the start of a run of [`TEXT`] bytes of text.
fn text(bytes: &[u8]) -> Option<usize> {
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7E);
    for (index, step) in bytes.chunks_exact(TEXT / 2).enumerate() {
        if step[..16].iter().all(is_text) {
            let at = index * (TEXT / 2);
            let start =
                bytes[..at].iter().rposition(|byte| !is_text(byte)).map_or(0, |last| last + 1);
            let Some(run) = bytes.get(start..start + TEXT) else { continue };
            let values = run.iter().fold(0u128, |seen, byte| seen | 1 << (byte & 127)).count_ones();
            if values > TEXT_VALUES && run.iter().all(is_text) {
                return Some(start);
            }
        }
    }
    None
}

/// Returns the start of a run of [`ZEROS`] zeros.
fn zeros(bytes: &[u8]) -> Option<usize> {
    const STEP: usize = ZEROS / 2;
    for (index, step) in bytes.chunks_exact(STEP).enumerate() {
        if step[0] | step[STEP - 1] == 0 {
            let at = index * STEP;
            let start = bytes[..at].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let run = bytes[start..].iter().take(ZEROS).take_while(|byte| **byte == 0).count();
            if run == ZEROS {
                return Some(start);
            }
        }
    }
    None
}
