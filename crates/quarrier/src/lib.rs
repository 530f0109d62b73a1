//! quarrier searches, carves and queries raw data in place (files, disk images, devices, remote
//! objects, message logs) at the speed of the machine, and reports how close it came.
//!
//! ```text
//!  name ──→ Sources ──→ Opener ──→ Opened ─┬──→ Search::start ──→ Running::search ──→ findings
//!                                          ├──→ Carve::start  ──→ Carving::run    ──→ files
//!  Environment ──→ Machine (profile) ──────┤
//!                       ▲                  ├──→ Files::run    ──→ names, times, extents
//!                       │                  ├──→ Filter::run ──→ messages, rows of columns
//!                       │                  └──→ Tables::detect, load ──→ a table
//!                     Gauge                                 │
//!                                               Account: load of stages, share of the ceiling
//! ```
//!
//! The command line, SQL and Python all call this crate. They parse their input, make a request, and
//! show the result; this crate defines the meaning of a request. The engines below can be used without
//! it: [`quarrier_search`], [`quarrier_carve`] and [`quarrier_messages`] work on any bytes.
//!
//! | request | gives |
//! |---|---|
//! | [`Search`] | every occurrence of patterns |
//! | [`RuleSearch`](rules::RuleSearch) | the scopes in which YARA rules hold |
//! | [`Carve`] | files in an image, deleted ones too |
//! | [`Files`] | the entries of the file systems in an image: names, times, extents, bytes |
//! | [`Filter`] | messages for which a condition is true, without loading the sources first |
//! | [`Tables`] | messages as columns in memory, for any number of queries |
//! | [`KeptLoad`] | messages in the durable log of a data folder, as tables of a [`DataFolder`] |
//! | [`Gauge`] | the machine's ceilings, and the profile that the others use for planning |
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicBool;
//! use quarrier::{Environment, Machine, Opener, OpenOptions, Search, Sources};
//! use quarrier_core::pipeline::Chunk;
//! use quarrier_search::{Finding, Pattern};
//!
//! # let file = std::env::temp_dir().join(format!("quarrier-front-door-{}", std::process::id()));
//! # std::fs::write(&file, "an invoice")?;
//! # let name = file.clone().into_os_string();
//! let environment = Environment::of_process();
//! let machine = Machine::of(&environment);
//! let stop = Arc::new(AtomicBool::new(false));
//! let opener = Opener::new(OpenOptions::default(), &environment, &stop);
//! let search = Search::new(vec![Pattern::literal("invoice")?]);
//! let sources = Sources::of([name]);
//! for opened in sources.open(&opener) {
//!     let mut opened = opened?;
//!     let mut running = search.start(&machine, Some(&opened.place()), &stop)?;
//!     let mut print = |_: &Chunk<'_>, findings: &[Finding]| {
//!         findings.iter().for_each(|finding| println!("{}", finding.offset));
//!         ControlFlow::Continue(())
//!     };
//!     let searched = running.search(opened.place(), &stop, &mut print)?;
//!     println!("{} bytes in {:?}", searched.run.bytes, searched.run.elapsed);
//! }
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod account;
pub mod carve;
pub mod case;
pub mod files;
pub mod filter;
pub mod gauge;
pub mod kept;
pub mod mount;
pub mod parameters;
pub mod rules;
pub mod search;
pub mod source;
pub mod tables;

mod environment;
mod error;
mod instructions;
mod machine;
mod remote_cost;

pub use carve::Carve;
pub use environment::Environment;
pub use error::{Error, Result};
pub use files::{Files, LostFolders};
pub use filter::Filter;
pub use gauge::Gauge;
pub use instructions::{
    INSTRUCTION_BYTES_MAX, NAMES_BYTES_MAX, read_bounded, read_instructions, read_names,
};
pub use kept::{DataFolder, KeptLoad};
pub use machine::{Ceiling, Machine};
pub use quarrier_remote::Header;
pub use search::Search;
pub use source::{Named, OpenOptions, Opened, Opener, Place, Sources};
pub use tables::Tables;
