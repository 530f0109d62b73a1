//! Formats that wrap a disk, recognized by the first or last bytes of a file.

use quarrier_core::source::{Source, read_full_at};

use crate::bytes::{u16_le, u32_le, u64_le};

/// The format in which a file wraps a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Advanced Forensic Format, versions 1 to 3.
    Aff,
    /// Advanced Forensic Format 4.
    Aff4,
    /// bzip2.
    Bzip2,
    /// A macOS disk image.
    Dmg,
    /// An encrypted macOS disk image.
    DmgEncrypted,
    /// A sparse macOS disk image.
    DmgSparse,
    /// EWF: `.E01`, and SMART's `.s01`.
    Ewf,
    /// EWF version 2: `.Ex01`.
    Ewf2,
    /// A logical EWF image, which holds files rather than a disk: `.L01`, `.Lx01`.
    EwfLogical,
    /// gzip.
    Gzip,
    /// A Parallels disk.
    Parallels,
    /// A QEMU disk, including version 1 of the format.
    Qcow2,
    /// A disk in QEMU's QED format.
    Qed,
    /// A VirtualBox disk.
    Vdi,
    /// A Virtual PC or Hyper-V disk.
    Vhd,
    /// A Hyper-V disk.
    Vhdx,
    /// A VMware disk.
    Vmdk,
    /// A snapshot of newer VMware servers.
    VmdkSesparse,
    /// xz.
    Xz,
    /// Zstandard.
    Zstd,
}

/// The magic numbers of formats, in the order in which they are tried.
const MAGICS: [(Kind, usize, &[u8]); 24] = [
    (Kind::Ewf, 0, b"EVF\x09\x0d\x0a\xff\x00"),
    (Kind::EwfLogical, 0, b"LVF\x09\x0d\x0a\xff\x00"),
    (Kind::Ewf2, 0, b"EVF2\x0d\x0a\x81\x00"),
    (Kind::EwfLogical, 0, b"LEF2\x0d\x0a\x81\x00"),
    (Kind::Qcow2, 0, b"QFI\xfb"),
    (Kind::Qed, 0, b"QED\0"),
    (Kind::Vmdk, 0, b"KDMV"),
    (Kind::Vmdk, 0, b"COWD"),
    (Kind::Vmdk, 0, b"# Disk DescriptorFile"),
    (Kind::VmdkSesparse, 0, &[0xBE, 0xBA, 0xFE, 0xCA, 0, 0, 0, 0]),
    (Kind::Vhdx, 0, b"vhdxfile"),
    (Kind::Vdi, 0x40, &[0x7F, 0x10, 0xDA, 0xBE]),
    (Kind::Parallels, 0, b"WithoutFreeSpace"),
    (Kind::Parallels, 0, b"WithouFreSpacExt"),
    (Kind::Aff, 0, b"AFF10\r\n\0"),
    (Kind::Aff4, 30, b"container.description"),
    (Kind::DmgEncrypted, 0, b"encrcdsa"),
    (Kind::DmgSparse, 0, b"sprs"),
    (Kind::Xz, 0, b"\xFD7zXZ\0"),
    (Kind::Bzip2, 4, &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59]),
    (Kind::Bzip2, 4, &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90]),
    (Kind::Zstd, 0, &[0x28, 0xB5, 0x2F, 0xFD]),
    (Kind::Gzip, 0, &[0x1F, 0x8B, 8]),
    (Kind::Vhd, 0, b"conectix"),
];

const HEAD_BYTES: usize = 512;
const TAIL_BYTES: usize = 512;
/// Maximum number of skippable frames before the first one with data.
const SKIPPED_MAX: usize = 16;

impl Kind {
    /// Detects the format in which `file` wraps a disk, by its content; `None` for a plain or
    /// unreadable file. If the file `is_far`, its end is probed only if its name or first bytes suggest
    /// a footer.
    pub fn of(file: &dyn Source, is_far: bool) -> Option<Kind> {
        Kind::and_notice(file, is_far).0
    }

    /// As [`of`](Self::of), with a notice for a file that is read as plain data although it is
    /// compressed or encrypted in an unsupported way.
    pub(crate) fn and_notice(file: &dyn Source, is_far: bool) -> (Option<Kind>, Option<String>) {
        let mut head = [0; HEAD_BYTES];
        let Ok(read) = read_full_at(file, 0, &mut head) else { return (None, None) };
        let head = &head[..read];
        let begun = MAGICS.iter().find(|(kind, at, magic)| {
            head.get(*at..).is_some_and(|head| head.starts_with(magic)) && kind.is_likely(head)
        });
        let begun = begun.map(|(kind, ..)| *kind);
        let begun = begun.or_else(|| skips_to_zstd(file, head).then_some(Kind::Zstd));
        if begun.is_some_and(|kind| !kind.may_be_inside()) {
            return (begun, None);
        }
        let may_end = !is_far
            || begun.is_some()
            || Kind::has_footer(file.name())
            || head.first() == Some(&0x78);
        (may_end.then(|| ended(file)).flatten().or(begun), notice_of(head))
    }

    /// Whether a file has the extension of a format with a footer.
    pub(crate) fn has_footer(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        [".dmg", ".vhd", ".avhd", ".aff4"].iter().any(|ending| name.ends_with(ending))
    }

    /// Whether a file inside an image may begin like this, so that its end must be probed first.
    fn may_be_inside(self) -> bool {
        matches!(self, Kind::Bzip2 | Kind::Xz | Kind::Gzip | Kind::Zstd)
    }

