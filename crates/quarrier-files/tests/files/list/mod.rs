//! Listings and contents of files, compared with sleuthkit.

mod apfs;
mod btrfs;
mod ext;
mod fat;
mod hfs;
mod iso;
mod known;
mod lab;
mod lost;
mod ntfs;
mod places;
mod xfs;

/// Shared parts of the volumes written by hand.
#[path = "../../../../../fuzz/src/volumes/parts.rs"]
mod parts;
