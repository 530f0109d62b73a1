//! Template parsing: predicts a line from the line before it.
//!
//! The bytes between the scalars of a message (brackets, keys, colons, blanks) are its *glue*, its
//! template. By JSON's grammar, a message with valid scalars and the same glue as a valid message
//! is valid too, and has the same fields. So the parser compares the expected keys with the
//! upcoming bytes instead of looking them up. It stores the glues that it has seen in a tree,
//! because messages differ in the fields they lack. Only the last glue includes the line feed, so
//! the parser finds the ends of lines on the way.

use quarrier_core::isa::Isa;

use super::number::{self, Written};
use super::string;
use super::walk::{SCALARS_MAX, Scalar, set_number, set_word, word};
#[cfg(target_arch = "aarch64")]
use crate::arch::Neon;
use crate::arch::{AHEAD_BYTES, Lanes, Portable, Short};
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2, Avx512};
use crate::build::{FieldId, Row};
use crate::frame::{Chunk, Taker};

/// The templates of lines, as a tree of glues.
#[derive(Debug)]
pub(super) struct Glue {
    isa: Isa,
    steps: Vec<Step>,
    /// The contents of a string after replacing its escapes.
    plain: Vec<u8>,
}

/// A piece of glue, and the scalar that follows it.
#[derive(Debug, Clone)]
struct Step {
    glue: Short,
    /// Whether the message ends with this glue, and no scalar follows.
    is_last: bool,
    field: Option<FieldId>,
    /// Whether the scalar is in the last element of a list.
    is_in_last: bool,
    /// The glue last seen after the scalar; 0 for none.
    next: u32,
    /// Another glue at the same position, seen less recently; 0 for none.
    other: u32,
}

/// Maximum number of glues to store; beyond it, the parser forgets all of them, so that messages
/// that differ each time do not fill the memory.
const STEPS_MAX: usize = 16_384;
/// Maximum number of glues to try at one position.
const OTHERS_MAX: usize = 16;

impl Glue {
    pub(super) fn new(isa: Isa) -> Self {
        let root =
            Step { glue: EMPTY, is_last: false, field: None, is_in_last: false, next: 0, other: 0 };
        Glue { isa: isa.or_best(), steps: vec![root], plain: Vec::new() }
    }

    /// Learns the glues of a valid message with its line feed.
    #[cold]
    pub(super) fn learn(&mut self, line: &[u8], scalars: &[Scalar]) {
        if scalars.len() > SCALARS_MAX {
            return;
        }
        if self.steps.len() + scalars.len() + 1 > STEPS_MAX {
            self.steps.truncate(1);
            self.steps[0].next = 0;
        }
        let mut from = 0;
        let mut at = 0;
        for scalar in scalars {
            // The 64 bytes must include the first byte of the scalar.
            let glue = Short::new(&line[from..scalar.start]).filter(|g| g.len < AHEAD_BYTES);
            let Some(glue) = glue else { return };
            at = self.step(at, glue, (scalar.field, scalar.is_in_last), false);
            from = scalar.end;
        }
        if let Some(glue) = Short::new(&line[from..]) {
            self.step(at, glue, (None, false), true);
        }
    }

    /// Returns the step after `from` with this glue, known or new; the next line tries a new one
    /// first.
    fn step(
        &mut self,
        from: u32,
        glue: Short,
        (field, is_in_last): (Option<FieldId>, bool),
        is_last: bool,
    ) -> u32 {
        let mut at = self.steps[from as usize].next;
        for _ in 0..=OTHERS_MAX {
            if at == 0 {
                break;
            }
            let step = &self.steps[at as usize];
            if step.glue.len == glue.len && step.glue.bytes == glue.bytes {
                return at;
            }
            at = step.other;
        }
        let other = self.steps[from as usize].next;
        self.steps.push(Step { glue, is_last, field, is_in_last, next: 0, other });
        let new = self.steps.len() as u32 - 1;
        self.steps[from as usize].next = new;
        new
    }

