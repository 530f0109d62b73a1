//! Template parsing: predicts each message from earlier ones. One pass verifies the message and
//! finds the ends of its fields; then the parser takes the fields in the predicted order. The
//! prediction ends at the first unexpected field, or one that needs more than a check of its type,
//! and the general parser reads the rest.
//!
//! A load spends half of its time here, a fifth on the lookup of strings that are not short, and a
//! tenth on reading and packing. Throughput per core, in the order tried (messages of 176 bytes and
//! 17 fields): 0.46 to 0.49 GB/s at first; 0.50 to 0.53 with the opening fields compared at once
//! and segments packed by AVX-512; 0.54 to 0.56 with the positions of separators compressed by
//! VBMI2 and digits checked while they are added up. Not tried: strings of up to 16 bytes in a
//! larger table of words (see `build/short.rs`). Mapping the file instead of reading it is ruled
//! out: other processes may write to it, so its strings would have to be checked again, and reads
//! take only 4 %.

use quarrier_core::isa::Isa;

use super::bytes::{digits, load};
use super::dictionary::FixType;
use super::lanes;
use super::opening::Opening;
use super::parser::{FixParser, Reached, STEPS_AHEAD, Step};
use super::slots::{SlotId, Slots};
use super::value;
use super::verify::Verified;
#[cfg(target_arch = "aarch64")]
use crate::arch::Neon;
#[cfg(target_arch = "x86_64")]
use crate::arch::{Avx2, Avx512};
use crate::arch::{Marks, Portable};
use crate::build::{FieldId, Row};
use crate::frame::{Chunk, Taker, pass_line_ends};

/// After this many messages whose opening was mispredicted, a new round begins: its first few
/// messages teach a new opening, the longest one that the first of them allows, shortened to the
/// part that the next ones share.
const OPENINGS_ROUND: u32 = 1_024;
const OPENINGS_TRIED: u32 = 16;

