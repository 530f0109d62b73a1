//! Tables that other processes read, unit by unit.
//!
//! ```text
//!  client: Parquet files ────────────────→ SpreadTable ─→ SpreadExec ←── plan::spread puts filters,
//!          messages ─→ describe: a job that        │         │      projections and partial groups
//!                      finds their columns ────────┘         │      into its fragment
//!          rows, in the order of the units ←──┤ Spread: fragment, units ──→ workers
//!  worker: unit ─→ Engine::unit ─→ scan of the unit ─→ fragment over it ─→ Engine::run_plan ─→ rows
//! ```
//!
//! A fragment is the lowest part of a plan, over a [`UnitExec`] in place of the scan. It returns the same rows
//! over a whole table as over each of its units in turn, or partial groups, which are merged afterwards.

mod describe;
mod exec;
mod table;
mod unit;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use quarrier::source::Version;
use quarrier::{Named, Opener, Sources};
use quarrier_cli::{PackedCarve, SearchPart, TakeCarvedFiles, TakeFindings};

pub(super) use describe::{Described, MessagesFile, Shared, describe, description_batch, shared};
pub(crate) use exec::SpreadExec;
pub use exec::UnitExec;
pub(super) use table::{KnownRows, SpreadFile, SpreadTable};
pub(crate) use unit::within;
pub use unit::{UnitContent, UnitMessages, UnitScan};

/// Runs fragments of plans on other processes.
pub trait Spread: fmt::Debug + Send + Sync {
    /// The fragment as bytes. `None` if another process would not get exactly this fragment from them.
    fn pack(&self, fragment: &Arc<dyn ExecutionPlan>) -> Option<Vec<u8>>;

    /// Runs a fragment over all units of its sources, and passes on the rows in the order of the units. Blocks.
    ///
    /// # Errors
    /// A message for the user.
    fn run(
        &self,
        fragment: &SpreadFragment,
        stop: &Arc<AtomicBool>,
        take: &mut TakeRows<'_>,
    ) -> Result<(), String>;

    /// Searches sources, and passes on the findings in order. Blocks.
    ///
    /// # Errors
    /// A message for the user.
    fn search(
        &self,
        what: SearchPart<'_>,
        sources: (&Sources, &Opener),
        stop: &AtomicBool,
        take: &mut dyn TakeFindings,
    ) -> Result<(), String>;

    /// Carves sources, and passes on the files, in order. Blocks.
    ///
    /// # Errors
    /// A message for the user.
    fn carve(
        &self,
        what: &PackedCarve,
        sources: (&Sources, &Opener),
        stop: &AtomicBool,
        take: &mut dyn TakeCarvedFiles,
    ) -> Result<(), String>;
}

/// Takes rows; `Break` if no more are needed.
pub type TakeRows<'t> = dyn FnMut(RecordBatch) -> ControlFlow<()> + Send + 't;

/// A fragment, and what it is run over.
#[derive(Debug, Clone)]
pub struct SpreadFragment {
    /// The sources, in order.
    pub sources: Arc<[SpreadSource]>,
    /// The fragment, from [`Spread::pack`].
    pub packed: Arc<[u8]>,
    /// The scan below it.
    pub scan: UnitScan,
    /// The columns of its rows.
    pub rows: SchemaRef,
    /// Whether a limit may need the rows of the first units only.
    pub is_limited: bool,
}

/// A source of units.
#[derive(Debug, Clone)]
pub struct SpreadSource {
    /// Its name.
    pub named: Named,
    /// Whether it is cut into units; else it is one.
    pub is_cut: bool,
    /// The version that it must still have.
    pub version: Option<Version>,
}

/// How an engine spreads its tables.
#[derive(Debug, Clone)]
pub struct Spreading {
    /// Where fragments run.
    pub on: Arc<dyn Spread>,
    /// Whether a statement with a table that cannot be spread is refused; otherwise, this process reads it.
    pub is_required: bool,
}

impl Spreading {
    /// The error, or the notice, about something that cannot be spread.
    pub(crate) fn not_spread(&self, what: &str) -> Result<String, String> {
        match self.is_required {
            true => Err(format!("{what} is not spread over a cluster; run it without --cluster")),
            false => Ok(format!("{what} is not spread over a cluster; this process reads it")),
        }
    }
}
