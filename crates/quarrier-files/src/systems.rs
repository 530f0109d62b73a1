//! The file systems of a source: a single one, or one per partition.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::{fmt, io};

use quarrier_core::source::Source;

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::part::{BOOT_BYTES, Part};
use crate::partitions::{self, Partition, Table};
use crate::walk::{Damages, Reach, Walk};
use crate::{apfs, btrfs, exfat, ext, fat, hfs, iso, ntfs, other, xfs};

/// The supported file systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemKind {
    /// FAT with 12-bit entries.
    Fat12,
    /// FAT with 16-bit entries.
    Fat16,
    /// FAT with 32-bit entries.
    Fat32,
    /// exFAT.
    ExFat,
    /// NTFS.
    Ntfs,
    /// ext2, ext3 or ext4.
    Ext,
    /// XFS.
    Xfs,
    /// ISO 9660.
    Iso,
    /// HFS+ or HFSX, case-sensitive or not.
    HfsPlus,
    /// Btrfs on one device.
    Btrfs,
    /// An APFS container.
    Apfs,
}

impl fmt::Display for SystemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SystemKind::Fat12 => "FAT12",
            SystemKind::Fat16 => "FAT16",
            SystemKind::Fat32 => "FAT32",
            SystemKind::ExFat => "exFAT",
            SystemKind::Ntfs => "NTFS",
            SystemKind::Ext => "ext",
            SystemKind::Xfs => "XFS",
            SystemKind::Iso => "ISO 9660",
            SystemKind::HfsPlus => "HFS+",
            SystemKind::Btrfs => "Btrfs",
            SystemKind::Apfs => "APFS",
        })
    }
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// The number of its partition, from 1; 0 if it takes up the whole source.
    pub partition: u32,
    /// Its type.
    pub kind: SystemKind,
    /// The bytes of its partition in the source.
    pub span: Range<u64>,
}

/// A skipped partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedPartition {
    /// Its bytes in the source.
    pub range: Range<u64>,
    /// Its contents: `"swap"`, `"F2FS"`, `"an unknown file system"`, `"a FAT too short for its
    /// clusters"`.
    pub what: String,
}

impl SkippedPartition {
    /// A one-line message.
    pub fn describe(&self) -> String {
        let Range { start, end } = self.range;
        format!("bytes {start}..{end} were skipped: a partition with {}", self.what)
    }
}

/// The file systems found in a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Systems {
    /// By offset.
    pub systems: Vec<System>,
    /// Partitions without a supported file system, by offset.
    pub skipped_partitions: Vec<SkippedPartition>,
    /// A message about the partition table.
    pub notice: Option<String>,
}

impl Systems {
    /// Messages about skipped partitions and damage.
    pub fn notices(&self) -> Vec<String> {
        let skipped_partitions = self.skipped_partitions.iter().map(SkippedPartition::describe);
        self.notice.iter().cloned().chain(skipped_partitions).collect()
    }

    /// Whether paths need a partition number to be unique.
    pub fn are_several(&self) -> bool {
        self.systems.len() > 1
    }
}

/// Finds the file systems of `source`. Reads only a few sectors of each.
///
/// # Errors
/// [`Error::FileSystem`] if there is no supported file system and no partition table; [`Error::Source`]
/// if the source cannot be read.
pub fn find(source: &dyn Source) -> Result<Systems> {
    let whole = Part::whole(source);
    if let Some(kind) = kind(&whole)? {
        let system = System { partition: 0, kind, span: whole.span() };
        return Ok(Systems { systems: vec![system], ..Systems::default() });
    }
    let Table { partitions, notice } = partitions::read(&whole)?;
    if partitions.is_empty() {
        return Err(whole.refused(
            0,
            "no file system that quarrier can read (ext2 to ext4, XFS, Btrfs, FAT, exFAT, NTFS, HFS+, \
             APFS, ISO 9660)",
        ));
    }
    let mut found = Systems { notice, ..Systems::default() };
    for Partition { number, span, name } in partitions {
        let part = whole.within(span.clone());
        let what = match kind(&part) {
            Ok(Some(kind)) => {
                found.systems.push(System { partition: number, kind, span });
                continue;
            }
            Ok(None) => {
                let first = other::first(&part.boot()?);
                let seen = first.or(other::last(&part)?).map(Cow::Borrowed);
                let name = seen.or(name).unwrap_or(Cow::Borrowed("an unknown file system"));
                name.into_owned()
            }
            Err(Error::FileSystem { found, .. }) => found,
            Err(error) => return Err(error),
        };
        found.skipped_partitions.push(SkippedPartition { range: span, what });
    }
    Ok(found)
}

