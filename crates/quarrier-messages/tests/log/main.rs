//! The durable log: crashes, faults and damage on a disk in memory, and real files.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

mod kit;

mod chain;
mod crash;
mod damage;
mod faults;
mod follow;
mod hostile;
mod real;
mod retain;
