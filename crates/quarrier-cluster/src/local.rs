//! `quarrier cluster local`: a scheduler, workers and one command, as processes that end together; without a
//! command, they end with the process that started them.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ballista_core::serde::protobuf::ExecutorStoppedParams;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use quarrier_cli::{CLUSTER_VARIABLE, StandardOutput, complain};
use rustix::process::{Pid, Signal};

/// The variable by which the command learns of the process that it ends with.
const PARENT_VARIABLE: &str = "QUARRIER_CLUSTER_PARENT";

/// A worker that ends earlier than this after its start counts as one that cannot start.
const START: Duration = Duration::from_secs(2);

/// How many workers in a row may end at their start.
const FALSE_STARTS_MAX: u32 = 5;

/// The time for the command to end after a signal.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends this process with the one that the environment names.
pub(crate) fn end_with_parent() {
    let parent = std::env::var(PARENT_VARIABLE).ok().and_then(|pid| pid.parse().ok());
    if let Some(parent) = parent
        && end_with(parent).is_err()
    {
        std::process::exit(i32::from(crate::FAILED));
    }
}

/// Ends this process when its parent ends, which must be `parent`.
///
/// # Errors
/// If the parent has ended already.
fn end_with(parent: u32) -> Result<(), String> {
    let set = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    set.map_err(|error| format!("the system cannot end this process with its parent: {error}"))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    match now.and_then(|pid| u32::try_from(pid).ok()) == Some(parent) {
        true => Ok(()),
        false => Err("the process that started this one has ended".to_string()),
    }
}

/// Runs a command on `workers` processes, and returns its exit code. Without a command, waits for a signal, or
/// for the end of the process that started this one.
///
/// # Errors
/// A message for the user.
pub(crate) fn run(workers: usize, command: &[OsString]) -> Result<u8, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    if let Some(first) = command.first()
        && first != "search"
        && first != "carve"
        && first != "query"
    {
        return Err(format!(
            "a cluster does not run '{}'; it runs search, carve and query",
            first.display()
        ));
    }
    let folder = tempfile::Builder::new()
        .prefix("quarrier-cluster-")
        .tempdir()
        .map_err(|error| format!("no folder for rows: {error}"))?;
    let stop = quarrier_cli::watch();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no threads: {error}"))?;
    let parent = rustix::process::getppid();
    let mut cluster = Local::start(program, folder.path(), workers)?;
    if command.is_empty() {
        let mut out = StandardOutput::new();
        let printed = writeln!(out, "ready: scheduler at {}", cluster.at);
        printed.and_then(|()| out.flush()).map_err(|error| format!("standard output: {error}"))?;
        while !stop.load(Ordering::Relaxed) && rustix::process::getppid() == parent {
            cluster.tend(&runtime)?;
            std::thread::sleep(Duration::from_millis(50));
        }
        return Ok(0);
    }
    let mut child = cluster.command(command)?;
    let mut signalled: Option<Instant> = None;
    let status = loop {
        if let Some(status) = child.0.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            let since = signalled.get_or_insert_with(|| {
                child.signal(Signal::TERM);
                Instant::now()
            });
            if since.elapsed() > PATIENCE {
                child.signal(Signal::KILL);
            }
        } else {
            cluster.tend(&runtime)?;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    drop(cluster);
    drop(folder);
    Ok(code_of(status))
}

fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::FAILED)
}

/// A child process, which is ended when dropped.
struct Process(Child);

impl Process {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // A process that has ended needs no signal.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes of the cluster.
struct Local {
    program: PathBuf,
    folder: PathBuf,
    at: String,
    scheduler: Process,
    workers: Vec<Worker>,
    /// The number of workers ever started.
    started: usize,
    false_starts: u32,
}

struct Worker {
    process: Process,
    name: String,
    since: Instant,
}

impl Local {
    fn start(program: PathBuf, folder: &Path, workers: usize) -> Result<Self, String> {
        let mut scheduler = Command::new(&program);
        scheduler.args(["scheduler", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut scheduler = spawn(scheduler)?;
        let at = address(&mut scheduler)?;
        let folder = folder.to_path_buf();
        let mut local = Local {
            program,
            folder,
            at,
            scheduler,
            workers: Vec::new(),
            started: 0,
            false_starts: 0,
        };
        for _ in 0..workers {
            let worker = local.worker(workers)?;
            local.workers.push(worker);
        }
        Ok(local)
    }

    fn worker(&mut self, workers: usize) -> Result<Worker, String> {
        self.started += 1;
        let name = format!("local-{}", self.started);
        let cores = std::thread::available_parallelism().map_or(1, usize::from) / workers;
        let mut command = Command::new(&self.program);
        command
            .args(["worker", &self.at, "--cores", &cores.max(1).to_string()])
            .args(["--name", &name])
            .arg("--work")
            .arg(&self.folder)
            .stdout(Stdio::null());
        Ok(Worker { process: spawn(command)?, name, since: Instant::now() })
    }

    fn command(&self, arguments: &[OsString]) -> Result<Process, String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env(CLUSTER_VARIABLE, &self.at);
        spawn(command)
    }

    /// Replaces workers that ended, and tells the scheduler of them.
    fn tend(&mut self, runtime: &tokio::runtime::Runtime) -> Result<(), String> {
        if let Ok(Some(status)) = self.scheduler.0.try_wait() {
            return Err(format!("the scheduler of the cluster ended: {status}"));
        }
        let count = self.workers.len();
        for at in 0..count {
            let worker = &mut self.workers[at];
            let Ok(Some(status)) = worker.process.0.try_wait() else { continue };
            let name = worker.name.clone();
            self.false_starts = match worker.since.elapsed() < START {
                true => self.false_starts + 1,
                false => 0,
            };
            if self.false_starts == FALSE_STARTS_MAX {
                return Err(format!("the workers of the cluster cannot start: {status}"));
            }
            complain(&format!(
                "worker {name} of the cluster ended ({status}); another one replaces it"
            ));
            // If this is lost, the scheduler notices by itself within seconds.
            let _ = runtime.block_on(tell_of_end(&self.at, name));
            self.workers[at] = self.worker(count)?;
        }
        Ok(())
    }
}

fn spawn(mut command: Command) -> Result<Process, String> {
    command.stdin(Stdio::inherit()).env(PARENT_VARIABLE, std::process::id().to_string());
    let spawned = command.spawn();
    spawned.map(Process).map_err(|error| format!("a process of the cluster cannot start: {error}"))
}

/// The address that a scheduler prints.
fn address(scheduler: &mut Process) -> Result<String, String> {
    let mut line = String::new();
    if let Some(out) = scheduler.0.stdout.take() {
        // An unreadable line is as good as none.
        let _ = BufReader::new(out).read_line(&mut line);
    }
    let at = line.trim_end().strip_prefix("ready: scheduler at ").map(str::to_string);
    at.ok_or_else(|| "the scheduler of the cluster did not start".to_string())
}

async fn tell_of_end(at: &str, worker: String) -> Result<(), String> {
    let told = async {
        let mut client = SchedulerGrpcClient::connect(format!("http://{at}"))
            .await
            .map_err(|error| error.to_string())?;
        let stopped =
            ExecutorStoppedParams { executor_id: worker, reason: "its process ended".to_string() };
        client.executor_stopped(stopped).await.map_err(|error| error.to_string())
    };
    match tokio::time::timeout(Duration::from_secs(2), told).await {
        Ok(told) => told.map(|_| ()),
        Err(_) => Err("the scheduler does not answer".to_string()),
    }
}
