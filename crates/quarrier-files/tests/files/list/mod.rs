//! Listings and bytes of files, as sleuthkit has them.

mod apfs;
mod btrfs;
mod ext;
mod fat;
mod hfs;
mod iso;
mod known;
mod lab;
mod ntfs;
mod places;
mod xfs;

/// What the volumes by hand consist of.
#[path = "../../../../../fuzz/src/volumes/parts.rs"]
mod parts;