/// Identifies the contents of a part.
fn kind(part: &Part<'_>) -> Result<Option<SystemKind>> {
    let boot = part.boot()?;
    match other::first(&boot) {
        Some("BitLocker") => {
            return Err(part.refused(0, "a volume encrypted by BitLocker"));
        }
        Some(_) => return Ok(None),
        None => {}
    }
    if apfs::is_apfs(part, &boot)? {
        return Ok(Some(SystemKind::Apfs));
    }
    if xfs::layout(part, &boot)?.is_some() {
        return Ok(Some(SystemKind::Xfs));
    }
    if ntfs::boot(part, &boot)?.is_some() {
        return Ok(Some(SystemKind::Ntfs));
    }
    if exfat::layout(part, &boot)?.is_some() {
        return Ok(Some(SystemKind::ExFat));
    }
    if let Some(layout) = fat::layout(&boot) {
        return Ok(Some(match layout.bits {
            12 => SystemKind::Fat12,
            16 => SystemKind::Fat16,
            _ => SystemKind::Fat32,
        }));
    }
    if ext::is_ext(&boot) {
        return Ok(Some(SystemKind::Ext));
    }
    if iso::is_iso(part)? {
        return Ok(Some(SystemKind::Iso));
    }
    if hfs::volume(part, &boot)?.is_some() {
        return Ok(Some(SystemKind::HfsPlus));
    }
    Ok(btrfs::superblock(part)?.map(|_| SystemKind::Btrfs))
}

impl System {
    /// Passes every entry within `reach` to `take`, folder by folder. Returns soon after `stop` becomes
    /// true. The result is the damage that was skipped. Several threads read the records of NTFS; they
    /// end with the call.
    ///
    /// # Errors
    /// [`Error::Taken`] with the error of `take`, or `Interrupted` if it was stopped;
    /// [`Error::TooMuch`] if structures form a cycle; the errors of [`find`] if the root cannot be
    /// read.
    pub fn list(
        &self,
        source: &dyn Source,
        reach: Reach,
        stop: &AtomicBool,
        take: &mut dyn FnMut(Entry) -> io::Result<()>,
    ) -> Result<Damages> {
        let mut damages = Damages::default();
        let part = Part::whole(source).within(self.span.clone());
        let boot: [u8; BOOT_BYTES] = part.boot()?;
        let mut walk = Walk::new(take, reach, &mut damages, stop, self.span.clone());
        match self.kind {
            SystemKind::Fat12 | SystemKind::Fat16 | SystemKind::Fat32 => {
                fat::list(&part, &boot, &mut walk)?;
            }
            SystemKind::ExFat => exfat::list(&part, &boot, &mut walk)?,
            SystemKind::Ntfs => ntfs::list(&part, &boot, &mut walk)?,
            SystemKind::Ext => ext::list(&part, &boot, &mut walk)?,
            SystemKind::Xfs => xfs::list(&part, &boot, &mut walk)?,
            SystemKind::Iso => iso::list(&part, &mut walk)?,
            SystemKind::HfsPlus => hfs::list(&part, &boot, &mut walk)?,
            SystemKind::Btrfs => btrfs::list(&part, &mut walk)?,
            SystemKind::Apfs => apfs::list(&part, &boot, &mut walk)?,
        }
        Ok(damages)
    }
}
