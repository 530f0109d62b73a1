//! The durable log: crashes, faults and damage on a disk in memory, and real files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![allow(clippy::disallowed_methods, reason = "a test without its threads has failed")]

mod kit;

mod chain;
mod crash;
mod damage;
mod faults;
mod follow;
mod hostile;
mod real;
mod retain;
