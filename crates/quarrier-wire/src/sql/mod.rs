//! Statements as far as the wires read them: where each ends, and those about the connection, which
//! no engine knows.

mod copy;
mod rewrite;
mod subscribe;
mod time;
mod tokens;
mod utility;
mod written;

pub(crate) use copy::{CopyFormat, CopyOptions};
pub use rewrite::{Said, cast_kinds, lists_of_names, plain, said, with_words};
pub use subscribe::{SubscribeText, subscribe_text};
pub(crate) use time::milliseconds;
pub(crate) use tokens::split;
pub(crate) use utility::{Count, Utility, utility};
pub use written::sql_name;
