//! Units against one plain search of the same bytes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]

mod lab;

mod hostile;
mod joined;
mod objects;
mod seams;
mod versions;
