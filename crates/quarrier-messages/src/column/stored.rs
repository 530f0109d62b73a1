//! Stores segments and strings as bytes of a file, and reads them back bit for bit.
//!
//! Numbers are little-endian, and each list follows its length. The input may be hostile: the
//! reader refuses segments that a scan could not process, and allocates memory only for bytes that
//! exist.

use std::io::{self, Read, Write};

use bytemuck::{Pod, bytes_of, bytes_of_mut, cast_slice, cast_slice_mut};

use super::packed::{Lanes, Packed};
use super::raw::BLOCK_ROWS;
use super::segment::{Data, POWERS, SegmentColumn};
use super::strings::{Dictionary, Strings};
use super::zone::Zone;
use crate::{DIGITS_MAX, Kind};

/// Writes to a sink.
pub(crate) struct Output<'w> {
    sink: &'w mut dyn Write,
}

/// Reads from a source.
pub(crate) struct Input<'r> {
    source: &'r mut dyn Read,
    /// Maximum number of bytes left.
    left: u64,
}

/// The element of a list.
pub(crate) trait Number: Pod {
    /// Converts a number from the file's order of bytes to the machine's, or back.
    fn swapped(self) -> Self;
}

macro_rules! number {
    ($($kind:ty),*) => {$(
        impl Number for $kind {
            #[inline(always)]
            fn swapped(self) -> Self {
                <$kind>::from_le_bytes(self.to_ne_bytes())
            }
        }
    )*};
}

number!(u8, u16, u32, u64, i64, i128, f64);

/// Makes the error for bytes that [`Output`] cannot have written.
pub(crate) fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn check(is_right: bool, what: &str) -> io::Result<()> {
    if is_right { Ok(()) } else { Err(wrong(what)) }
}

impl<'w> Output<'w> {
    pub(crate) fn new(sink: &'w mut dyn Write) -> Self {
        Output { sink }
    }

    pub(crate) fn number<T: Number>(&mut self, number: T) -> io::Result<()> {
        self.sink.write_all(bytes_of(&number.swapped()))
    }

    /// Writes a list without its length.
    fn numbers<T: Number>(&mut self, numbers: &[T]) -> io::Result<()> {
        if cfg!(target_endian = "little") {
            return self.sink.write_all(cast_slice(numbers));
        }
        numbers.iter().try_for_each(|number| self.number(*number))
    }

    pub(crate) fn list<T: Number>(&mut self, numbers: &[T]) -> io::Result<()> {
        self.number(numbers.len() as u64)?;
        self.numbers(numbers)
    }

    pub(crate) fn kind(&mut self, kind: Kind) -> io::Result<()> {
        let (code, scale) = match kind {
            Kind::Null => (0, 0),
            Kind::Boolean => (1, 0),
            Kind::Integer => (2, 0),
            Kind::Decimal { scale } => (3, scale),
            Kind::Float => (4, 0),
            Kind::Date => (5, 0),
            Kind::Timestamp => (6, 0),
            Kind::Text => (7, 0),
        };
        self.numbers(&[code, scale])
    }

    pub(crate) fn strings(&mut self, strings: &Strings) -> io::Result<()> {
        self.list(strings.ends())?;
        self.list(strings.bytes())
    }

    pub(crate) fn segment(&mut self, segment: &SegmentColumn) -> io::Result<()> {
        self.list(&segment.valid)?;
        for zone in std::iter::once(&segment.zone).chain(&segment.blocks) {
            self.numbers(&[zone.min, zone.max])?;
            self.number(zone.nulls)?;
        }
        match &segment.data {
            Data::Null => self.number(0u8),
            Data::Whole(packed) => self.number(1u8).and_then(|()| self.packed(packed)),
            Data::Codes(packed) => self.number(2u8).and_then(|()| self.packed(packed)),
            Data::Scaled { exponent, packed } => {
                self.numbers(&[3u8, *exponent])?;
                self.packed(packed)
            }
            Data::Shifted { shift, packed } => {
                self.number(4u8)?;
                self.number(*shift)?;
                self.packed(packed)
            }
            Data::Exact(numbers) => self.number(5u8).and_then(|()| self.list(numbers)),
            Data::Float(numbers) => self.number(6u8).and_then(|()| self.list(numbers)),
            Data::Text(strings) => self.number(7u8).and_then(|()| self.strings(strings)),
        }
    }

