//! Runs the units of a task on a worker, and answers for each of them.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use datafusion::arrow::array::{BinaryArray, RecordBatch, UInt8Array, UInt64Array};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{Stream, StreamExt, TryStreamExt};
use quarrier::{OpenOptions, Opener};
use quarrier_cli::PackedRequest;
use quarrier_core::sync::lock;
use quarrier_units::Results;
use tokio::sync::mpsc;

use crate::http::{self, Peer};
use crate::runner::{CannotStart, Pool, Ran, Runner, run_unit};
use crate::sheet::{Sheet, Sheets, Slice, slices_of};
use crate::task::{Payload, Task, answer_schema};

/// The states of answers: a part of an object, the first, the last, both; stored; left to the client;
/// refused.
pub(crate) const PART: u8 = 0;
pub(crate) const FIRST: u8 = 1;
pub(crate) const LAST: u8 = 2;
pub(crate) const STORED: u8 = 4;
pub(crate) const LEFT: u8 = 5;
pub(crate) const REFUSED: u8 = 6;

/// Bytes of an object in one answer.
const PART_BYTES: usize = 1 << 20;

/// The number of workers that may end while they run a unit.
const LOSSES_MAX: u32 = 3;

/// This worker.
pub(crate) struct Here {
    /// The scheduler.
    pub(crate) scheduler: Peer,
    /// The folder for objects until they are fetched.
    pub(crate) work: PathBuf,
    /// The name of this worker in errors.
    pub(crate) name: String,
    /// The number of units that run at a time.
    pub(crate) cores: usize,
    pub(crate) pool: Mutex<Pool>,
    pub(crate) sheets: Mutex<Sheets>,
}

/// Set when the worker starts.
pub(crate) static HERE: OnceLock<Here> = OnceLock::new();

/// Sets a flag when dropped: nobody waits for the answers.
struct Stopping(Arc<AtomicBool>);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the units of a stream of rows.
///
/// # Errors
/// If this process is no worker, or of another version than the client.
pub(crate) fn execute(
    payload: Arc<Payload>,
    input: SendableRecordBatchStream,
) -> Result<SendableRecordBatchStream> {
    let here = HERE.get().ok_or_else(|| fatal("only a worker runs units"))?;
    let own = quarrier_cli::build();
    if payload.version != own {
        return Err(fatal(format!(
            "worker {} is version {own}, and the client is {}; use one version",
            here.name, payload.version
        )));
    }
    let (sender, receiver) = mpsc::channel::<Result<RecordBatch>>(2);
    let gone = Arc::new(AtomicBool::new(false));
    let stopping = Stopping(Arc::clone(&gone));
    let rows = futures::stream::once(async move {
        let batches: Vec<RecordBatch> = input.try_collect().await?;
        let handle = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || {
            let answering = Answering { here, payload: &payload, handle, sender, gone };
            if let Err(error) = answering.all(&batches) {
                // Nobody waits for the error if the stream is gone.
                let _ = answering.sender.blocking_send(Err(error));
            }
        });
        Ok::<_, DataFusionError>(Answers { receiver, _stopping: stopping })
    })
    .try_flatten();
    Ok(Box::pin(RecordBatchStreamAdapter::new(answer_schema(), rows.boxed())))
}

/// The answers of a task.
struct Answers {
    receiver: mpsc::Receiver<Result<RecordBatch>>,
    _stopping: Stopping,
}

impl Stream for Answers {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().receiver.poll_recv(context)
    }
}

/// A message about a unit that can be found in the errors of Ballista, which add to it.
fn failure(reason: &str) -> String {
    let reason = reason.replace(['\n', '\r'], " ");
    format!("{FAILURE}{}{FAILURE}", quarrier_core::hex::encode(reason.as_bytes()))
}

/// The message about a unit in an error, if it has one.
pub(crate) fn failure_in(error: &str) -> Option<String> {
    let hex = error.split(FAILURE).nth(1)?;
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(digits).collect();
    String::from_utf8(bytes?).ok()
}

/// Around the message about a unit.
const FAILURE: &str = "|unit|";

/// Ends the job.
fn fatal(message: impl Into<String>) -> DataFusionError {
    DataFusionError::Execution(message.into())
}

/// Lets another worker try.
fn passing(message: impl Into<String>) -> DataFusionError {
    DataFusionError::IoError(std::io::Error::other(message.into()))
}

struct Answering<'a> {
    here: &'static Here,
    payload: &'a Payload,
    handle: tokio::runtime::Handle,
    sender: mpsc::Sender<Result<RecordBatch>>,
    gone: Arc<AtomicBool>,
}