    /// For short magic numbers: whether more of the header is plausible.
    fn is_likely(self, head: &[u8]) -> bool {
        match self {
            Kind::Gzip => head.len() > 18 && head[3] & 0xE0 == 0,
            Kind::Bzip2 => head.starts_with(b"BZh") && (b'1'..=b'9').contains(&head[3]),
            Kind::DmgSparse => matches!(u32_le(head, 4).swap_bytes(), 3),
            Kind::Aff4 => head.starts_with(b"PK\x03\x04"),
            Kind::VmdkSesparse => u16_le(head, 8) != 0,
            _ => true,
        }
    }

    /// The reason why the format is not supported, and a remedy.
    pub(crate) fn refusal(self) -> &'static str {
        match self {
            Kind::Aff => {
                "is an AFF image (version 1 to 3), which is not supported; write it as raw with affconvert -r, and search that"
            }
            Kind::DmgEncrypted => {
                "is an encrypted image of macOS; decrypt it with hdiutil convert and its password, and search that"
            }
            Kind::DmgSparse => {
                "is a sparse image of macOS, which is not supported; convert it with hdiutil convert -format UDRO, and search that"
            }
            Kind::EwfLogical => {
                "is a logical image (L01), which holds files and no disk; export the files from it"
            }
            Kind::Qed => {
                "is a QED image, which is not supported; convert it with qemu-img convert -O raw, and search that"
            }
            Kind::VmdkSesparse => {
                "is a snapshot in VMware's seSparse format, which is not supported; clone the disk with vmkfstools -i, and search that"
            }
            _ => "is in an unsupported format; convert it to raw, and search that",
        }
    }
}

/// Whether a file begins with skippable frames of Zstandard, as those of `pzstd` do, and then has another.
fn skips_to_zstd(file: &dyn Source, head: &[u8]) -> bool {
    let (mut at, mut frame) = (0u64, [0; 8]);
    frame.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
    for _ in 0..SKIPPED_MAX {
        match frame {
            [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => at += 8 + u64::from(u32_le(&frame, 4)),
            _ => return at > 0 && frame.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]),
        }
        if !read_full_at(file, at, &mut frame).is_ok_and(|read| read == frame.len()) {
            return false;
        }
    }
    false
}

/// Detects the format by the last bytes of a file.
fn ended(file: &dyn Source) -> Option<Kind> {
    let at = file.length().checked_sub(TAIL_BYTES as u64)?;
    let mut tail = [0; TAIL_BYTES];
    (read_full_at(file, at, &mut tail).ok()? == tail.len()).then_some(())?;
    let is_koly = tail.starts_with(b"koly") && tail[4..12] == [0, 0, 0, 4, 0, 0, 2, 0];
    // Early writers omitted the last byte.
    let is_footer =
        |footer: &[u8]| footer.starts_with(b"conectix") && footer[12..16] == [0, 1, 0, 0];
    let zip_comment =
        tail.windows(29).any(|end| end.starts_with(b"PK\x05\x06") && &end[22..] == b"aff4://");
    match () {
        () if is_koly => Some(Kind::Dmg),
        () if is_footer(&tail) || is_footer(&tail[1..]) => Some(Kind::Vhd),
        () if tail.ends_with(b"cdsaencr") => Some(Kind::DmgEncrypted),
        () if zip_comment => Some(Kind::Aff4),
        () => None,
    }
}

/// Other compressed or encrypted formats, by magic number, with a remedy.
const TAKEN_AS_THEY_ARE: [(usize, &[u8], &str, &str); 12] = [
    (0, &[0x04, 0x22, 0x4D, 0x18], "is compressed by LZ4", "decompress it first with lz4 -d"),
    (0, b"LZIP\x01", "is compressed by lzip", "decompress it first with lzip -d"),
    (0, b"\x89LZO\0\r\n\x1A\n", "is compressed by lzop", "decompress it first with lzop -d"),
    (0, &[0x1F, 0x9D], "is compressed by compress", "decompress it first with gzip -d"),
    (0, &[0x5D, 0, 0], "is compressed by LZMA", "decompress it first with xz --format=lzma -d"),
    (0, b"MSWIM\0\0\0", "is a Windows image (WIM)", "extract its files first"),
    (0, b"IsZ!", "is a compressed ISO image (ISZ)", "unpack it first"),
    (0, b"partclone-image", "is an image of Partclone", "restore it first with partclone.restore"),
    (0, b"Bochs Virtual HD Image", "is a disk of Bochs", "convert it first with qemu-img"),
    (0, b"#!/bin/sh\n#V2.0 Format\n", "is a cloop image", "convert it first with qemu-img"),
    (0, b"LUKS\xBA\xBE", "is encrypted by LUKS", "unlock it first, and name the device"),
    (3, b"-FVE-FS-", "is encrypted by BitLocker", "unlock it first, and name the device"),
];

fn notice_of(head: &[u8]) -> Option<String> {
    let (.., what, hint) = TAKEN_AS_THEY_ARE.iter().find(|(at, magic, ..)| {
        head.get(*at..).is_some_and(|head| head.starts_with(magic)) && is_likely(magic, head)
    })?;
    Some(format!("{what}, which is not supported: it is read as raw data; {hint}"))
}

/// For short magic numbers: whether more of the header is plausible.
fn is_likely(magic: &[u8], head: &[u8]) -> bool {
    match magic {
        [0x1F, 0x9D] => {
            head.get(2).is_some_and(|flags| flags & 0x60 == 0 && (9..=16).contains(&(flags & 0x1F)))
        }
        [0x5D, 0, 0] => {
            let (dictionary, length) = (u32_le(head, 1), u64_le(head, 5));
            head.len() > 13
                && dictionary.is_power_of_two()
                && (length == u64::MAX || length < 1 << 40)
        }
        _ => true,
    }
}
