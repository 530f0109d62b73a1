//! The headers of a picture: its components, and those of each scan.

use std::rc::Rc;

use super::huffman::{Glance, Huffman};

/// Progressive pictures with more blocks than this are not decoded, since each block takes 8 bytes.
const BLOCKS_MAX: u64 = 8 << 20;

/// The coding of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Sequential,
    Progressive,
    /// Arithmetic, lossless, hierarchical, or too large: the validator only follows the markers.
    Foreign,
}

/// A SOF segment.
pub(super) struct Frame {
    pub(super) coding: Coding,
    pub(super) precision: u8,
    pub(super) components: Vec<Component>,
    mcus_across: u32,
    mcus_down: u32,
}

pub(super) struct Component {
    id: u8,
    /// The number of its blocks in an MCU.
    across: u32,
    down: u32,
    /// Its quantisation table.
    pub(super) quantiser: usize,
    /// The number of blocks that hold a part of the picture, as in a scan of this component alone.
    blocks_across: u32,
    blocks_down: u32,
}

impl Frame {
    /// Parses the contents of a SOF segment.
    pub(super) fn parse(marker: u8, bytes: &[u8]) -> Option<Self> {
        let [precision, h1, h0, w1, w0, count, ref rest @ ..] = *bytes else { return None };
        let height = u32::from(u16::from_be_bytes([h1, h0]));
        let width = u32::from(u16::from_be_bytes([w1, w0]));
        let is_lossless = matches!(marker, 0xC3 | 0xC7 | 0xCB | 0xCF);
        let is_sane = match marker {
            0xC0 => precision == 8,
            0xC1 | 0xC2 => matches!(precision, 8 | 12),
            _ => (2..=16).contains(&precision),
        };
        let counts = 1..=4;
        if !is_sane
            || width == 0
            || !counts.contains(&count)
            || rest.len() != 3 * usize::from(count)
        {
            return None;
        }
        let factors: Vec<_> = rest.chunks(3).map(|c| (c[0], c[1] >> 4, c[1] & 15, c[2])).collect();
        let is_factor = |factor: u8| (1..=4).contains(&factor);
        if factors.iter().any(|c| !is_factor(c.1) || !is_factor(c.2) || c.3 > 3) {
            return None;
        }
        let most = |factor: fn(&(u8, u8, u8, u8)) -> u8| {
            factors.iter().map(factor).max().map_or(1, u32::from)
        };
        let (across_max, down_max) = (most(|c| c.1), most(|c| c.2));
        let components = factors
            .iter()
            .map(|&(id, across, down, quantiser)| Component {
                id,
                across: across.into(),
                down: down.into(),
                quantiser: quantiser.into(),
                blocks_across: (width * u32::from(across)).div_ceil(across_max).div_ceil(8),
                blocks_down: (height * u32::from(down)).div_ceil(down_max).div_ceil(8),
            })
            .collect();
        let (mcus_across, mcus_down) =
            (width.div_ceil(8 * across_max), height.div_ceil(8 * down_max));
        let mut frame =
            Frame { coding: Coding::Foreign, precision, components, mcus_across, mcus_down };
        frame.coding = match marker {
            // A DNL segment with the height follows.
            _ if height == 0 || is_lossless => Coding::Foreign,
            0xC0 | 0xC1 => Coding::Sequential,
            0xC2 if frame.blocks() <= BLOCKS_MAX => Coding::Progressive,
            _ => Coding::Foreign,
        };
        Some(frame)
    }

    fn blocks(&self) -> u64 {
        let of = |c: &Component| {
            u64::from(c.across * self.mcus_across) * u64::from(c.down * self.mcus_down)
        };
        self.components.iter().map(of).sum()
    }
}

/// Huffman tables by class and number, from the last DHT segments.
#[derive(Clone, Default)]
pub(super) struct Tables {
    pub(super) dc: [Option<Rc<Huffman>>; 4],
    pub(super) ac: [Option<Rc<Huffman>>; 4],
}

