//! The headers of Windows programs.

use boreal::module::Value;

use super::delayed::Delayed;
use super::sections::{HEADER_BYTES, Sections};
use super::{Fields, Patch, u16_at, u32_at};

/// What the optional header begins with: the kind of the program.
const MAGIC_32: u16 = 0x10B;
const MAGIC_64: u16 = 0x20B;
/// Size of the optional header before the data directories, in bytes.
const FIXED_BYTES_32: usize = 96;
const FIXED_BYTES_64: usize = 112;
const DIRECTORY_BYTES: usize = 8;
const DIRECTORIES_MAX: usize = 16;
/// The number of sections that YARA and YARA-X read.
const SECTIONS_MAX: usize = 96;
/// Size of the header of the common language runtime, in bytes.
const RUNTIME_BYTES: u32 = 72;
/// The places of data directories.
const EXPORTS: usize = 0;
const RESOURCES: usize = 2;
const DELAYED_IMPORTS: usize = 13;
const RUNTIME: usize = 14;

/// Returns what to correct, nothing if the headers are sound or those of no program.
pub(super) fn correct(bytes: &[u8]) -> Vec<Patch> {
    Headers::of(bytes).and_then(|headers| headers.patches()).unwrap_or_default()
}

/// Sets the fields that show corrected numbers, and some that boreal leaves out.
pub(super) fn show(bytes: &[u8], fields: &mut Fields) {
    // boreal has read no program.
    if !fields.contains_key("machine") {
        return;
    }
    let Some(headers) = Headers::of(bytes) else { return };
    fields.extend([
        ("opthdr_magic", headers.magic.into()),
        ("size_of_optional_header", headers.optional_bytes.into()),
        ("number_of_rva_and_sizes", headers.directories.into()),
        ("number_of_sections", headers.sections.into()),
    ]);
    if let Some(Value::Array(directories)) = fields.get_mut("data_directories") {
        directories.truncate(headers.directories as usize);
        for (place, shown) in directories.iter_mut().enumerate() {
            if let (Value::Object(shown), Some((_, size))) = (shown, headers.directory(place)) {
                shown.insert("size", size.into());
            }
        }
    }
    if let Some(Value::Array(sections)) = fields.get_mut("sections") {
        sections.iter_mut().for_each(without_zeros);
        if sections.is_empty() {
            let overlay = Value::object([("offset", 0.into()), ("size", 0.into())]);
            fields.insert("overlay", overlay);
        }
    }
    if let (false, Some(time)) = (fields.contains_key("export_timestamp"), headers.export_time()) {
        fields.insert("export_timestamp", time.into());
    }
}

/// Makes the name of a section empty if it consists of zeros.
fn without_zeros(section: &mut Value) {
    let Value::Object(section) = section else { return };
    for field in ["name", "full_name"] {
        if let Some(Value::Bytes(name)) = section.get_mut(field)
            && name.iter().all(|byte| *byte == 0)
        {
            name.clear();
        }
    }
}

/// The numbers of headers that boreal checks, as they are in the scope.
struct Headers<'b> {
    bytes: &'b [u8],
    /// The offsets of the headers.
    file_header: usize,
    optional_header: usize,
    magic: u16,
    optional_bytes: u16,
    directories: u32,
    sections: u16,
}

impl<'b> Headers<'b> {
    /// Reads the headers; `None` if there are none, or if boreal and YARA cannot read them either.
    fn of(bytes: &'b [u8]) -> Option<Self> {
        let start = u32_at(bytes, 60)? as usize;
        if !bytes.starts_with(b"MZ") || !bytes.get(start..)?.starts_with(b"PE\0\0") {
            return None;
        }
        let (file_header, optional_header) = (start + 4, start + 24);
        let magic = u16_at(bytes, optional_header)?;
        Some(Headers {
            bytes,
            file_header,
            optional_header,
            magic,
            optional_bytes: u16_at(bytes, file_header + 16)?,
            directories: u32_at(bytes, optional_header + fixed_bytes(magic) - 4)?,
            sections: u16_at(bytes, file_header + 2)?,
        })
    }

