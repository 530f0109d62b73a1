//! Sparse files, stores of them, and plans of requests.

mod ahead;
mod bulk;
mod bytes;
mod cost;
mod file;
mod held;
mod room;
mod store;

pub use ahead::*;
pub use bulk::*;
pub use bytes::*;
pub use cost::*;
pub use file::*;
pub use held::SparseFile;
pub use store::*;
