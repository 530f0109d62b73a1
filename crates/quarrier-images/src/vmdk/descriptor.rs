//! The text descriptor of a disk.

use quarrier_core::source::Source;
use quarrier_core::{Result, name};

use super::EXTENTS_MAX;
use crate::around::shown;
use crate::fault::{damaged, refused, structure};

const DESCRIPTOR_BYTES_MAX: u64 = 4 << 20;
/// The identifier for "no parent".
const NO_PARENT: u32 = u32::MAX;

/// The storage of an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    Flat,
    Sparse,
    Zeros,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) sectors: u64,
    pub(super) storage: Storage,
    pub(super) name: Option<String>,
    /// Its start in the file, in sectors.
    pub(super) offset: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// The CID, which changes whenever the disk is opened for writing.
    pub(super) id: u32,
    pub(super) parent_id: Option<u32>,
    pub(super) parent_name: Option<String>,
    pub(super) extents: Vec<Extent>,
}

impl Descriptor {
    /// # Errors
    /// If it is not a descriptor, or of an unsupported disk.
    pub(super) fn read(file: &dyn Source, at: u64, bytes: u64) -> Result<Descriptor> {
        if bytes > DESCRIPTOR_BYTES_MAX {
            return Err(damaged(file, at, "the descriptor is too long"));
        }
        let text = structure(file, at, bytes, "the descriptor")?;
        // Inside an image, the text is padded with zeros.
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        let text = name::of_bytes(&text[..end]);
        Descriptor::parse(&text).map_err(|reason| refused(file, reason))
    }

    fn parse(text: &str) -> std::result::Result<Descriptor, String> {
        let mut found =
            Descriptor { id: NO_PARENT, parent_id: None, parent_name: None, extents: Vec::new() };
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(extent) = extent(line)? {
                if found.extents.len() == EXTENTS_MAX {
                    return Err(format!("has more than {EXTENTS_MAX} extents"));
                }
                found.extents.push(extent);
                continue;
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            let value = value.trim().trim_matches('"');
            match key.trim() {
                "CID" => found.id = id(value),
                "parentCID" => found.parent_id = Some(id(value)).filter(|&id| id != NO_PARENT),
                "parentFileNameHint" => found.parent_name = Some(value.to_string()),
                "createType" if value.to_ascii_lowercase().contains("raw") => {
                    return Err(
                        "refers to a device of another machine, and contains no data".to_string()
                    );
                }
                "encryption.keySafe" | "encryption.data" => {
                    return Err("is encrypted; decrypt the virtual machine, and search its disk"
                        .to_string());
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

fn id(text: &str) -> u32 {
    u32::from_str_radix(text, 16).unwrap_or(NO_PARENT)
}

/// Parses a line such as `RW 4192256 SPARSE "disk-s001.vmdk" 0`; `None` for other lines.
fn extent(line: &str) -> std::result::Result<Option<Extent>, String> {
    let mut words = line.splitn(4, char::is_whitespace);
    if !matches!(words.next(), Some("RW" | "RDONLY" | "NOACCESS")) {
        return Ok(None);
    }
    let Some(Ok(sectors)) = words.next().map(str::parse) else { return Ok(None) };
    let storage = match words.next().unwrap_or_default() {
        "FLAT" | "VMFS" => Storage::Flat,
        "SPARSE" | "VMFSSPARSE" => Storage::Sparse,
        "ZERO" => Storage::Zeros,
        other => {
            return Err(format!("has an extent of the unsupported type {}", shown(other)));
        }
    };
    let rest = words.next().unwrap_or_default().trim();
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.rsplit_once('"'));
    let (name, offset) = match quoted {
        Some((name, offset)) => (Some(name.to_string()), offset.trim()),
        None => (None, ""),
    };
    // Some writers append more fields after the offset.
    let offset = offset.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Ok(Some(Extent { sectors, storage, name, offset }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_has_extents_and_a_parent() {
        let text = "# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=1234abcd\n\
                    parentFileNameHint=\"a b.vmdk\"\n\n# Extent description\n\
                    RW 63 FLAT \"d \"x\" f.vmdk\" 7\nRW 2 ZERO\nRW 12 SPARSE \"s.vmdk\"\n";
        let found = Descriptor::parse(text).unwrap();
        assert_eq!((found.id, found.parent_id), (0xFFFF_FFFE, Some(0x1234_ABCD)));
        assert_eq!(found.parent_name.as_deref(), Some("a b.vmdk"));
        let extents: Vec<_> = found
            .extents
            .iter()
            .map(|extent| (extent.sectors, extent.storage, extent.name.as_deref(), extent.offset))
            .collect();
        let expected = [
            (63, Storage::Flat, Some("d \"x\" f.vmdk"), 7),
            (2, Storage::Zeros, None, 0),
            (12, Storage::Sparse, Some("s.vmdk"), 0),
        ];
        assert_eq!(extents, expected);
        assert!(Descriptor::parse("RW 1 VMFSRDM \"x\"").is_err());
        assert!(Descriptor::parse("createType=\"vmfsPassthroughRawDeviceMap\"").is_err());
    }
}
