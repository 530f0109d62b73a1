//! An attribute of an MFT record: a name, times, or data.

use std::borrow::Cow;

use crate::part::{u16_at, u32_at, u64_at};
use crate::walk::name_of_utf16;

pub(super) const STANDARD_INFORMATION: u32 = 0x10;
pub(super) const ATTRIBUTE_LIST: u32 = 0x20;
pub(super) const FILE_NAME: u32 = 0x30;
pub(crate) const DATA: u32 = 0x80;
pub(super) const INDEX_ALLOCATION: u32 = 0xA0;
pub(super) const REPARSE_POINT: u32 = 0xC0;
pub(super) const END: u32 = 0xFFFF_FFFF;
const COMPRESSED: u16 = 1;

/// An attribute, in the bytes of its record.
#[derive(Debug, Clone)]
pub(crate) struct Attribute<'b> {
    pub(crate) kind: u32,
    pub(crate) name: String,
    pub(crate) form: Form<'b>,
}

/// The location of an attribute's bytes.
#[derive(Debug, Clone)]
pub(crate) enum Form<'b> {
    /// Resident: in the record itself.
    Here {
        /// The offset of the attribute in the volume.
        at: u64,
        /// The bytes.
        bytes: Cow<'b, [u8]>,
    },
    /// Nonresident: in clusters. One attribute may be split over several records.
    Runs {
        /// The first cluster number in this part, counted from the start of the attribute.
        first: u64,
        /// The encoded run list.
        runs: Cow<'b, [u8]>,
        /// Size of the attribute in bytes; only valid in the part with the first cluster.
        size: u64,
        /// Bytes that were written (initialized size); later ones read as zeros.
        written: u64,
        /// Clusters in a compression unit, if compressed.
        packed_clusters: Option<u64>,
    },
}

impl<'b> Attribute<'b> {
    /// Parses an attribute; `None` if it is damaged.
    pub(super) fn read(kind: u32, bytes: &'b [u8], at: u64) -> Option<Self> {
        let (name_units, name_at) = (usize::from(bytes[9]), usize::from(u16_at(bytes, 10)));
        let name = bytes.get(name_at..name_at + name_units * 2)?;
        let name = name_of_utf16(name);
        if bytes[8] == 0 {
            let (length, from) = (u32_at(bytes, 16) as usize, usize::from(u16_at(bytes, 20)));
            let here = bytes.get(from..)?.get(..length)?;
            let form = Form::Here { at: at + from as u64, bytes: here.into() };
            return Some(Attribute { kind, name, form });
        }
        let runs = bytes.get(usize::from(u16_at(bytes, 32))..)?.into();
        let shift = u16_at(bytes, 34);
        let is_packed = u16_at(bytes, 12) & COMPRESSED != 0 && (1..=8).contains(&shift);
        let form = Form::Runs {
            first: u64_at(bytes, 16),
            runs,
            size: u64_at(bytes, 48),
            written: u64_at(bytes, 56),
            packed_clusters: is_packed.then(|| 1 << shift),
        };
        Some(Attribute { kind, name, form })
    }

    /// The attribute, independent of its record.
    pub(super) fn into_owned<'o>(self) -> Attribute<'o> {
        let owned = |bytes: Cow<'b, [u8]>| Cow::Owned(bytes.into_owned());
        let form = match self.form {
            Form::Here { at, bytes } => Form::Here { at, bytes: owned(bytes) },
            Form::Runs { first, runs, size, written, packed_clusters } => {
                Form::Runs { first, runs: owned(runs), size, written, packed_clusters }
            }
        };
        Attribute { kind: self.kind, name: self.name, form }
    }

    /// The bytes of a resident attribute.
    pub(super) fn resident(&self) -> Option<&[u8]> {
        match &self.form {
            Form::Here { bytes, .. } => Some(bytes),
            Form::Runs { .. } => None,
        }
    }

    /// Its first cluster number, counted from the start of the whole attribute.
    pub(super) fn first(&self) -> u64 {
        match self.form {
            Form::Here { .. } => 0,
            Form::Runs { first, .. } => first,
        }
    }
}