impl Answering<'_> {
    fn all(&self, batches: &[RecordBatch]) -> Result<()> {
        for batch in batches {
            for slice in slices_of(batch)? {
                for (index, task) in self.sheet(&slice)?.tasks(&slice)? {
                    self.one(index, task)?;
                }
            }
        }
        Ok(())
    }

    /// The sheet of a slice, from the scheduler if no earlier task got it.
    fn sheet(&self, slice: &Slice) -> Result<Arc<Sheet>> {
        if let Some(sheet) = lock(&self.here.sheets).get(&slice.sheet) {
            return Ok(sheet);
        }
        let path = format!("/quarrier/bodies/{}", slice.sheet);
        let bytes = self.handle.block_on(http::get_large(&self.here.scheduler, &path));
        let bytes = bytes.map_err(|fault| passing(format!("the scheduler {fault}")))?;
        let sheet = Arc::new(Sheet::read(&bytes)?);
        lock(&self.here.sheets).keep(Arc::clone(&slice.sheet), Arc::clone(&sheet));
        Ok(sheet)
    }

    fn one(&self, index: u64, task: Task) -> Result<()> {
        let path = |verb: &str| format!("/quarrier/{verb}/{}/{index}", self.payload.run);
        let at = &self.here.scheduler;
        let begun = self.handle.block_on(http::post(at, &path("begun")));
        let begun = begun.map_err(|fault| passing(format!("the scheduler {fault}")))?;
        let losses: u32 = String::from_utf8_lossy(&begun).parse().unwrap_or(0);
        if losses >= LOSSES_MAX {
            return self.send(index, REFUSED, &[]);
        }
        match self.run(task)? {
            Ran::Stored => self.send(index, STORED, &[])?,
            Ran::Left => self.send(index, LEFT, &[])?,
            Ran::Failed(reason) => return Err(fatal(failure(&reason))),
            Ran::File(path) => {
                let sent = self.send_file(index, &path);
                // A file that stays takes space until the worker ends.
                let _ = std::fs::remove_file(&path);
                sent?;
            }
        }
        // If this is lost, the unit only looks as if its worker had ended.
        let _ = self.handle.block_on(http::post(at, &path("ended")));
        Ok(())
    }

    fn send(&self, index: u64, state: u8, bytes: &[u8]) -> Result<()> {
        let batch = RecordBatch::try_new(
            answer_schema(),
            vec![
                Arc::new(UInt64Array::from(vec![index])),
                Arc::new(UInt8Array::from(vec![state])),
                Arc::new(BinaryArray::from(vec![bytes])),
            ],
        )?;
        self.sender.blocking_send(Ok(batch)).map_err(|_| fatal("the task was cancelled"))
    }

    fn send_file(&self, index: u64, path: &std::path::Path) -> Result<()> {
        let failed = |error: std::io::Error| passing(format!("{}: {error}", path.display()));
        let mut file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let (mut buffer, mut sent) = (vec![0; PART_BYTES], 0);
        loop {
            let wanted = usize::try_from(length - sent).unwrap_or(PART_BYTES).min(PART_BYTES);
            file.read_exact(&mut buffer[..wanted]).map_err(failed)?;
            let first = if sent == 0 { FIRST } else { PART };
            sent += wanted as u64;
            let last = if sent == length { LAST } else { PART };
            self.send(index, first | last, &buffer[..wanted])?;
            if sent == length {
                return Ok(());
            }
        }
    }

    /// Runs a unit on a thread that has compiled the request.
    fn run(&self, task: Task) -> Result<Ran> {
        let key = format!("{:?}", (&self.payload.job, &self.payload.request, &self.payload.to));
        let taken = lock(&self.here.pool).take(&key);
        let runner = match taken {
            Some(runner) => runner,
            None => self.start()?,
        };
        runner.stop.store(false, Ordering::Relaxed);
        let (reply, answer) = sync_channel(1);
        let (job, own) = (self.payload.job.clone(), self.own_results());
        let is_shared = self.payload.to.is_some();
        let ended = || fatal(format!("worker {} has a defect: a thread ended", self.here.name));
        runner
            .work
            .send(Box::new(move |units, opener| {
                // Nobody waits if the task was cancelled.
                let _ = reply.send(run_unit((units, opener), &task, &job, (&own, is_shared)));
            }))
            .map_err(|_| ended())?;
        let ran = self.wait(&answer, &runner.stop).ok_or_else(ended)?;
        lock(&self.here.pool).give(&key, runner);
        ran.map_err(|reason| passing(format!("worker {}: {reason}", self.here.name)))
    }

    /// Waits for an answer, and stops the run if nobody wants it.
    fn wait(
        &self,
        answer: &Receiver<std::result::Result<Ran, String>>,
        stop: &AtomicBool,
    ) -> Option<std::result::Result<Ran, String>> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        loop {
            match answer.recv_timeout(std::time::Duration::from_millis(100)) {
                Ok(ran) => return Some(ran),
                Err(Disconnected) => return None,
                Err(Timeout) if self.gone.load(Ordering::Relaxed) => {
                    stop.store(true, Ordering::Relaxed);
                }
                Err(Timeout) => {}
            }
        }
    }

    /// The place for objects that are sent to the client.
    fn own_results(&self) -> Results {
        Results::temporary(self.here.work.join("objects"))
    }

    fn results(&self, opener: &Opener) -> Result<Results> {
        match self.payload.to.clone() {
            None => Ok(self.own_results()),
            Some(to) => Results::at(&OsString::from_vec(to), opener)
                .map_err(|error| fatal(failure(&error.to_string()))),
        }
    }

    /// Starts a thread, which compiles the request with its first unit.
    fn start(&self) -> Result<Runner> {
        let path = format!("/quarrier/bodies/{}", self.payload.request);
        let request = self.handle.block_on(http::get_large(&self.here.scheduler, &path));
        let request = request.map_err(|fault| passing(format!("the scheduler {fault}")))?;
        let request = PackedRequest::unpack(&request).map_err(fatal)?;
        let stop = Arc::new(AtomicBool::new(false));
        // Sources and objects in buckets are read as long as their opener exists.
        let opener = Opener::new(OpenOptions::default(), quarrier_cli::environment(), &stop);
        let results = self.results(&opener)?;
        let started = Runner::start(request, self.here.cores, (opener, results), stop);
        started.map_err(|error| match error {
            CannotStart::Request(reason) => fatal(failure(&reason)),
            CannotStart::Thread(reason) => passing(reason),
        })
    }
}
