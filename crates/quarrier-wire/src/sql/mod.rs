//! Parses statements as far as the protocols require: finds where each ends, and recognizes those
//! about the connection, which no engine handles.

mod copy;
mod rewrite;
mod subscribe;
mod time;
mod tokens;
mod utility;
mod written;

pub(crate) use copy::{CopyFormat, CopyOptions};
pub use rewrite::{StatementNames, cast_kinds, lists_of_names, plain, statement_names, with_words};
pub use subscribe::{MatchingText, SubscribeText, subscribe_text};
pub(crate) use time::milliseconds;
pub(crate) use tokens::split;
pub(crate) use utility::{Count, Utility, utility};
pub use written::sql_name;
