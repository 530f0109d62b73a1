//! Limits on one message, and on one field.

/// Limits that keep hostile input from using unbounded memory or time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a message in bytes; longer ones are rejected and listed. 16 MiB.
    pub message_bytes_max: usize,
    /// Maximum nesting of objects and arrays. 128.
    pub depth_max: usize,
    /// Maximum number of columns of a table; values of further fields are dropped and counted.
    /// 4,096.
    pub columns_max: usize,
    /// Maximum number of rejected messages to keep with their bytes; all of them are counted.
    /// 100,000.
    pub rejects_max: usize,
    /// Bytes of each rejected message to keep. 4,096.
    pub reject_bytes_max: usize,
    /// Maximum bytes of Arrow or Parquet to read from a stream, which goes into memory. 1 GiB.
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
