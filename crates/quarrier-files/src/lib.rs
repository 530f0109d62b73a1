//! File systems in raw bytes.
//!
//! ```text
//!  Source ──→ partitions ──→ systems ──→ entries: names, times, extents ──→ content: bytes
//!             (GPT, MBR, APM)  └──→ unallocated: free ranges         └──→ places: owner of a byte
//! ```
//!
//! Every reader uses [`Source::read_at`](quarrier_core::source::Source::read_at), and treats the bytes
//! as hostile: it checks offsets and counts, detects cycles of folders, and bounds the work by the
//! length of the volume.

mod ahead;
mod apfs;
mod btrfs;
mod bytes;
mod cache;
mod decmpfs;
mod digests;
mod entry;
mod error;
mod exfat;
mod ext;
mod fat;
mod folder;
mod hfs;
mod iso;
mod known;
mod lost_folders;
mod lznt1;
mod lzo;
mod ntfs;
mod other;
mod part;
pub mod partitions;
mod places;
mod random;
mod systems;
mod time;
pub mod unallocated;
mod unpack;
mod walk;
mod xfs;

pub use bytes::{Piece, read};
pub use digests::{Digests, HashKinds, Hasher};
pub use entry::{Access, Content, Entry, Extent, Kind, PackedPiece, Packing, Run, State, Times};
pub use error::{Error, Result};
pub use folder::{Folder, WrittenFile, harmless};
pub use known::KnownHashes;
pub use places::{Place, PlaceState, Places};
pub use random::FileContent;
pub use systems::{SkippedPartition, System, SystemKind, Systems, find};
pub use time::{format_time, write_time};
pub use walk::{Damages, Reach};