impl FixParser {
    /// See [`RecordFormat::messages`](crate::frame::RecordFormat::messages).
    pub(super) fn predict<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) {
        match self.isa {
            // SAFETY: `self.isa` comes from `or_best`, so all features of `Isa::Avx512` were
            // detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { self.predict_avx512(chunk, taker) },
            // SAFETY: `self.isa` comes from `or_best`, so all features of `Isa::Avx2` were
            // detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { self.predict_avx2(chunk, taker) },
            // SAFETY: `self.isa` comes from `or_best`, so all features of `Isa::Neon` were
            // detected.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { self.predict_neon(chunk, taker) },
            // SAFETY: `Portable` needs no features.
            _ => unsafe { self.predict_on::<Portable, T>(chunk, taker) },
        }
    }

    /// # Safety
    /// [`Isa::Avx512`] is available.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt")]
    unsafe fn predict_avx512<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) {
        const { assert!(Isa::Avx512.has("avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt")) };
        // SAFETY: the caller promises the features of `Isa::Avx512`, which include those that
        // `Avx512` needs.
        unsafe { self.predict_on::<Avx512, T>(chunk, taker) }
    }

    /// # Safety
    /// [`Isa::Avx2`] is available.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    unsafe fn predict_avx2<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) {
        const { assert!(Isa::Avx2.has("avx2,bmi1,bmi2,popcnt")) };
        // SAFETY: the caller promises the features of `Isa::Avx2`, which include those that `Avx2`
        // needs.
        unsafe { self.predict_on::<Avx2, T>(chunk, taker) }
    }

    /// # Safety
    /// [`Isa::Neon`] is available.
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    unsafe fn predict_neon<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) {
        const { assert!(Isa::Neon.has("neon")) };
        // SAFETY: the caller promises the features of `Isa::Neon`, which include those that `Neon`
        // needs.
        unsafe { self.predict_on::<Neon, T>(chunk, taker) }
    }

    /// # Safety
    /// The instruction set of `L` is available.
    #[inline(always)]
    unsafe fn predict_on<L: Marks, T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) {
        loop {
            pass_line_ends(chunk);
            if chunk.at >= chunk.until.min(chunk.bytes.len()) {
                return;
            }
            let bytes = &chunk.bytes[chunk.at..];
            // SAFETY: the caller promises the instruction set, the only condition of `message_on`.
            let message = unsafe { self.message_on::<L, T::Row>(bytes, taker.row()) };
            let Some((end, line_feeds)) = message else { return };
            taker.commit(&bytes[..end], chunk.at, chunk.lines);
            chunk.lines += u64::from(line_feeds);
            chunk.at += end;
        }
    }

    /// Parses the message at the start of `bytes`; returns its end, and its number of line feeds.
    ///
    /// # Safety
    /// The instruction set of `L` is available.
    #[inline(always)]
    unsafe fn message_on<L: Marks, R: Row>(
        &mut self,
        bytes: &[u8],
        row: &mut R,
    ) -> Option<(usize, u32)> {
        // SAFETY: the caller promises the instruction set, the only condition of `verify`.
        let seen = unsafe { self.checksums.as_ref()?.verify::<L>(bytes, &mut self.ends)? };
        if seen.end > self.message_bytes_max {
            return None;
        }
        let message = &bytes[..seen.end];
        let text = match seen.is_ascii {
            // SAFETY: `verify` found every byte of the message to be ASCII, which is UTF-8.
            true => unsafe { std::str::from_utf8_unchecked(message) },
            false => std::str::from_utf8(message).ok()?,
        };
        self.number += 1;
        self.open.clear();
        let last = self.types.get(self.last_type).and_then(|last| last.opening.as_ref());
        // SAFETY: the caller promises the instruction set. `verify` checked that AHEAD_BYTES follow
        // the message, so as many are readable at its start and at its body.
        let opening = last.filter(|last| unsafe { last.is_at::<L>(bytes.as_ptr(), seen.body) });
        if let Some(opening) = opening {
            let kind = self.last_type;
            let before = std::mem::replace(&mut self.opened, (self.number, kind));
            let mut from = (0, 0);
            if before == (self.number - 1, kind) {
                opening.again(&seen, row);
                from = (opening.fields, opening.end(seen.body));
            }
            // SAFETY: the caller promises the instruction set. `text` is the message at the start
            // of `bytes`, after which `verify` found AHEAD_BYTES, and `ends` are those of this
            // message.
            let reached = unsafe { self.fields_on::<L, R>(bytes, text, kind, from, row) };
            if reached.at < seen.end {
                self.fields(text, kind, reached, row).ok()?;
            }
        } else {
            let kind = self.message_type(message, seen.body);
            // SAFETY: the caller promises the instruction set. `text` is the message at the start
            // of `bytes`, after which `verify` found AHEAD_BYTES, and `ends` are those of this
            // message.
            let reached = unsafe { self.fields_on::<L, R>(bytes, text, kind, (0, 0), row) };
            if reached.at < seen.end {
                self.fields(text, kind, reached, row).ok()?;
            } else {
                // SAFETY: the caller promises the instruction set, and `verify` returned `seen` for
                // these bytes.
                unsafe { self.opens_otherwise::<L>(bytes, text, &seen, kind) };
            }
        }
        Some((seen.end, seen.line_feeds))
    }

    /// Learns from a message that was predicted to its end but has another opening than the last
    /// one.
    ///
    /// # Safety
    /// The instruction set of `L` is available, and `verify` returned `seen` for `bytes`.
    #[inline(never)]
    unsafe fn opens_otherwise<L: Marks>(
        &mut self,
        bytes: &[u8],
        text: &str,
        seen: &Verified,
        kind: usize,
    ) {
        let of = &mut self.types[kind];
        // SAFETY: the caller promises the instruction set. `verify` checked that AHEAD_BYTES follow
        // the message, so as many are readable at its start and at its body.
        let is_at = |known: &Opening| unsafe { known.is_at::<L>(bytes.as_ptr(), seen.body) };
        if !of.opening.as_ref().is_some_and(is_at) {
            let round = of.unopened % OPENINGS_ROUND;
            of.unopened = of.unopened.wrapping_add(1);
            if round >= OPENINGS_TRIED {
                return;
            }
            let ends = self.ends.places();
            let first = |fields_max| Opening::of(&of.steps, text, ends, seen.body, fields_max);
            let whole = first(usize::MAX);
            of.opening = match (&whole, &of.opening) {
                (Some(new), Some(old)) if round > 0 => first(new.in_common(old, ends, seen.body)),
                _ => whole,
            };
            if of.opening.is_none() {
                return;
            }
        }
        self.opened = (self.number, kind);
    }

    /// Takes fields as predicted, starting at the given field and offset; returns the position of
    /// the first one that differs.
    ///
    /// # Safety
    /// The instruction set of `L` is available, `text` starts `bytes`, AHEAD_BYTES follow it
    /// there, and `self.ends` are the ends of its fields.
    #[inline(always)]
    unsafe fn fields_on<L: Marks, R: Row>(
        &mut self,
        bytes: &[u8],
        text: &str,
        kind: usize,
        from: (usize, usize),
        row: &mut R,
    ) -> Reached {
        let steps = &self.types[kind].steps[..];
        let (mut step, mut at) = from;
        // The offset after the last length field, and its value.
        let mut length = (0, None);
        for &end in self.ends.places().get(step..).unwrap_or_default() {
            let end = usize::from(end);
            let Some(next) = follow(steps, bytes, at, &mut step) else { break };
            let start = at + next.key.len();
            // SAFETY: `follow` found the key at `at`. A key contains no separator, so the field's
            // end comes after it: `start <= end`, which is below `text.len()`. Before `start` there
            // is the key's `=` and at `end` a separator, both ASCII, so both offsets are character
            // boundaries.
            let value = unsafe { text.get_unchecked(start..end) };
            if next.act <= Act::Length {
                if next.act == Act::Stop {
                    break;
                }
                length = (end + 1, digits(value.as_bytes()));
            }
            if let Some(field) = next.field {
                // SAFETY: the caller promises the instruction set, and that `text` starts `bytes` with
                // AHEAD_BYTES after it there. `text` contains the value and the separator at `end`, so
                // that 64 bytes of `bytes` are readable after the value. The pointer is that of `bytes`,
                // for a reference to the value permits reads of the value only.
                unsafe {
                    let first = bytes.as_ptr().add(start);
                    set_on::<L, R>(next, field, (value, first), &mut self.slots, row);
                }
            }
            at = end + 1;
            step += 1;
        }
        if at == text.len() {
            return Reached { at, step, length: None };
        }
        self.remember(bytes, kind, at);
        Reached { at, step, length: length.1.filter(|_| length.0 == at) }
    }

    /// Records, for the general parser, which fields before `until` the message has.
    #[inline(never)]
    fn remember(&mut self, bytes: &[u8], kind: usize, until: usize) {
        let (mut at, mut step) = (0, 0);
        for &end in self.ends.places() {
            if at >= until {
                return;
            }
            if let Some(next) = follow(&self.types[kind].steps, bytes, at, &mut step) {
                self.slots.remember(next.known.slot, self.number);
            }
            at = usize::from(end) + 1;
            step += 1;
        }
    }
}

