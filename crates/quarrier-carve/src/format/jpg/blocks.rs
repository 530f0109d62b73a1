//! Decodes blocks of a scan as far as necessary to find their ends.

use std::rc::Rc;

use super::bits::Bits;
use super::frame::{Part, Scan};
use super::huffman::GLANCE_BITS;

/// Number of masks in a group that copies share.
const MASKS: usize = 512;

/// Why a block is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    Code,
    Index,
    Drift,
}

impl Wrong {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Wrong::Code => "an invalid Huffman code",
            Wrong::Index => "a block of more than 64 coefficients",
            Wrong::Drift => "an impossible brightness",
        }
    }
}

/// The state that decoding carries from block to block.
#[derive(Clone, Default)]
pub(super) struct State {
    /// The last DC value of each component of the scan.
    pub(super) dc: [i32; 4],
    /// The number of further blocks of an end-of-band run (EOBRUN).
    pub(super) end_run: u32,
    /// For progressive pictures: the masks of each component.
    pub(super) masks: [Masks; 4],
}

/// Which coefficients of each block are not zero. Copies share the masks that neither copy changes.
#[derive(Clone, Default)]
pub(super) struct Masks(Vec<Option<Rc<[u64; MASKS]>>>);

impl Masks {
    fn get(&self, block: u32) -> u64 {
        let shared = self.0.get(block as usize / MASKS).and_then(Option::as_ref);
        shared.map_or(0, |masks| masks[block as usize % MASKS])
    }

    fn add(&mut self, block: u32, mask: u64) {
        if mask == 0 {
            return;
        }
        let index = block as usize / MASKS;
        if self.0.len() <= index {
            self.0.resize(index + 1, None);
        }
        let shared = self.0[index].get_or_insert_with(|| Rc::new([0; MASKS]));
        Rc::make_mut(shared)[block as usize % MASKS] |= mask;
    }
}

/// Decodes a block of a sequential scan.
#[inline(always)]
pub(super) fn sequential(
    bits: &mut Bits<'_>,
    part: &Part,
    dc: &mut i32,
    range: u32,
) -> Result<(), Wrong> {
    first_dc(bits, part, dc, 0, range)?;
    let (Some(ac), Some(glances)) = (&part.ac, &part.glances) else { return Err(Wrong::Code) };
    let glances = <&[_; 1 << GLANCE_BITS]>::try_from(&glances[..]).map_err(|_| Wrong::Code)?;
    let mut k = 1;
    loop {
        bits.refill();
        let glance = glances[bits.peek(GLANCE_BITS) as usize];
        let (count, next, ends) = (glance.bits(), k + glance.step(), glance.ends());
        if count != 0 && next + ends <= 64 {
            bits.skip(count);
            k = next;
            if ends != 0 || k == 64 {
                return Ok(());
            }
            continue;
        }
        // These bits contain a long code, or the end of the block.
        let (length, symbol) = ac.symbol(bits.peek16()).ok_or(Wrong::Code)?;
        bits.skip(length + (symbol & 15));
        k += match (symbol >> 4, symbol & 15) {
            (15, 0) => 16,
            (_, 0) => return Ok(()),
            (run, _) => run + 1,
        };
        if k >= 64 {
            return if k == 64 { Ok(()) } else { Err(Wrong::Index) };
        }
    }
}

/// Decodes a block of a progressive scan; `block` is its index in the component.
#[inline(always)]
pub(super) fn progressive(
    bits: &mut Bits<'_>,
    scan: &Scan,
    slot: usize,
    block: u32,
    state: &mut State,
    range: u32,
) -> Result<(), Wrong> {
    let part = &scan.parts[slot];
    match (scan.band.0, scan.refines) {
        (0, false) => first_dc(bits, part, &mut state.dc[slot], scan.low_bit, range),
        (0, true) => {
            bits.refill();
            bits.skip(1);
            Ok(())
        }
        (_, false) => first_ac(bits, part, scan.band, block, state),
        (_, true) => refine_ac(bits, part, scan.band, block, state),
    }
}

