//! Where the sections of a Windows program are.

use super::u32_at;

/// Size of the header of a section, in bytes.
pub(super) const HEADER_BYTES: usize = 40;
/// Programs whose file alignment is at least this have sections at its multiples.
const ALIGNMENT: u32 = 0x200;

/// The headers of sections.
pub(super) struct Sections<'b> {
    headers: &'b [u8],
    is_aligned: bool,
}

impl<'b> Sections<'b> {
    pub(super) fn new(headers: &'b [u8], file_alignment: u32) -> Self {
        Sections { headers, is_aligned: file_alignment >= ALIGNMENT }
    }

    pub(super) fn count(&self) -> usize {
        self.headers.len() / HEADER_BYTES
    }

    /// Returns the offset of a relative address in the file, as boreal maps it. It may be outside of the
    /// file.
    pub(super) fn offset(&self, address: u32) -> Option<usize> {
        let first = self.all().map(|section| section.start).min()?;
        match self.around(address) {
            Some(section) => section.offset(address),
            // Before all sections, the file is at the addresses as it is.
            None => (address < first).then_some(address as usize),
        }
    }

    /// Returns the section whose bytes in the file contain this address.
    pub(super) fn around(&self, address: u32) -> Option<Section> {
        self.all().find(|section| section.contains(address))
    }

    fn all(&self) -> impl Iterator<Item = Section> {
        self.headers.chunks_exact(HEADER_BYTES).filter_map(|header| {
            let place = u32_at(header, 20)?;
            Some(Section {
                start: u32_at(header, 12)?,
                bytes_in_memory: u32_at(header, 8)?,
                bytes: u32_at(header, 16)?,
                place: if self.is_aligned { place - place % ALIGNMENT } else { place },
            })
        })
    }
}

/// A section.
pub(super) struct Section {
    /// Its relative address.
    start: u32,
    bytes_in_memory: u32,
    /// Its size in the file.
    bytes: u32,
    /// Its offset in the file.
    place: u32,
}

impl Section {
    pub(super) fn contains(&self, address: u32) -> bool {
        address.checked_sub(self.start).is_some_and(|inside| inside < self.bytes)
    }

    /// Returns the offset of an address in this section.
    pub(super) fn offset(&self, address: u32) -> Option<usize> {
        self.place.checked_add(address.checked_sub(self.start)?).map(|offset| offset as usize)
    }

    /// Returns the number of bytes from an address to the end of what the section has in memory and in the
    /// file.
    pub(super) fn bytes_from(&self, address: u32) -> u32 {
        self.bytes.min(self.bytes_in_memory).saturating_sub(address.saturating_sub(self.start))
    }
}