/// Returns the step for the field at `at`, if that is `step` or one soon after; `step` moves there.
#[inline(always)]
pub(super) fn follow<'s>(
    steps: &'s [Step],
    bytes: &[u8],
    at: usize,
    step: &mut usize,
) -> Option<&'s Step> {
    let head = load(bytes, at);
    let next = steps.get(*step)?;
    if head & next.mask == next.head {
        return Some(next);
    }
    // Usually a single field is missing.
    if let Some(later) = steps.get(*step + 1)
        && head & later.mask == later.head
    {
        *step += 1;
        return Some(later);
    }
    follow_far(steps, bytes, at, step)
}

/// Does the same for later steps, if the message lacks several fields, and for long keys.
#[inline(never)]
fn follow_far<'s>(
    steps: &'s [Step],
    bytes: &[u8],
    at: usize,
    step: &mut usize,
) -> Option<&'s Step> {
    let ahead = steps.get(*step..)?.iter().take(STEPS_AHEAD);
    let skipped = ahead.clone().position(|next| bytes[at..].starts_with(&next.key))?;
    *step += skipped;
    steps.get(*step)
}

/// The action for the value of a predicted field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) enum Act {
    /// Stop predicting: the value depends on other fields.
    Stop,
    /// The length of the next field.
    Length,
    Text,
    Int,
    Number,
    /// An integer, if it is written as one.
    Found,
    Other,
}

impl Act {
    pub(super) fn of(kind: FixType) -> Self {
        match kind {
            FixType::Data => Act::Stop,
            FixType::Text => Act::Text,
            FixType::Int => Act::Int,
            FixType::Length => Act::Length,
            FixType::Number => Act::Number,
            FixType::Timestamp | FixType::Found => Act::Found,
            FixType::Boolean | FixType::Date => Act::Other,
        }
    }
}

/// Sets a field as [`value::set`] does. `p` points to the value, within the message's bytes.
///
/// # Safety
/// The instruction set of `L` is available. `p` may read the value and 64 bytes after it, the first of
/// which is a separator.
#[inline(always)]
unsafe fn set_on<L: Marks, R: Row>(
    step: &Step,
    field: FieldId,
    (value, p): (&str, *const u8),
    slots: &mut Slots,
    row: &mut R,
) {
    let len = value.len();
    match step.act {
        Act::Text if len > 0 => {
            // SAFETY: the caller promises 64 readable bytes after the start of the value. Bytes
            // need no alignment.
            let ahead = unsafe { &*p.cast::<[u8; 32]>() };
            return row.text_ahead(field, value, ahead);
        }
        Act::Int | Act::Length => {
            // SAFETY: the caller promises the instruction set, and 64 bytes after the value, the
            // first of them not a digit.
            if let Some(value) = unsafe { lanes::whole::<L>(p, len) } {
                return row.integer(field, value);
            }
        }
        Act::Number => {
            // SAFETY: the caller promises the instruction set, and 64 bytes after the value, the
            // first of them not a digit.
            let number = unsafe { lanes::number::<L>(p, len) };
            let slot = slots.get_mut(step.known.slot);
            if let (Some(cell), Some(slot)) = (number, slot) {
                return value::set_number(slot, field, cell, row);
            }
        }
        // SAFETY: the value's first byte is readable; if the value is empty, that is the separator
        // after it.
        Act::Found if unsafe { *p } != b'0' => {
            // SAFETY: the caller promises the instruction set, and 64 bytes after the value, the
            // first of them not a digit.
            if let Some(value) = unsafe { lanes::whole::<L>(p, len) } {
                return row.integer(field, value);
            }
        }
        _ => {}
    }
    set_with_care(step.known.slot, value, slots, row);
}

#[inline(never)]
fn set_with_care(slot: SlotId, value: &str, slots: &mut Slots, row: &mut impl Row) {
    if let Some(slot) = slots.get_mut(slot) {
        value::set(slot, value, row);
    }
}

#[cfg(test)]
mod tests;
