//! Hostile inputs for quarrier.
//!
//! ```text
//!  bytes ──→ decode ──→ case (patterns, text, setup) ──→ quarrier ──→ findings ┐
//!                                                   └──→ oracle ───→ findings ┴─ the same?
//! ```
//!
//! A target is a function of bytes that panics when quarrier is wrong, so that any fuzzer
//! can call it: the driver of this package on stable Rust, libFuzzer from `libfuzzer/`.
//! Bytes that say nothing useful are passed over.

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
pub mod log;
pub mod messages;
pub mod oracle;
mod packed;
pub mod pattern_file;
pub mod regex;
mod setup;
pub mod sparse;
pub mod statement;
mod text;
pub mod unallocated;
pub mod volumes;
pub mod wire;

/// Something to fuzz.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Checks one input.
    ///
    /// # Panics
    /// When quarrier panics or finds what the oracle does not.
    pub run: fn(&[u8]) -> Verdict,
    /// Slow inputs, worth running once.
    pub once: &'static [&'static [u8]],
    /// Inputs that are worth beginning with, as they are and changed.
    pub seeds: &'static [&'static [u8]],
    /// Words worth inserting.
    pub words: &'static [&'static [u8]],
}

/// What became of an input that did no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// quarrier did what it should.
    Checked,
    /// The input says nothing that could be checked.
    Skipped,
}

/// All targets.
pub const TARGETS: [Target; 35] = [
    pattern_file::TARGET,
    engines::TARGET,
    regex::TARGET,
    sparse::TARGET,
    journal::TARGET,
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
    images::PACKED,
    unallocated::TARGET,
    files::FAT,
    files::EXFAT,
    files::NTFS,
    files::EXT,
    files::ISO,
    carve::TARGET,
    built::JPEG,
    built::PNG,
    built::ZIP,
    built::PDF,
    built::GZIP,
    wire::TARGET,
    columnar::ARROW,
    columnar::PARQUET,
];
