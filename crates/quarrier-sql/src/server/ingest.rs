//! Appends the messages and rows of clients to a stored table.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::FutureExt;
use futures::future::BoxFuture;
use quarrier::DataFolder;
use quarrier::kept::{
    AppendResult, DefinedColumn, Definition, Intake, IntakeOptions, Misfit, PendingAppend,
};
use quarrier_messages::{DIGITS_MAX, Format, Reject};
use quarrier_wire::{Bytes, Failure, Ingest, IngestTarget, Marks, Result, state};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::failure::of_folder;
use super::keyed::shared;
use super::read_only;
use crate::Engine;

/// Maximum number of characters of a row in an error.
const SHOWN_MAX: usize = 200;

/// Messages that are still arriving.
pub(super) struct IngestSession {
    kept: Arc<DataFolder>,
    table: String,
    is_whole: bool,
    intake: Intaking,
    runtime: Handle,
    /// The engine, if the messages have to wait for statements that change rows they read.
    engine: Option<Arc<Engine>>,
}

/// The messages so far, which a thread checks while the next ones arrive.
enum Intaking {
    Idle(Box<Intake>),
    Busy(JoinHandle<(Box<Intake>, Pushed)>),
    /// After an error.
    Failed,
}

type Pushed = quarrier_messages::Result<()>;

impl Intaking {
    /// Waits until the last messages are checked.
    async fn idle(&mut self) -> Result<Box<Intake>> {
        let (intake, done) = match std::mem::replace(self, Intaking::Failed) {
            Intaking::Idle(intake) => return Ok(intake),
            Intaking::Busy(checking) => checking.await.map_err(|_| defect())?,
            Intaking::Failed => return Err(defect()),
        };
        done.map_err(|error| of_folder(&error.into()))?;
        Ok(intake)
    }
}

fn defect() -> Failure {
    Failure::new(state::INTERNAL, "internal error while storing the messages")
}

impl IngestSession {
    /// Begins to receive messages for an existing table.
    pub(super) fn new(
        engine: &Engine,
        table: &str,
        target: &IngestTarget,
        runtime: &Handle,
    ) -> Result<Self> {
        let Some(kept) = engine.kept() else { return Err(read_only(table)) };
        let mut options = IntakeOptions::default();
        if let Some(name) = &target.format {
            options.format = Format::named(name)
                .map_err(|error| Failure::new(state::PARAMETER, error.to_string()))?;
        }
        options.is_whole = target.is_whole;
        options.definition = if target.is_whole { seen(engine, kept, table) } else { None };
        options.publication = target.publisher.clone().zip(target.sequence);
        let (kept, table, runtime) = (Arc::clone(kept), table.to_string(), runtime.clone());
        let intake = kept.intake(&table, options).map_err(|error| of_folder(&error))?;
        let intake = Intaking::Idle(Box::new(intake));
        let is_whole = target.is_whole;
        Ok(IngestSession { kept, table, is_whole, intake, runtime, engine: None })
    }

    /// Makes `finish` wait for statements that change rows they read.
    pub(super) fn gated(mut self, engine: &Arc<Engine>) -> Self {
        self.engine = Some(Arc::clone(engine));
        self
    }

    /// Appends bytes, which may end within a message. Returns while they are checked, once those before are;
    /// so an error may be of bytes before.
    pub(super) async fn pushed(&mut self, bytes: Bytes) -> Result<()> {
        let mut intake = self.intake.idle().await?;
        if intake.is_in_memory(bytes.len()) {
            intake.push(&bytes).map_err(|error| of_folder(&error.into()))?;
            self.intake = Intaking::Idle(intake);
            return Ok(());
        }
        self.intake = Intaking::Busy(self.runtime.spawn_blocking(move || {
            let done = intake.push(&bytes);
            (intake, done)
        }));
        Ok(())
    }

    /// Sends the complete messages. Returns once they are queued for the disk.
    pub(super) async fn sent(mut self) -> Result<PendingAppend> {
        let intake = self.intake.idle().await?;
        let IngestSession { kept, is_whole, runtime, .. } = self;
        // Few messages take less time than a switch to another thread.
        let sent = match kept.take_in_now(intake) {
            Ok(Ok(sent)) => Ok(sent),
            Ok(Err(intake)) => {
                let never = AtomicBool::new(false);
                let take = move || kept.take_in(*intake, &never);
                runtime.spawn_blocking(take).await.map_err(|_| defect())?
            }
            Err(error) => Err(error),
        };
        let sent = sent.map_err(|error| of_folder(&error))?;
        match sent.first() {
            Some(first) if is_whole => Err(unfit(first)),
            _ => Ok(sent),
        }
    }

    async fn finished(self) -> Result<Marks> {
        let _held = match self.engine.clone() {
            Some(engine) => shared(&engine, &self.table).await?,
            None => None,
        };
        let taken = self.sent().await?.durable().await;
        Ok(marks(&taken.map_err(|error| of_folder(&error.into()))?))
    }
}

impl Ingest for IngestSession {
    fn push(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        self.pushed(bytes).boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<Marks>> {
        self.finished().boxed()
    }
}

/// Returns the columns that SQL rows must fit: the declared columns of the table or, without a
/// declaration, its current ones. So a row never changes the type of a column.
fn seen(engine: &Engine, kept: &DataFolder, table: &str) -> Option<Arc<Definition>> {
    if let Some(declared) = kept.definition(table).ok()? {
        return Some(declared);
    }
    let known = engine.messages_of(table)?;
    let fields = known.schema().fields.iter().map(|field| DefinedColumn {
        name: field.name.clone(),
        kind: field.kind,
        digits: DIGITS_MAX,
        is_required: false,
    });
    // Columns of messages may have names that a declaration does not allow.
    Definition::new(fields.collect()).ok().map(Arc::new)
}

fn marks(taken: &AppendResult) -> Marks {
    let messages = taken.marks.end - taken.marks.start;
    let said = |reject: &Reject| format!("line {}: {}", reject.line, reject.fault);
    Marks {
        first: taken.marks.start,
        last: taken.marks.end.saturating_sub(1),
        messages,
        rejected: taken.rejected,
        reason: taken.first.as_ref().map(said),
        is_duplicate: taken.is_duplicate,
        durable: true,
    }
}

/// Returns the error that rejects all rows, from the first invalid one.
fn unfit(first: &Reject) -> Failure {
    let code = match Misfit::of(first.fault.what) {
        Some(Misfit::Kind) => state::TEXT,
        Some(Misfit::Digits) => state::OUT_OF_RANGE,
        Some(Misfit::Missing) => state::MISSING,
        Some(Misfit::Unknown) => state::NO_COLUMN,
        None => state::COPY,
    };
    let shown: String = String::from_utf8_lossy(&first.bytes).chars().take(SHOWN_MAX).collect();
    let said = format!("row {}: {}: {shown}", first.line, first.fault.what);
    Failure::new(code, said).hint("no row was stored")
}
