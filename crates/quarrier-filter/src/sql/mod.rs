//! Text into bound expressions.
/// The deepest that an expression nests.
pub const DEPTH_MAX: usize = 200;
