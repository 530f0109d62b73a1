//! Hostile inputs for quarrier.
//!
//! ```text
//!  bytes ──→ decode ──→ case (patterns, text, setup) ──→ quarrier ──→ findings ┐
//!                                                   └──→ oracle ───→ findings ┴─ the same?
//! ```
//!
//! A target is a function of bytes that panics when quarrier is wrong, so that any fuzzer can call
//! it: the driver of this package on stable Rust, or libFuzzer from `libfuzzer/`. It skips bytes
//! that do not decode to a case.

pub mod built;
pub mod carve;
mod checksum;
pub mod columnar;
pub mod condition;
pub mod engines;
pub mod ewf;
pub mod files;
pub mod formats;
pub mod images;
pub mod journal;
pub mod known;
pub mod listing;
pub mod log;
pub mod members;
pub mod messages;
pub mod oracle;
mod packed;
pub mod pattern_file;
pub mod regex;
pub mod rules;
mod setup;
pub mod sparse;
pub mod statement;
pub mod strides;
mod text;
pub mod unallocated;
pub mod volumes;
pub mod wire;

/// A function to fuzz.
pub struct Target {
    /// The target's name on the command line.
    pub name: &'static str,
    /// Checks one input.
    ///
    /// # Panics
    /// If quarrier panics, or its result differs from the oracle's.
    pub run: fn(&[u8]) -> Verdict,
    /// Slow inputs, to run once.
    pub once: &'static [&'static [u8]],
    /// Initial inputs, used unchanged and mutated.
    pub seeds: &'static [&'static [u8]],
    /// Words to insert.
    pub words: &'static [&'static [u8]],
}

/// The result of an input that caused no failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// quarrier's result was right.
    Checked,
    /// The input describes nothing to check.
    Skipped,
}

/// All targets.
pub const TARGETS: [Target; 46] = [
    pattern_file::TARGET,
    engines::TARGET,
    regex::TARGET,
    rules::TARGET,
    sparse::TARGET,
    journal::TARGET,
    listing::TARGET,
    log::TARGET,
    condition::TARGET,
    statement::TARGET,
    messages::TARGET,
    formats::TARGET,
    ewf::TARGET,
    images::QCOW2,
    images::VDI,
    images::VHD,
    images::VHDX,
    images::VMDK,
    images::PARALLELS,
    images::DMG,
    images::EWF2,
    images::AFF4,
    images::PACKED,
    images::KEPT,
    unallocated::TARGET,
    files::FAT,
    files::EXFAT,
    files::NTFS,
    files::EXT,
    files::XFS,
    files::HFS,
    files::BTRFS,
    files::APFS,
    files::ISO,
    known::TARGET,
    carve::TARGET,
    strides::TARGET,
    members::TARGET,
    built::JPEG,
    built::PNG,
    built::ZIP,
    built::PDF,
    built::GZIP,
    wire::TARGET,
    columnar::ARROW,
    columnar::PARQUET,
];