    fn patches(&self) -> Option<Vec<Patch>> {
        let mut patches = Vec::new();
        if !matches!(self.magic, MAGIC_32 | MAGIC_64) {
            // YARA and YARA-X take any other for that of 32 bits.
            patches.push(self.with_low_half(self.optional_header, MAGIC_32)?);
        }
        let optional_bytes = self.optional_bytes_here()?;
        if optional_bytes != usize::from(self.optional_bytes) {
            let at = self.file_header + 16;
            patches.push(self.with_low_half(at, u16::try_from(optional_bytes).ok()?)?);
        }
        // Like YARA and YARA-X, read also directories after those that the header counts.
        let fixed = fixed_bytes(self.magic);
        let room = optional_bytes.checked_sub(fixed)? / DIRECTORY_BYTES;
        let directories = room.min(DIRECTORIES_MAX);
        if directories != self.directories as usize {
            let new = u32::try_from(directories).ok()?.to_le_bytes();
            patches.push((self.optional_header + fixed - 4, new));
        }
        let sections = self.sections_here()?;
        if sections.count() != usize::from(self.sections) {
            let new = u16::try_from(sections.count()).ok()?;
            patches.push(self.with_low_half(self.file_header + 2, new)?);
        }
        if RESOURCES < directories {
            patches.extend(self.resources(&sections));
        }
        if RUNTIME < directories {
            patches.extend(self.runtime());
        }
        if DELAYED_IMPORTS < directories && self.magic != MAGIC_64 {
            let image_base = u32_at(self.bytes, self.optional_header + 28)?;
            let (table, _) = self.directory(DELAYED_IMPORTS)?;
            let delayed = Delayed { bytes: self.bytes, sections, image_base, table };
            patches.extend(delayed.patches().unwrap_or_default());
        }
        Some(patches)
    }

    /// Returns the size of the optional header as far as it is in the file.
    fn optional_bytes_here(&self) -> Option<usize> {
        let room = self.bytes.len().checked_sub(self.optional_header)?;
        Some(usize::from(self.optional_bytes).min(room))
    }

    /// Returns the sections whose headers are in the file.
    fn sections_here(&self) -> Option<Sections<'b>> {
        let headers = self.bytes.get(self.optional_header + self.optional_bytes_here()?..)?;
        let count = (headers.len() / HEADER_BYTES).min(usize::from(self.sections));
        let headers = &headers[..count.min(SECTIONS_MAX) * HEADER_BYTES];
        Some(Sections::new(headers, u32_at(self.bytes, self.optional_header + 36)?))
    }

    /// Returns the patch of a directory of resources that ends before its section or after the file, so
    /// that it ends with the file: YARA does not look at its size.
    fn resources(&self, sections: &Sections<'_>) -> Option<Patch> {
        let (address, size) = self.directory(RESOURCES).filter(|(address, _)| *address != 0)?;
        let left = self.bytes.len().checked_sub(sections.offset(address)?)?;
        let left = u32::try_from(left).ok()?;
        let section = sections.around(address).map_or(0, |section| section.bytes_from(address));
        (left < size || size < section.min(left))
            .then_some((self.directory_at(RESOURCES) + 4, left.to_le_bytes()))
    }

    /// Returns the patch of a directory of the runtime that is shorter than its header.
    fn runtime(&self) -> Option<Patch> {
        let (address, size) = self.directory(RUNTIME)?;
        (address != 0 && size < RUNTIME_BYTES)
            .then_some((self.directory_at(RUNTIME) + 4, RUNTIME_BYTES.to_le_bytes()))
    }

    /// Returns the time in the table of exports.
    fn export_time(&self) -> Option<u32> {
        let (address, _) = self.directory(EXPORTS).filter(|(address, _)| *address != 0)?;
        u32_at(self.bytes, self.sections_here()?.offset(address)?.checked_add(4)?)
    }

    fn directory_at(&self, place: usize) -> usize {
        self.optional_header + fixed_bytes(self.magic) + place * DIRECTORY_BYTES
    }

    /// Returns the address and the size of a data directory.
    fn directory(&self, place: usize) -> Option<(u32, u32)> {
        let at = self.directory_at(place);
        Some((u32_at(self.bytes, at)?, u32_at(self.bytes, at + 4)?))
    }

    /// Returns the patch that replaces the two bytes at `at`, and keeps those after them.
    fn with_low_half(&self, at: usize, low: u16) -> Option<Patch> {
        let high = u32_at(self.bytes, at)? & 0xFFFF_0000;
        Some((at, (high | u32::from(low)).to_le_bytes()))
    }
}

fn fixed_bytes(magic: u16) -> usize {
    if magic == MAGIC_64 { FIXED_BYTES_64 } else { FIXED_BYTES_32 }
}
