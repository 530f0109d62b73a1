//! JPEG: baseline pictures of one or three components, with and without restart markers.

use arbitrary::{Result, Unstructured};

use super::draft::Draft;

/// The entropy-coded data of a scan: the first bit is the highest, and a zero follows each FF.
#[derive(Default)]
struct Entropy {
    bytes: Vec<u8>,
    byte: u8,
    count: u32,
}

impl Entropy {
    fn bit(&mut self, bit: bool) {
        self.byte = self.byte << 1 | u8::from(bit);
        self.count += 1;
        if self.count == 8 {
            self.bytes.push(self.byte);
            if self.byte == 0xFF {
                self.bytes.push(0);
            }
            (self.byte, self.count) = (0, 0);
        }
    }

    /// Fills the last byte with ones.
    fn end(&mut self) {
        while self.count > 0 {
            self.bit(true);
        }
    }
}

pub(super) fn build(u: &mut Unstructured<'_>, draft: &mut Draft) -> Result<()> {
    let (width, height) = (u.int_in_range(1..=40usize)?, u.int_in_range(1..=40usize)?);
    let components = *u.choose(&[1usize, 3])?;
    let factor = if components == 3 { *u.choose(&[1usize, 2])? } else { 1 };
    let restart = if u.arbitrary()? { u.int_in_range(1..=5usize)? } else { 0 };
    draft.put(b"\xFF\xD8");
    segment(draft, 0xE0, |part| part.put(b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"))?;
    if u.ratio(1, 3)? {
        let count = u.int_in_range(0..=50)?;
        segment(draft, 0xFE, |part| part.put(vec![b'c'; count]))?;
    }
    segment(draft, 0xDB, |part| {
        part.u8(0);
        part.put([1; 64]);
    })?;
    segment(draft, 0xC0, |part| {
        part.u8(8);
        part.be16(height);
        part.be16(width);
        part.u8(components as u8);
        for component in 0..components {
            let factor = if component == 0 { factor as u8 } else { 1 };
            part.u8(component as u8 + 1);
            part.u8(factor << 4 | factor);
            part.u8(0);
        }
    })?;
    // Two codes per table: 0 and 10. DC: no difference, one of one bit. AC: the end, one of one
    // bit.
    for (class, symbols) in [(0u8, [0u8, 1]), (0x10, [0, 1])] {
        segment(draft, 0xC4, |part| {
            part.u8(class);
            part.u8(1);
            part.u8(1);
            part.put([0; 14]);
            symbols.into_iter().for_each(|symbol| part.u8(symbol));
        })?;
    }
    if restart > 0 {
        segment(draft, 0xDD, |part| part.be16(restart))?;
    }
    segment(draft, 0xDA, |part| {
        part.u8(components as u8);
        for component in 0..components {
            part.u8(component as u8 + 1);
            part.u8(0);
        }
        [0, 63, 0].into_iter().for_each(|byte| part.u8(byte));
    })?;
    let blocks = if components == 3 { factor * factor + 2 } else { 1 };
    let mcus = width.div_ceil(8 * factor) * height.div_ceil(8 * factor);
    scan(u, draft, mcus, blocks, restart)?;
    draft.put(b"\xFF\xD9");
    Ok(())
}

fn segment(draft: &mut Draft, marker: u8, write: impl FnOnce(&mut Draft)) -> Result<()> {
    let body = draft.part(|part| {
        write(part);
        Ok(())
    })?;
    draft.put([0xFF, marker]);
    draft.be16(body.len() + 2);
    draft.put(body);
    Ok(())
}

fn scan(
    u: &mut Unstructured<'_>,
    draft: &mut Draft,
    mcus: usize,
    blocks: usize,
    restart: usize,
) -> Result<()> {
    let mut entropy = Entropy::default();
    for mcu in 0..mcus {
        if restart > 0 && mcu > 0 && mcu % restart == 0 {
            entropy.end();
            draft.put(std::mem::take(&mut entropy.bytes));
            draft.put([0xFF, 0xD0 + ((mcu / restart - 1) % 8) as u8]);
        }
        for _ in 0..blocks {
            let choices: u8 = u.arbitrary()?;
            // A difference of the first coefficient, then some others, then the end.
            coefficient(&mut entropy, choices & 1 != 0, choices & 2 != 0);
            for at in 0..choices >> 2 & 7 {
                coefficient(&mut entropy, true, choices >> (at % 8) & 1 != 0);
            }
            entropy.bit(false);
        }
    }
    entropy.end();
    draft.put(entropy.bytes);
    Ok(())
}

/// Writes the code of no coefficient (0), or of one (10) and its sign.
fn coefficient(entropy: &mut Entropy, is_there: bool, sign: bool) {
    entropy.bit(is_there);
    if is_there {
        entropy.bit(false);
        entropy.bit(sign);
    }
}
