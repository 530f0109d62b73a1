//! Tests of carving.

mod carver;
mod gif;
mod pdf;
mod sample;
mod sound;
mod view;
