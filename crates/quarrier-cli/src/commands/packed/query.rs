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
    /// What its units are.
    pub content: PackedContent,
    /// The format of messages, if it is not detected.
    pub format: Option<String>,
    /// The names of the hidden columns of messages.
    pub hidden: Vec<String>,
    /// Whether the table has the name of the source in another column, the last.
    pub has_name: bool,
    /// The columns to read.
    pub columns: Vec<usize>,
    /// The number of rows that suffice.
    pub limit: Option<usize>,
}

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackedContent {
    /// Row groups of a Parquet file.
    RowGroups,
    /// Messages.
    Messages,
    /// The description of messages.
    Description,
}