#[inline(always)]
fn first_dc(
    bits: &mut Bits<'_>,
    part: &Part,
    dc: &mut i32,
    low_bit: u32,
    range: u32,
) -> Result<(), Wrong> {
    let Some(codes) = &part.dc else { return Err(Wrong::Code) };
    bits.refill();
    let (length, size) = codes.symbol(bits.peek16()).ok_or(Wrong::Code)?;
    bits.skip(length);
    if size > 0 {
        let value = bits.peek(size) as i32;
        bits.skip(size);
        let is_negative = value >> (size - 1) == 0;
        *dc += if is_negative { value - (1 << size) + 1 } else { value };
        if (*dc << low_bit).unsigned_abs() > range {
            return Err(Wrong::Drift);
        }
    }
    Ok(())
}

fn first_ac(
    bits: &mut Bits<'_>,
    part: &Part,
    (first, last): (u32, u32),
    block: u32,
    state: &mut State,
) -> Result<(), Wrong> {
    if state.end_run > 0 {
        state.end_run -= 1;
        return Ok(());
    }
    let Some(ac) = &part.ac else { return Err(Wrong::Code) };
    let (mut k, mut mask) = (first, 0u64);
    while k <= last {
        bits.refill();
        let (length, symbol) = ac.symbol(bits.peek16()).ok_or(Wrong::Code)?;
        bits.skip(length);
        match (symbol >> 4, symbol & 15) {
            (15, 0) => k += 16,
            (run, 0) => {
                state.end_run = (1 << run) - 1 + bits.read(run);
                break;
            }
            (run, size) => {
                k += run;
                if k > last {
                    return Err(Wrong::Index);
                }
                mask |= 1 << k;
                bits.skip(size);
                k += 1;
            }
        }
    }
    if k > last + 1 {
        return Err(Wrong::Index);
    }
    if !bits.is_overrun() {
        state.masks[part.component].add(block, mask);
    }
    Ok(())
}

fn refine_ac(
    bits: &mut Bits<'_>,
    part: &Part,
    (first, last): (u32, u32),
    block: u32,
    state: &mut State,
) -> Result<(), Wrong> {
    let Some(ac) = &part.ac else { return Err(Wrong::Code) };
    let old = state.masks[part.component].get(block);
    let band = (u64::MAX >> (63 - last)) & (u64::MAX << first);
    let mut k = first;
    let mut new = 0u64;
    if state.end_run == 0 {
        while k <= last {
            bits.refill();
            let (length, symbol) = ac.symbol(bits.peek16()).ok_or(Wrong::Code)?;
            bits.skip(length);
            let (mut run, size) = (symbol >> 4, symbol & 15);
            if size > 1 {
                return Err(Wrong::Code);
            }
            if size == 0 && run < 15 {
                state.end_run = (1 << run) + bits.read(run);
                break;
            }
            bits.skip(size);
            // Skip zeros; each nonzero coefficient has a correction bit.
            let mut corrections = 0;
            while k <= last {
                if old >> k & 1 == 1 {
                    corrections += 1;
                } else if run == 0 {
                    break;
                } else {
                    run -= 1;
                }
                k += 1;
            }
            skip_many(bits, corrections);
            if size == 1 {
                if k > last {
                    return Err(Wrong::Index);
                }
                new |= 1 << k;
            }
            k += 1;
            if bits.is_overrun() {
                return Ok(());
            }
        }
    }
    if state.end_run > 0 {
        state.end_run -= 1;
        if k <= last {
            skip_many(bits, (old & band & (u64::MAX << k)).count_ones());
        }
    }
    if !bits.is_overrun() {
        state.masks[part.component].add(block, new);
    }
    Ok(())
}

/// Skips up to 64 bits.
fn skip_many(bits: &mut Bits<'_>, mut count: u32) {
    while count > 0 {
        bits.refill();
        let some = count.min(16);
        bits.skip(some);
        count -= some;
    }
}
