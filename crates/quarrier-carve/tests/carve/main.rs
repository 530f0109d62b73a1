//! Tests of carving.

mod carver;
mod gif;
mod sample;
mod view;
