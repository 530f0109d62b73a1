//! Units against one plain search of the same bytes.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

mod lab;

mod hostile;
mod joined;
mod objects;
mod seams;
mod versions;
