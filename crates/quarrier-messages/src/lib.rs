//! Loads messages of a log (JSON lines, FIX, CSV …) into columns for queries.
//!
//! ```text
//!  bytes ─→ frame ─→ format/<name> ─→ column::raw ─→ column (packed segments) ─→ Table
//!           records   fields, typed    as parsed       narrow, with min and max
//! ```
//!
//! A message that does not parse is listed with its line, offset and reason, and does not stop the
//! load.

mod exact;
pub use exact::{DIGITS_MAX, Wide};

mod kind;
pub use kind::Kind;

mod value;
pub use value::Value;

mod schema;
pub use schema::{Field, Schema};

mod hidden;
pub use hidden::{
    HiddenColumns, LINE_COLUMN, LIST_ENDS_COLUMN, MESSAGE_COLUMN, OFFSET_COLUMN, list_end_mark,
    push_list_end,
};

mod error;
mod fault;
mod limits;
mod packing;
pub use error::{Error, Result};
pub use fault::Fault;
pub use limits::Limits;
pub use packing::Packing;

mod arch;

pub mod frame;

pub mod format;

pub mod build;

mod load;
pub use load::{
    ArrowFile, ColumnReader, Columns, Format, FormatReader, Load, Loaded, Opening, Reject,
    decompressed, decompressed_stream, guarded, is_panic_caught, open_arrow_file,
};

pub mod column;

mod part;
pub use part::{Part, PartField, PartSegment};

pub mod log;

pub mod kept;

mod table;
pub use table::{Batches, Column, ColumnDescription, Description, Places, Table, Views};
