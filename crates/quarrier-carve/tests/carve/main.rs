//! Tests of carving.

mod carver;
mod embedded;
mod film;
mod gif;
mod gz;
mod jpg;
mod ole;
mod own;
mod pdf;
mod pictures;
mod png;
mod sample;
mod sound;
mod sqlite;
mod view;
mod zip;
