//! Columns: as parsers write them (`raw`), and packed for scans (`segment`).
//!
//! ```text
//!  RawColumn ─→ pack ─→ SegmentColumn
//!                        ├ valid   one bit per row, if there are NULLs
//!                        ├ data    Packed: base + narrow lanes │ Float │ Strings
//!                        └ zones   least and greatest of the segment and of each block
//! ```

pub mod raw;

mod strings;
pub use strings::{Dictionary, STRINGS_BYTES_MAX, Strings};

mod zone;
pub(crate) use zone::bytes_key;
pub use zone::{Zone, float_key, text_key};

mod packed;
pub use packed::{Lanes, Packed};

mod segment;
pub(crate) use segment::scaled;
pub use segment::{Data, SegmentColumn};

mod pack;

mod stored;
pub(crate) use stored::{Input, Output, wrong};
