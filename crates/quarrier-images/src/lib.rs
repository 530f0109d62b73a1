//! Files that wrap a disk, as sources of the bytes that the disk has.
//!
//! [`ewf`] reads EWF images, as forensic tools write them.

pub mod ewf;
