//! The worker: runs a fragment over units.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use datafusion::arrow::error::ArrowError;
use datafusion::execution::TaskContext;
use quarrier::source::shown;
use quarrier_cli::{PackedQuery, PackedRequest};
use quarrier_core::name;
use quarrier_sql::{Engine, Options, UnitScan, usable_memory};
use quarrier_units::{Error, Incoming, Results, SourceUnits, Stored, Unit, View};
use tokio::runtime::{Builder, Runtime};

use super::codec;
use super::packed::{self, RowsOut};
use crate::task::RunUnits;

/// The stack of a thread that runs a fragment, whose expressions may be nested.
const STACK_BYTES: usize = 32 << 20;

/// How often a running fragment looks whether it is still needed.
const PERIOD: Duration = Duration::from_millis(50);

/// Runs a fragment over units.
pub(crate) struct UnitQuery {
    job: String,
    plan: Vec<u8>,
    scan: UnitScan,
    engine: Engine,
    context: Arc<TaskContext>,
    runtime: Runtime,
    results: Results,
    stop: Arc<AtomicBool>,
}

impl UnitQuery {
    /// Prepares to run a fragment, and to keep the rows in `results`. This worker runs `cores` units at a time.
    ///
    /// # Errors
    /// A message, if the request is damaged, or the system refuses something.
    pub(crate) fn new(
        packed: &PackedQuery,
        results: Results,
        cores: usize,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let request = PackedRequest::Query(Box::new(packed.clone())).pack()?;
        let (plan, scan) = packed::unpack(packed)?;
        let options = Options {
            workers: 1,
            memory_bytes_max: usable_memory().map(|bytes| bytes / cores.max(1) as u64),
            stop: Arc::clone(&stop),
            environment: quarrier_cli::environment().clone(),
            machine: quarrier_cli::machine().clone(),
            ..Options::default()
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| format!("no threads: {error}"))?;
        let engine = {
            let _inside = runtime.enter();
            Engine::new(options).map_err(|error| error.to_string())?
        };
        let context = engine.context().task_ctx();
        let job = packed::job_of(&request);
        Ok(UnitQuery { job, plan, scan, engine, context, runtime, results, stop })
    }

    /// Writes the rows of a unit.
    async fn run(&self, source: &SourceUnits, unit: &Unit, out: Out) -> Result<Out, Error> {
        let failed = |error: quarrier_sql::Error| Error::Request(error.to_string());
        let written = |error: ArrowError| self.not_written(unit, error);
        let name = name_of(&unit.name);
        let range = messages_of(unit);
        let scan = self.engine.unit((source.named(), &name), &range, &self.scan).await;
        let plan = codec::unpack(&self.plan, scan.map_err(failed)?, &self.context);
        let plan = plan.map_err(|error| Error::Request(error.to_string()))?;
        let mut rows = self.engine.run_plan(plan).await.map_err(failed)?;
        let mut out = RowsOut::new(out, rows.schema()).map_err(written)?;
        loop {
            let next = tokio::select! {
                next = rows.next() => next.map_err(failed)?,
                () = self.stopped() => return Err(stopped(unit)),
            };
            match next {
                Some(batch) => out.write(&batch).map_err(written)?,
                None => return out.finish().map_err(written),
            }
        }
    }

    async fn stopped(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            tokio::time::sleep(PERIOD).await;
        }
    }

    fn not_written(&self, unit: &Unit, error: ArrowError) -> Error {
        let error = match error {
            ArrowError::IoError(_, error) => error,
            other => io::Error::other(other),
        };
        Error::Results { path: self.results.path(&self.job, unit), error }
    }
}

/// The range of the messages of a unit. Those of a whole source may have other offsets than its bytes, such as in a log.
fn messages_of(unit: &Unit) -> Range<u64> {
    match unit.range == (0..unit.version.length) {
        true => 0..u64::MAX,
        false => unit.range.clone(),
    }
}

/// The error of a fragment that is no longer needed.
fn stopped(unit: &Unit) -> Error {
    Error::Search(quarrier::Error::Stopped { name: unit.source.clone(), offset: unit.range.start })
}

/// The name of a source in its rows, as one process writes it.
fn name_of(name: &OsStr) -> String {
    shown(&name::of_path(name))
}

impl RunUnits for UnitQuery {
    fn job(&self) -> &str {
        &self.job
    }

    fn store(&mut self, source: &mut SourceUnits, unit: &Unit) -> Result<Stored, Error> {
        let out = Out(self.results.receive(&self.job, unit)?);
        let out = self.runtime.block_on(self.run(source, unit, out))?;
        source.check_version()?;
        out.0.finish()?;
        Ok(Stored::Now)
    }

    fn view(&self) -> View {
        View::Messages
    }

    fn leaves_failed(&self) -> bool {
        false
    }
}

/// The object of a unit.
struct Out(Incoming);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(|error| match error {
            Error::Results { error, .. } => error,
            other => io::Error::other(other.to_string()),
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
