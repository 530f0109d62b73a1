//! Cuts searches into units that many processes and machines run independently, and joins the results.
//!
//! ```text
//!  sources ─→ cut ─→ units ─┬─ shard 0 ─→ run ─→ objects ┐
//!                           ├─ shard 1 ─→ run ─→ objects ├─→ join ─→ the rows of one plain search
//!                           └─ …         (in a folder)   ┘    └─ runs missing units
//! ```
//!
//! A [`Unit`] is a range of offsets of a source at a version; the findings that start in the range belong to
//! it. Units are independent. Literals and hex patterns are found in each as in the whole. Matches of a
//! regex depend on the end of the preceding match, so each unit is searched as if no match extended into it,
//! and the join corrects, in order, the units where one did.
//!
//! The rows of a unit are one Arrow IPC file, its object. The name of an object comes from the search and
//! the unit, and an object is written whole or not at all. So any number of processes may run any units,
//! even twice; a killed process loses only its current unit; and a unit whose object exists is not run
//! again.
//!
//! ```
//! use std::sync::Arc;
//! use quarrier::{Environment, Machine, OpenOptions, Opener, Search, Sources};
//! use quarrier_search::Pattern;
//! use quarrier_units::{SourceUnits, UnitSearch};
//!
//! # let folder = std::env::temp_dir().join(format!("quarrier-units-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let file = folder.join("image");
//! # std::fs::write(&file, "an invoice, another invoice")?;
//! let (machine, stop) = (Machine::unknown(), Arc::default());
//! let opener = Opener::new(OpenOptions::default(), &Environment::default(), &stop);
//! let sources = Sources::of([file.clone().into_os_string()]);
//! let search = Search::new(vec![Pattern::literal("invoice")?]);
//! let mut offsets = Vec::new();
//! for named in sources.iter() {
//!     let mut source = SourceUnits::open(named, &opener, &(0..u64::MAX), 10)?;
//!     assert_eq!(source.len(), 3);
//!     UnitSearch::new(&search, &machine, &stop).join(&mut source, &mut |row| {
//!         offsets.push(row.offset);
//!         Ok(())
//!     })?;
//! }
//! assert_eq!(offsets, [3, 20]);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;

mod row;

mod unit;

mod shard;

mod source;

mod label;

mod object;

mod results;

mod run;

mod join;

mod carve;

mod model;

pub use carve::{
    CarveProgress, CarveUnits, CarvedRows, CarvedUnit, JudgeUnits, Remarks, StoredStrides,
    TakeCarved, WhatToTry, in_report_order,
};
pub use error::{Error, Result};
pub use join::Joined;
pub use label::Labels;
pub use model::{Limit, Model, Simulated};
pub use object::{Identity, Object};
pub use results::{Incoming, Results};
pub use row::{Row, Take};
pub use run::{Stored, UnitOutcome, UnitSearch};
pub use shard::Shard;
pub use source::{SourceUnits, View};
pub use unit::{UNIT_BYTES, Unit};