/// A SOS segment with the tables at that point.
pub(super) struct Scan {
    pub(super) parts: Vec<Part>,
    /// For each block of an MCU, its index in `parts`.
    pub(super) slots: Vec<u8>,
    pub(super) mcus: u32,
    /// MCUs per row.
    pub(super) across: u32,
    /// The first and the last coefficient.
    pub(super) band: (u32, u32),
    /// Whether the scan refines coefficients by another bit, and which bit that is.
    pub(super) refines: bool,
    pub(super) low_bit: u32,
    /// Whether endless zeros are a valid scan in which nothing changes.
    pub(super) is_zero_nothing: bool,
}

/// A component in a scan.
pub(super) struct Part {
    /// Its index in the frame.
    pub(super) component: usize,
    pub(super) dc: Option<Rc<Huffman>>,
    pub(super) ac: Option<Rc<Huffman>>,
    /// The glances of `ac`, for sequential scans.
    pub(super) glances: Option<Rc<[Glance]>>,
}

impl Scan {
    /// Parses the contents of a SOS segment.
    pub(super) fn parse(frame: &Frame, tables: &Tables, bytes: &[u8]) -> Option<Self> {
        let (&count, rest) = bytes.split_first()?;
        let count = usize::from(count);
        if !(1..=4).contains(&count) || rest.len() != 2 * count + 3 {
            return None;
        }
        let (chosen, band) = rest.split_at(2 * count);
        let (first, last, high, low) =
            (u32::from(band[0]), u32::from(band[1]), band[2] >> 4, band[2] & 15);
        let is_progressive = frame.coding == Coding::Progressive;
        if is_progressive && !is_step(first, last, high, low, count) {
            return None;
        }
        let mut parts: Vec<Part> = Vec::new();
        for choice in chosen.chunks(2) {
            let component = frame.components.iter().position(|c| c.id == choice[0])?;
            if parts.iter().any(|part| part.component == component) {
                return None;
            }
            let table = |tables: &[Option<Rc<Huffman>>; 4], number: u8| {
                tables.get(usize::from(number)).cloned().flatten()
            };
            let (dc, ac) = (table(&tables.dc, choice[1] >> 4), table(&tables.ac, choice[1] & 15));
            let needs_dc = !is_progressive || (first == 0 && high == 0);
            let needs_ac = !is_progressive || first > 0;
            if (needs_dc && dc.is_none()) || (needs_ac && ac.is_none()) {
                return None;
            }
            let glances = match &ac {
                Some(ac) if !is_progressive => Some(ac.glances().into()),
                _ => None,
            };
            parts.push(Part { component, dc, ac, glances });
        }
        let band = if is_progressive { (first, last) } else { (0, 63) };
        let refines = is_progressive && high > 0;
        let mut scan = Scan {
            parts,
            slots: vec![0],
            mcus: 0,
            across: 0,
            band,
            refines,
            low_bit: if is_progressive { low.into() } else { 0 },
            is_zero_nothing: false,
        };
        scan.lay_out(frame)?;
        scan.is_zero_nothing = scan.parts.iter().all(|part| {
            let is_nothing =
                |table: &Option<Rc<Huffman>>| table.as_ref().is_some_and(|t| t.is_zero_nothing());
            (band.0 > 0 || refines || is_nothing(&part.dc)) && (band.1 == 0 || is_nothing(&part.ac))
        });
        Some(scan)
    }

    /// Computes the order and the number of the scan's blocks.
    fn lay_out(&mut self, frame: &Frame) -> Option<()> {
        if let [part] = &self.parts[..] {
            let component = &frame.components[part.component];
            self.across = component.blocks_across;
            self.mcus = component.blocks_across.checked_mul(component.blocks_down)?;
            return Some(());
        }
        self.across = frame.mcus_across;
        self.mcus = frame.mcus_across.checked_mul(frame.mcus_down)?;
        self.slots.clear();
        for (index, part) in self.parts.iter().enumerate() {
            let component = &frame.components[part.component];
            let blocks = (component.across * component.down) as usize;
            self.slots.extend(std::iter::repeat_n(index as u8, blocks));
        }
        // The standard allows fewer blocks per MCU, but some pictures have more.
        (self.slots.len() <= 64).then_some(())
    }
}

/// Whether a scan of a progressive picture may have these parameters.
fn is_step(first: u32, last: u32, high: u8, low: u8, components: usize) -> bool {
    let is_band =
        if first == 0 { last == 0 } else { last >= first && last <= 63 && components == 1 };
    is_band && low <= 13 && (high == 0 || high == low + 1)
}
