//! The delayed imports of Windows programs by linkers of the 1990s, which wrote absolute addresses.

use super::sections::Sections;
use super::{Patch, u32_at};

/// Size of the descriptor of a library, in bytes.
const DESCRIPTOR_BYTES: usize = 32;
/// The fields of a descriptor that are addresses; two of them are those of the library's name, and of the
/// functions' names.
const ADDRESSES: [usize; 6] = [LIBRARY, 8, 12, NAMES, 20, 24];
const LIBRARY: usize = 4;
const NAMES: usize = 16;
/// The bit in a descriptor's attributes that says that its addresses are relative.
const RELATIVE: u32 = 1;
/// The bit in a name's address that says that it is a number instead.
const ORDINAL: u32 = 1 << 31;
/// Maximum number of libraries, and of functions, as in YARA.
const IMPORTS_MAX: usize = 16_384;

/// The table of a program of 32 bits.
pub(super) struct Delayed<'b> {
    pub(super) bytes: &'b [u8],
    pub(super) sections: Sections<'b>,
    pub(super) image_base: u32,
    /// The relative address of the descriptors.
    pub(super) table: u32,
}

impl Delayed<'_> {
    /// Returns the patches that make all addresses in the table relative to the image base.
    ///
    /// boreal looks for names only in the section of the descriptors, so others are left as they are, and
    /// so are descriptors that name no library: they may be anything, even headers.
    pub(super) fn patches(&self) -> Option<Vec<Patch>> {
        let section = self.sections.around(self.table)?;
        let place = |address: u32| {
            let place = section.contains(address).then(|| section.offset(address))??;
            (place < self.bytes.len()).then_some(place)
        };
        let start = place(self.table)?;
        let mut patches = Vec::new();
        let mut functions = 0;
        let descriptors = self.bytes[start..].chunks_exact(DESCRIPTOR_BYTES).take(IMPORTS_MAX);
        for (index, descriptor) in descriptors.enumerate() {
            if descriptor.iter().all(|byte| *byte == 0) {
                break;
            }
            let library = place(self.relative(u32_at(descriptor, LIBRARY)?));
            let is_named = library.is_some_and(|at| is_printable(self.bytes[at]));
            if u32_at(descriptor, 0)? & RELATIVE != 0 || !is_named {
                continue;
            }
            for field in ADDRESSES {
                let new = self.relative(u32_at(descriptor, field)?).to_le_bytes();
                patches.push((start + index * DESCRIPTOR_BYTES + field, new));
            }
            let Some(names) = place(self.relative(u32_at(descriptor, NAMES)?)) else { continue };
            let names = self.bytes[names..].chunks_exact(4).zip((names..).step_by(4));
            for (name, at) in names.take(IMPORTS_MAX - functions) {
                let name = u32_at(name, 0).filter(|name| *name != 0);
                let Some(name) = name else { break };
                functions += 1;
                if name & ORDINAL == 0 {
                    patches.push((at, self.relative(name).to_le_bytes()));
                }
            }
        }
        Some(patches)
    }

    /// Returns the relative address. To YARA, one below the image base is relative already.
    fn relative(&self, address: u32) -> u32 {
        address.checked_sub(self.image_base).unwrap_or(address)
    }
}

fn is_printable(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte == b' '
}
