//! How much one message, or one field, may ask for.

/// Bounds that keep hostile input from using memory or time without end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The longest message, in bytes; a longer one is listed and left out. 16 MiB.
    pub message_bytes_max: usize,
    /// Objects and arrays within each other. 128.
    pub depth_max: usize,
    /// Columns of a table; values of further fields are left out and counted. 4,096.
    pub columns_max: usize,
    /// Messages left out that are kept with their bytes; all of them are counted. 100,000.
    pub rejects_max: usize,
    /// Bytes kept of each of them. 4,096.
    pub reject_bytes_max: usize,
    /// Bytes of Arrow or Parquet that are read from a stream, and so into memory. 1 GiB.
    pub columnar_stream_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            message_bytes_max: 16 << 20,
            depth_max: 128,
            columns_max: 4_096,
            rejects_max: 100_000,
            reject_bytes_max: 4_096,
            columnar_stream_bytes_max: 1 << 30,
        }
    }
}
