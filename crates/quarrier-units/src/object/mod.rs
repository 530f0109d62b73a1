//! Objects: the rows of a unit as an Arrow IPC file.
//!
//! The columns are those of `quarrier search --format arrow`. The footer holds two strings: `quarrier.unit`,
//! the data for the join, as JSON; and `quarrier.sum`, the checksum (CRC-64/NVME) of the first bytes of the
//! file followed by that JSON, and the number of these bytes.

mod meta;
mod read;
pub(crate) mod sealed;
mod write;

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef};

pub use meta::Identity;
pub(crate) use meta::Meta;
pub use read::Object;
pub(crate) use write::ObjectWriter;

/// The columns.
static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("source", DataType::Utf8, true),
        Field::new("offset", DataType::UInt64, false),
        Field::new("length", DataType::UInt64, false),
        Field::new("pattern", DataType::Utf8, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("match", DataType::Binary, true),
    ]))
});
