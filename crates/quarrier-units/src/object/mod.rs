//! Objects: the rows of a unit as an Arrow IPC file.
//!
//! The columns are those of `quarrier search --format arrow`. In the footer stand two texts: `quarrier.unit`,
//! what the join needs to know, as JSON; and `quarrier.sum`, how many bytes of the file, with that JSON after
//! them, have which checksum (CRC-64/NVME).

mod meta;
mod read;
mod write;

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef};

pub use meta::Identity;
pub(crate) use meta::Meta;
pub use read::Object;
pub(crate) use write::ObjectWriter;

/// The key of the JSON in the footer.
const META_KEY: &str = "quarrier.unit";

/// The key of the checksum.
const SUM_KEY: &str = "quarrier.sum";

/// The checksum of objects.
const SUM: crc_fast::CrcAlgorithm = crc_fast::CrcAlgorithm::Crc64Nvme;

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
