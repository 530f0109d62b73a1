//! Tests of carving.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]

mod binary;
mod carver;
mod decoys;
mod embedded;
mod film;
mod floods;
mod gif;
mod gz;
mod hostile;
mod html;
mod jpg;
mod mail;
mod members;
mod midway;
mod ole;
mod own;
mod packed;
mod pdf;
mod pictures;
mod pixels;
mod plist;
mod png;
mod rar;
mod rtf;
mod sample;
mod seven_zip;
mod sound;
mod sqlite;
mod tar;
mod view;
mod webp;
mod windows;
mod xml;
mod xz;
mod zip;