    /// See [`LineFormat::lines`](crate::frame::LineFormat::lines).
    pub(super) fn lines<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        match self.isa {
            // SAFETY: `self.isa` comes from `or_best`, so all features of `Isa::Avx512` were
            // detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { self.lines_avx512(chunk, taker) },
            // SAFETY: `self.isa` comes from `or_best`, so all features of `Isa::Avx2` were
            // detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { self.lines_avx2(chunk, taker) },
            // SAFETY: `self.isa` comes from `or_best`, so all features of `Isa::Neon` were
            // detected.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { self.lines_neon(chunk, taker) },
            // SAFETY: `Portable` needs no features.
            _ => unsafe { self.lines_on::<Portable, T>(chunk, taker) },
        }
    }

    /// # Safety
    /// [`Isa::Avx512`] is available.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
    unsafe fn lines_avx512<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        const { assert!(Isa::Avx512.has("avx512f,avx512bw,bmi1,bmi2")) };
        // SAFETY: the caller promises the features of `Isa::Avx512`, which include those that
        // `Avx512` needs.
        unsafe { self.lines_on::<Avx512, T>(chunk, taker) }
    }

    /// # Safety
    /// [`Isa::Avx2`] is available.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    unsafe fn lines_avx2<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        const { assert!(Isa::Avx2.has("avx2,bmi1,bmi2")) };
        // SAFETY: the caller promises the features of `Isa::Avx2`, which include those that `Avx2`
        // needs.
        unsafe { self.lines_on::<Avx2, T>(chunk, taker) }
    }

    /// # Safety
    /// [`Isa::Neon`] is available.
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    unsafe fn lines_neon<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        const { assert!(Isa::Neon.has("neon")) };
        // SAFETY: the caller promises the features of `Isa::Neon`, which include those that `Neon`
        // needs.
        unsafe { self.lines_on::<Neon, T>(chunk, taker) }
    }

    /// # Safety
    /// The instruction set of `L` is available.
    #[inline(always)]
    unsafe fn lines_on<L: Lanes, T: Taker>(
        &mut self,
        chunk: &mut Chunk<'_>,
        taker: &mut T,
    ) -> bool {
        let bytes = chunk.bytes;
        // A line that starts after these bytes belongs to the next chunk.
        while chunk.at < chunk.until {
            // SAFETY: the caller promises the instruction set, the only condition of `line`.
            let line = unsafe { self.line::<L, T::Row>(bytes, chunk.at, taker.row()) };
            let Some(end) = line else { return false };
            taker.commit(&bytes[chunk.at..end - 1], chunk.at, chunk.lines);
            chunk.at = end;
            chunk.lines += 1;
        }
        true
    }

    /// Parses the line that starts at `at` by the template; returns the start of the next line, or
    /// `None` if the line differs.
    ///
    /// The bytes loaded to compare the glue also include the end of the scalar after it, so that
    /// each scalar waits for only one load.
    ///
    /// # Safety
    /// The instruction set of `L` is available.
    #[inline(always)]
    unsafe fn line<L: Lanes, R: Row>(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        row: &mut R,
    ) -> Option<usize> {
        let mut from = 0;
        loop {
            if at + 2 * AHEAD_BYTES > bytes.len() {
                return None;
            }
            // SAFETY: the caller promises the instruction set, and twice AHEAD_BYTES of `bytes` are
            // left at `at`.
            let ahead = unsafe { L::look(bytes.as_ptr().add(at)) };
            let first = self.steps[from as usize].next;
            // SAFETY: the caller promises the instruction set, and `bytes`, of which `ahead` was
            // loaded, is borrowed.
            let is_next = unsafe { L::starts_with(ahead, &self.steps[first as usize].glue) };
            from = match is_next && first != 0 {
                true => first,
                false => self.turn(&bytes[at..at + AHEAD_BYTES], from)?,
            };
            let step = &self.steps[from as usize];
            let skip = step.glue.len;
            if step.is_last {
                return Some(at + skip);
            }
            let field = step.field;
            let start = at + skip;
            at = match bytes[start] {
                b'"' => {
                    // SAFETY: the caller promises the instruction set. Twice AHEAD_BYTES were
                    // readable when `ahead` was loaded, and `skip` is below AHEAD_BYTES: `learn`
                    // keeps no longer glue before a scalar.
                    let text = unsafe { L::text(ahead, skip) };
                    let quoted = (text.stops >> 1, text.wide >> 1);
                    // SAFETY: the caller promises the instruction set, the only condition of
                    // `string`.
                    unsafe { self.string::<L, R>(bytes, start + 1, quoted, field, row)? }
                }
                b'-' | b'0'..=b'9' => {
                    // SAFETY: the caller promises the instruction set. Twice AHEAD_BYTES were
                    // readable when `ahead` was loaded, and `skip` is below AHEAD_BYTES: `learn`
                    // keeps no longer glue before a scalar.
                    let digits = unsafe { L::digits(ahead, skip) };
                    let seen = AHEAD_BYTES - skip;
                    // SAFETY: the caller promises the instruction set, the only condition of
                    // `number`.
                    unsafe { self.number::<L, R>(bytes, start, (digits, seen), field, row)? }
                }
                _ => {
                    let (value, end) = word(bytes, start).ok()?;
                    if value.is_none() && step.is_in_last && row.takes_list_ends() {
                        // The list may end with this NULL.
                        return None;
                    }
                    if let Some(field) = field {
                        set_word(row, field, value);
                    }
                    end
                }
            };
        }
    }

    /// Finds the glue among those seen less recently; the next line tries it first.
    #[inline(never)]
    fn turn(&mut self, ahead: &[u8], from: u32) -> Option<u32> {
        let first = self.steps[from as usize].next;
        let mut before = first;
        for _ in 0..OTHERS_MAX {
            let at = self.steps[before as usize].other;
            if at == 0 {
                return None;
            }
            let step = &self.steps[at as usize];
            if ahead.starts_with(&step.glue.bytes[..step.glue.len]) {
                self.steps[before as usize].other = step.other;
                self.steps[at as usize].other = first;
                self.steps[from as usize].next = at;
                return Some(at);
            }
            before = at;
        }
        None
    }

    /// Parses the number that starts at `at`, given the mask of its `digits`; returns its end, or
    /// `None` if it is invalid.
    ///
    /// # Safety
    /// The instruction set of `L` is available.
    #[inline(always)]
    unsafe fn number<L: Lanes, R: Row>(
        &mut self,
        bytes: &[u8],
        at: usize,
        (digits, seen): (u64, usize),
        field: Option<FieldId>,
        row: &mut R,
    ) -> Option<usize> {
        if L::HAS_DIGITS
            && let Some(written) = Written::find(bytes, at, digits, seen)
        {
            let end = written.end();
            let Some(field) = field else { return Some(end) };
            if end + AHEAD_BYTES <= bytes.len()
                // SAFETY: the caller promises the instruction set, and AHEAD_BYTES of `bytes` are
                // left at the number's end.
                && let Some(value) = unsafe { written.value::<L>(bytes, at) }
            {
                set_number(row, field, value);
                return Some(end);
            }
        }
        Self::any_number(bytes, at, field, row)
    }

    #[inline(never)]
    fn any_number<R: Row>(
        bytes: &[u8],
        at: usize,
        field: Option<FieldId>,
        row: &mut R,
    ) -> Option<usize> {
        let (value, end) = number::number(bytes, at).ok()?;
        if let Some(field) = field {
            set_number(row, field, value);
        }
        Some(end)
    }

    /// Parses the string whose contents start at `at`, given masks of its first bytes: `stops` has
    /// a bit where the string may end, `wide` where a byte is not ASCII.
    ///
    /// # Safety
    /// The instruction set of `L` is available.
    #[inline(always)]
    unsafe fn string<L: Lanes, R: Row>(
        &mut self,
        bytes: &[u8],
        at: usize,
        (stops, wide): (u64, u64),
        field: Option<FieldId>,
        row: &mut R,
    ) -> Option<usize> {
        let stop = stops.trailing_zeros() as usize;
        if stops == 0 || bytes[at + stop] != b'"' || wide & ((1 << stop) - 1) != 0 {
            // SAFETY: the caller promises the instruction set, the only condition of `long_string`.
            return unsafe { self.long_string::<L, R>(bytes, at, field, row) };
        }
        if let Some(field) = field {
            // SAFETY: `wide` has no bit before the stop, so these bytes are ASCII, which is UTF-8.
            let text = unsafe { std::str::from_utf8_unchecked(&bytes[at..at + stop]) };
            match bytes[at..].first_chunk() {
                Some(ahead) => row.text_ahead(field, text, ahead),
                None => row.text(field, text),
            }
        }
        Some(at + stop + 1)
    }

    /// Parses a string of any length, with any characters.
    ///
    /// # Safety
    /// The instruction set of `L` is available.
    #[inline(always)]
    unsafe fn long_string<L: Lanes, R: Row>(
        &mut self,
        bytes: &[u8],
        at: usize,
        field: Option<FieldId>,
        row: &mut R,
    ) -> Option<usize> {
        let mut end = at;
        let mut wide = 0;
        let stop = loop {
            if end + 2 * AHEAD_BYTES > bytes.len() {
                return None;
            }
            // SAFETY: the caller promises the instruction set, twice AHEAD_BYTES of `bytes` are
            // left at `end`, and the skip of 0 is below AHEAD_BYTES.
            let ahead = unsafe { L::text(L::look(bytes.as_ptr().add(end)), 0) };
            if ahead.stops != 0 {
                let stop = ahead.stops.trailing_zeros();
                wide |= ahead.wide & ((1 << stop) - 1);
                end += stop as usize;
                break bytes[end];
            }
            wide |= ahead.wide;
            end += L::TEXT_BYTES;
        };
        if stop != b'"' {
            return self.escaped(bytes, at, field, row);
        }
        let text = &bytes[at..end];
        if wide != 0 && std::str::from_utf8(text).is_err() {
            return None;
        }
        if let Some(field) = field {
            // SAFETY: either `wide` is 0, so that all bytes are ASCII, or `from_utf8` found the
            // bytes to be UTF-8.
            let text = unsafe { std::str::from_utf8_unchecked(text) };
            match bytes[at..].first_chunk() {
                Some(ahead) => row.text_ahead(field, text, ahead),
                None => row.text(field, text),
            }
        }
        Some(end + 1)
    }

    /// Parses a string that may have escapes.
    #[inline(never)]
    fn escaped<R: Row>(
        &mut self,
        bytes: &[u8],
        at: usize,
        field: Option<FieldId>,
        row: &mut R,
    ) -> Option<usize> {
        let (end, has_escapes) = string::end(bytes, at, &mut self.plain).ok()?;
        let text = if has_escapes { &self.plain } else { &bytes[at..end] };
        let text = std::str::from_utf8(text).ok()?;
        if let Some(field) = field {
            row.text(field, text);
        }
        Some(end + 1)
    }
}

const EMPTY: Short = Short { bytes: [0; AHEAD_BYTES], len: 0 };
