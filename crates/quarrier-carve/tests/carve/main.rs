//! Tests of carving.

mod binary;
mod carver;
mod embedded;
mod film;
mod gif;
mod gz;
mod hostile;
mod jpg;
mod ole;
mod own;
mod packed;
mod pdf;
mod pictures;
mod png;
mod rar;
mod sample;
mod sound;
mod sqlite;
mod tar;
mod view;
mod zip;