    fn packed(&mut self, packed: &Packed) -> io::Result<()> {
        self.number(packed.base)?;
        match &packed.lanes {
            Lanes::Constant => self.number(0u8),
            Lanes::Bits(words) => self.number(1u8).and_then(|()| self.list(words)),
            Lanes::U8(lanes) => self.number(2u8).and_then(|()| self.list(lanes)),
            Lanes::U16(lanes) => self.number(3u8).and_then(|()| self.list(lanes)),
            Lanes::U32(lanes) => self.number(4u8).and_then(|()| self.list(lanes)),
            Lanes::U64(lanes) => self.number(5u8).and_then(|()| self.list(lanes)),
            Lanes::Runs { ends, values } => {
                self.number(6u8)?;
                self.list(ends)?;
                self.list(values)
            }
        }
    }
}

impl<'r> Input<'r> {
    /// Makes a reader of a source of at most `bytes` bytes.
    pub(crate) fn new(source: &'r mut dyn Read, bytes: u64) -> Self {
        Input { source, left: bytes }
    }

    /// Returns the number of bytes that were not read yet.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn number<T: Number>(&mut self) -> io::Result<T> {
        let mut number = T::zeroed();
        let bytes = bytes_of_mut(&mut number);
        check(self.left >= bytes.len() as u64, "it is cut off")?;
        self.source.read_exact(bytes)?;
        self.left -= bytes.len() as u64;
        Ok(number.swapped())
    }

    pub(crate) fn list<T: Number>(&mut self) -> io::Result<Vec<T>> {
        let count = self.number::<u64>()?;
        let bytes = count.checked_mul(size_of::<T>() as u64);
        let bytes = bytes.filter(|bytes| *bytes <= self.left);
        let (Some(bytes), Ok(count)) = (bytes, usize::try_from(count)) else {
            return Err(wrong("a list is longer than the file"));
        };
        self.left -= bytes;
        let mut numbers = vec![T::zeroed(); count];
        self.source.read_exact(cast_slice_mut(&mut numbers))?;
        numbers.iter_mut().for_each(|number| *number = number.swapped());
        Ok(numbers)
    }

    pub(crate) fn kind(&mut self) -> io::Result<Kind> {
        let (code, scale) = (self.number::<u8>()?, self.number::<u8>()?);
        check(scale <= DIGITS_MAX, "a scale of more than 38 digits")?;
        Ok(match code {
            0 => Kind::Null,
            1 => Kind::Boolean,
            2 => Kind::Integer,
            3 => Kind::Decimal { scale },
            4 => Kind::Float,
            5 => Kind::Date,
            6 => Kind::Timestamp,
            7 => Kind::Text,
            _ => return Err(wrong("an unknown type")),
        })
    }

    pub(crate) fn strings(&mut self) -> io::Result<Strings> {
        let (ends, bytes) = (self.list()?, self.list()?);
        Strings::checked(ends, bytes).ok_or_else(|| wrong("invalid strings"))
    }

    pub(crate) fn dictionary(&mut self) -> io::Result<Dictionary> {
        let strings = self.strings()?;
        Dictionary::checked(strings).ok_or_else(|| wrong("an unsorted dictionary"))
    }

    /// Reads a segment of `rows` rows, within the limit, with codes below `codes`.
    pub(crate) fn segment(
        &mut self,
        kind: Kind,
        rows: u32,
        codes: usize,
    ) -> io::Result<SegmentColumn> {
        let row_count = rows as usize;
        let valid: Vec<u64> = self.list()?;
        if let Some(last) = valid.last() {
            let extra = if rows.is_multiple_of(64) { 0 } else { last >> (rows % 64) };
            let is_right = valid.len() == row_count.div_ceil(64) && extra == 0;
            check(is_right, "a validity bitmap that does not fit the rows")?;
        }
        let zone = self.zone(rows)?;
        let blocks = (0..row_count.div_ceil(BLOCK_ROWS)).map(|_| self.zone(rows));
        let blocks = blocks.collect::<io::Result<Vec<Zone>>>()?;
        let data = self.data(rows, codes)?;
        let is_of_kind = match &data {
            Data::Null => true,
            Data::Whole(_) => !matches!(kind, Kind::Null | Kind::Float | Kind::Text),
            Data::Codes(_) | Data::Text(_) => kind == Kind::Text,
            Data::Scaled { .. } | Data::Float(_) => kind == Kind::Float,
            Data::Shifted { .. } | Data::Exact(_) => matches!(kind, Kind::Decimal { .. }),
        };
        check(is_of_kind, "values of another type than their column")?;
        Ok(SegmentColumn { kind, rows, valid, data, zone, blocks })
    }

    fn zone(&mut self, rows: u32) -> io::Result<Zone> {
        let zone = Zone { min: self.number()?, max: self.number()?, nulls: self.number()? };
        let most = 10i128.pow(u32::from(DIGITS_MAX));
        let are_possible = zone.min > -most && zone.max < most;
        let is_right = zone.nulls <= rows && (zone.is_without_values() || are_possible);
        check(is_right, "an impossible zone map")?;
        Ok(zone)
    }

    fn data(&mut self, rows: u32, codes: usize) -> io::Result<Data> {
        let filled = (rows as usize).next_multiple_of(64);
        Ok(match self.number::<u8>()? {
            0 => Data::Null,
            1 => Data::Whole(self.packed(rows)?),
            2 => {
                let packed = self.packed(rows)?;
                check(is_within(&packed, codes), "a code without a string")?;
                Data::Codes(packed)
            }
            3 => {
                let exponent = self.number::<u8>()?;
                check(usize::from(exponent) < POWERS.len(), "an unknown exponent")?;
                Data::Scaled { exponent, packed: self.packed(rows)? }
            }
            4 => {
                let shift = self.number::<i128>()?;
                let is_right = shift.unsigned_abs() <= i128::MAX.unsigned_abs() - (1 << 64);
                check(is_right, "numbers of more than 38 digits")?;
                Data::Shifted { shift, packed: self.packed(rows)? }
            }
            5 => {
                let numbers: Vec<i128> = self.list()?;
                check(numbers.len() == filled, "a wrong number of values")?;
                Data::Exact(numbers)
            }
            6 => {
                let numbers: Vec<f64> = self.list()?;
                check(numbers.len() == filled, "a wrong number of floats")?;
                Data::Float(numbers)
            }
            7 => {
                let strings = self.strings()?;
                check(strings.len() == rows as usize, "a wrong number of strings")?;
                Data::Text(strings)
            }
            _ => return Err(wrong("an unknown encoding")),
        })
    }

    fn packed(&mut self, rows: u32) -> io::Result<Packed> {
        let base = self.number()?;
        let filled = (rows as usize).next_multiple_of(64);
        let (lanes, is_right) = match self.number::<u8>()? {
            0 => (Lanes::Constant, true),
            1 => of(Lanes::Bits, self.list()?, filled / 64),
            2 => of(Lanes::U8, self.list()?, filled),
            3 => of(Lanes::U16, self.list()?, filled),
            4 => of(Lanes::U32, self.list()?, filled),
            5 => of(Lanes::U64, self.list()?, filled),
            6 => {
                let (ends, values): (Vec<u32>, Vec<u64>) = (self.list()?, self.list()?);
                let is_right = ends.len() == values.len()
                    && ends.last() == Some(&rows)
                    && ends.is_sorted_by(|one, next| one < next)
                    && ends.first() != Some(&0);
                (Lanes::Runs { ends, values }, is_right)
            }
            _ => return Err(wrong("unknown lanes")),
        };
        check(is_right, "a wrong number of values")?;
        Ok(Packed { base, lanes, rows })
    }
}

/// Makes lanes, and returns whether there are `count` of them.
fn of<T>(lanes: impl Fn(Vec<T>) -> Lanes, list: Vec<T>, count: usize) -> (Lanes, bool) {
    let is_right = list.len() == count;
    (lanes(list), is_right)
}

/// Whether all numbers, including those that pad the last word, are in `0..end`.
fn is_within(packed: &Packed, end: usize) -> bool {
    fn most<T: Copy + Into<u64> + Ord>(lanes: &[T]) -> u64 {
        lanes.iter().copied().max().map_or(0, Into::into)
    }
    let most = match &packed.lanes {
        Lanes::Constant => 0,
        Lanes::Bits(words) => u64::from(words.iter().any(|word| *word != 0)),
        Lanes::U8(lanes) => most(lanes),
        Lanes::U16(lanes) => most(lanes),
        Lanes::U32(lanes) => most(lanes),
        Lanes::U64(lanes) => most(lanes),
        Lanes::Runs { values, .. } => most(values),
    };
    let base = u64::try_from(packed.base).ok();
    base.and_then(|base| base.checked_add(most)).is_some_and(|most| most < end as u64)
}
