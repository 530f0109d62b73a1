//! A worker: Ballista's executor, which runs our plans.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use quarrier_cli::{StandardOutput, complain};
use tokio::signal::unix::{SignalKind, signal};

use crate::http::{self, Peer, address_of};
use crate::plan::Codec;
use crate::run::{HERE, Here};
use crate::scheduler::{HEARTBEAT_SECONDS, MESSAGE_BYTES_MAX};
use crate::tls::Tls;

/// Options of a worker.
pub(crate) struct Options {
    pub(crate) scheduler: String,
    pub(crate) listen: String,
    pub(crate) cores: usize,
    pub(crate) work: Option<PathBuf>,
    pub(crate) tls: Option<PathBuf>,
    pub(crate) name: Option<String>,
}

/// The time for which a worker waits for its scheduler.
const SCHEDULER_SECONDS: u64 = 30;

/// The time before a worker starts again.
const RESTART: Duration = Duration::from_secs(1);

/// Runs the worker until the process is ended, or the scheduler is gone.
///
/// # Errors
/// A message for the user.
pub(crate) fn run(options: Options) -> Result<(), String> {
    let address = address_of(&format!("{}:0", options.listen))?;
    if !address.ip().is_loopback() && options.tls.is_none() {
        return Err(format!(
            "{}: other machines could reach the worker there, and it would run anything for anybody; \
             name a folder of certificates with --tls, or listen at 127.0.0.1",
            options.listen
        ));
    }
    let mut folder = tempfile::Builder::new();
    let folder = folder.prefix("quarrier-worker-");
    let folder = match &options.work {
        Some(parent) => {
            std::fs::create_dir_all(parent)
                .map_err(|error| format!("{}: {error}", parent.display()))?;
            folder.tempdir_in(parent)
        }
        None => folder.tempdir(),
    };
    let folder = folder.map_err(|error| format!("no folder for rows: {error}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no threads: {error}"))?;
    let work = folder.path().to_path_buf();
    let signalled = Arc::new(AtomicBool::new(false));
    runtime.spawn(note_signals(Arc::clone(&signalled)));
    let ran = runtime.block_on(serve(&options, address.ip().to_string(), work));
    runtime.shutdown_background();
    drop(folder);
    match ran {
        Ok(()) if !signalled.load(Ordering::Relaxed) => Err(start_again()),
        ran => ran,
    }
}

/// Sets the flag when the user or the system ends this process.
async fn note_signals(signalled: Arc<AtomicBool>) {
    let Ok(mut term) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
    }
    signalled.store(true, Ordering::Relaxed);
}

/// Starts this program again: the scheduler stops workers that were silent too long, for instance on a machine
/// without free CPU time, and another process may take a free port first. Returns only if that fails.
fn start_again() -> String {
    complain("the worker was stopped by its scheduler, or has lost a port; it starts again");
    std::thread::sleep(RESTART);
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return format!("this program: {error}"),
    };
    let error = Command::new(program).args(std::env::args_os().skip(1)).exec();
    format!("the worker cannot start again: {error}")
}

async fn serve(options: &Options, host: String, work: PathBuf) -> Result<(), String> {
    let peer = Peer::new(&options.scheduler, options.tls.as_deref())?;
    let scheduler = address_of(&options.scheduler)?;
    check_version(&peer).await?;
    let ports = [free_port(&host)?, free_port(&host)?];
    let bind_host = match &peer.tls {
        None => host.clone(),
        Some(tls) => inner_host(&host, &ports, tls).await?,
    };
    let name = options.name.clone().unwrap_or_else(|| format!("{host}:{}", ports[0]));
    let here = Here {
        scheduler: peer.clone(),
        work: work.clone(),
        name: name.clone(),
        cores: options.cores,
        pool: Mutex::default(),
        sheets: Mutex::default(),
    };
    if HERE.set(here).is_err() {
        return Err("this process is a worker already".to_string());
    }
    let config = ExecutorProcessConfig {
        executor_id: name.clone(),
        bind_host,
        external_host: Some(host),
        port: ports[0],
        grpc_port: ports[1],
        scheduler_host: scheduler.ip().to_string(),
        scheduler_port: scheduler.port(),
        scheduler_connect_timeout_seconds: 10,
        vcores: options.cores,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: Some(work.join("rows").display().to_string()),
        grpc_max_decoding_message_size: MESSAGE_BYTES_MAX,
        grpc_max_encoding_message_size: MESSAGE_BYTES_MAX,
        executor_heartbeat_interval_seconds: HEARTBEAT_SECONDS,
        job_data_ttl_seconds: 3_600,
        job_data_clean_up_interval_seconds: 600,
        override_physical_codec: Some(Arc::new(Codec::default())),
        override_create_grpc_client_endpoint: peer.tls.as_ref().map(|tls| tls.endpoints()),
        ..ExecutorProcessConfig::default()
    };
    std::fs::create_dir_all(work.join("rows")).map_err(|error| error.to_string())?;
    let mut out = StandardOutput::new();
    // The worker works whether or not anybody reads this.
    let _ =
        writeln!(out, "worker {name} of the scheduler at {scheduler}").and_then(|()| out.flush());
    start_executor_process(Arc::new(config))
        .await
        .map_err(|error| format!("the worker ended: {error}"))
}

/// Waits for the scheduler, and refuses one of another version.
async fn check_version(peer: &Peer) -> Result<(), String> {
    let own = quarrier_cli::build();
    let mut tries = 0;
    let theirs = loop {
        match http::get(peer, "/quarrier/version").await {
            Ok(version) => break String::from_utf8_lossy(&version).into_owned(),
            Err(http::Fault::Silent(_)) if tries < 2 * SCHEDULER_SECONDS => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            Err(fault) => return Err(format!("{}: the scheduler {fault}", peer.at)),
        }
    };
    match theirs == own {
        true => Ok(()),
        false => Err(format!(
            "{}: the scheduler is version {theirs}, and this worker is {own}; use one version",
            peer.at
        )),
    }
}

/// Accepts connections at these ports of `host`, and passes them on to the address that is returned.
async fn inner_host(host: &str, ports: &[u16], tls: &Arc<Tls>) -> Result<String, String> {
    const INNER: &str = "127.0.0.1";
    if host == INNER {
        return Err(format!("--tls: {INNER} cannot be reached by other machines; use --listen"));
    }
    for &port in ports {
        let listener = tokio::net::TcpListener::bind((host, port)).await;
        let listener = listener.map_err(|error| format!("{host}: cannot listen there: {error}"))?;
        tokio::spawn(Arc::clone(tls).accept(listener, SocketAddr::from(([127, 0, 0, 1], port))));
    }
    Ok(INNER.to_string())
}

/// A port that is free now.
fn free_port(host: &str) -> Result<u16, String> {
    let bound = TcpListener::bind((host, 0)).and_then(|listener| listener.local_addr());
    let address = bound.map_err(|error| format!("{host}: cannot listen there: {error}"))?;
    Ok(address.port())
}
