//! The lowest part of a query's plan for workers on other machines.

use serde::{Deserialize, Serialize};

/// A fragment of a plan, and the scan below it. It holds no credentials, and no names of sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedQuery {
    /// The fragment, as DataFusion encodes physical plans, in hexadecimal.
    pub plan: String,
    /// The columns of the table: an empty Arrow IPC stream, in hexadecimal.
    pub table: String,
    /// Whether the table has the name of the source in another column, the last.
    pub has_name: bool,
    /// The columns to read.
    pub columns: Vec<usize>,
    /// The number of rows that suffice.
    pub limit: Option<usize>,
}
