//! Finds the mount point of a path.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A mount point and its device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountPoint {
    /// The folder where it is mounted.
    pub path: String,
    /// The mounted device, for example `/dev/vda1`.
    pub device: String,
    /// The type of the file system, for example `ext4`.
    pub file_system: String,
}

/// Returns the mount point that holds `path`, an existing file or folder.
///
/// # Errors
/// If the path cannot be resolved, or the system does not report the mount.
pub fn mount_point(path: &Path) -> Result<MountPoint> {
    let subject = path.display().to_string();
    let full = fs::canonicalize(path).map_err(|error| Error::io(&subject, "find", error))?;
    let table = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| Error::io("/proc/self/mountinfo", "read", error))?;
    holder(&table, &full)
        .ok_or_else(|| Error::BadRequest(format!("{subject}: is on no known mount point")))
}

/// Returns the last of the deepest mounts above `path`: a later mount hides earlier ones.
fn holder(table: &str, path: &Path) -> Option<MountPoint> {
    let above = table.lines().filter_map(parse).filter(|(folder, _)| path.starts_with(folder));
    above.max_by_key(|(folder, _)| folder.components().count()).map(|(_, mount)| mount)
}

/// Parses `36 35 98:0 /root /mnt rw,noatime master:1 - ext4 /dev/vda1 rw`, with `\040` for a space.
fn parse(line: &str) -> Option<(PathBuf, MountPoint)> {
    let (place, what) = line.split_once(" - ")?;
    let folder = unescape(place.split(' ').nth(4)?);
    let mut what = what.split(' ');
    let file_system = what.next()?.to_string();
    let device = unescape(what.next()?);
    Some((PathBuf::from(&folder), MountPoint { path: folder, device, file_system }))
}

/// Decodes the kernel's octal escapes.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let octal = |digits: &[u8]| {
            let text = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(text, 8).ok()
        };
        match (first, tail.get(..3).and_then(octal)) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
        22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n\
        30 22 0:27 / /tmp rw - tmpfs tmpfs rw\n\
        31 22 8:1 / /mnt/my\\040disk rw shared:1 master:2 - xfs /dev/sda1 rw\n\
        32 31 8:2 / /mnt/my\\040disk rw - btrfs /dev/sdb1 rw\n\
        a line that is none\n";

    fn device(path: &str) -> String {
        holder(TABLE, Path::new(path)).unwrap().device
    }

    #[test]
    fn the_deepest_and_latest_mount_holds_a_path() {
        assert_eq!(device("/srv/data"), "/dev/vda1");
        assert_eq!(device("/tmp/file"), "tmpfs");
        assert_eq!(device("/tmpfile"), "/dev/vda1");
        assert_eq!(device("/mnt/my disk/file"), "/dev/sdb1");
        assert_eq!(holder("", Path::new("/")), None);
    }

    #[test]
    fn this_test_lies_on_a_mount_point() {
        assert!(!mount_point(Path::new("/")).unwrap().file_system.is_empty());
        assert!(mount_point(Path::new("/no/such/folder")).is_err());
    }
}
