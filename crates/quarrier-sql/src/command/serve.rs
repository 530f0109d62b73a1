//! `quarrier serve`: opens tables, then serves clients until it is stopped.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quarrier::{OpenOptions, Opener};
use quarrier_cli::{Serve, StandardOutput, complain};
use quarrier_core::parallel::planned_workers;
use quarrier_wire::{Board, Config, Limits, Server, Tls, Users, made_line};
use tokio::runtime::{Handle, Runtime};

use super::runtime::{end, runtime, runtime_of_connections};
use super::{FAILED, wrong};
use crate::stack::Stack;
use crate::{Engine, Error, Options, Reach, Result, Served, Serving, usable_memory};

/// How often the stop flag is checked.
const PERIOD: Duration = Duration::from_millis(50);
/// How long a server that ends waits for the copy of its log.
const COPY_TIME: Duration = Duration::from_secs(10);

/// Runs the server. Returns the exit code.
pub(super) fn run(serve: &Serve, stack: Stack) -> u8 {
    if let Some(name) = &serve.make_user {
        return make_user(name);
    }
    match served(serve, stack) {
        Ok(()) => 0,
        Err(error) => {
            complain(&error.to_string());
            FAILED
        }
    }
}

fn served(serve: &Serve, stack: Stack) -> Result<()> {
    let stop = quarrier_cli::watch();
    let no_threads = |error: std::io::Error| wrong(&format!("no threads to work with: {error}"));
    let workers = planned_workers(serve.workers);
    let (statements, workers) = runtime(workers, stack.bytes).map_err(no_threads)?;
    let connections = runtime_of_connections().map_err(no_threads)?;
    let done = begun(serve, workers, &statements, &connections, &stop);
    end(statements);
    end(connections);
    done
}

fn begun(
    serve: &Serve,
    workers: usize,
    statements: &Runtime,
    connections: &Runtime,
    stop: &Arc<AtomicBool>,
) -> Result<()> {
    let board = Arc::new(Board::default());
    let runtime = statements.handle().clone();
    let over = Arc::new(AtomicBool::new(false));
    let waits = connections.spawn(stopped(Arc::clone(stop), Arc::clone(&over)));
    let opened = statements.block_on(opened(serve, workers, runtime, &board, &over));
    // From now on, the server decides how long statements may run.
    waits.abort();
    let answers = Arc::new(opened?);
    copy(serve, &answers)?;
    let config = config(serve, board)?;
    connections.block_on(async {
        let served = Arc::clone(&answers);
        let server = Server::bind(config, answers).await.map_err(|error| wrong(&said(&error)))?;
        ready(&server)?;
        server.run(ended(stop)).await;
        over.store(true, Ordering::Relaxed);
        served.settle();
        let missing = served.kept().and_then(|kept| kept.finish_copy(COPY_TIME));
        missing.iter().for_each(|missing| complain(missing));
        Ok(())
    })
}

async fn opened(
    serve: &Serve,
    workers: usize,
    runtime: Handle,
    board: &Arc<Board>,
    stop: &Arc<AtomicBool>,
) -> Result<Served> {
    let reach = match &serve.allowed {
        Some(folder) => Reach::below(folder)?,
        None => Reach::Nothing,
    };
    let options = Options {
        workers,
        memory_bytes_max: serve.memory_bytes_max.or_else(usable_memory),
        stop: Arc::clone(stop),
        environment: quarrier_cli::environment().clone(),
        machine: quarrier_cli::machine().clone(),
        reach,
        ..Options::default()
    };
    let engine = Arc::new(Engine::new(options)?);
    if let Some(folder) = &serve.data {
        engine.open_folder_to_grow(folder, serve.segment_bytes).await?;
    }
    for (name, file) in &serve.tables {
        engine.open(name, file).await?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
    }
    let loaded = engine.take_loaded();
    if !serve.quiet {
        loaded.rejects_by_file.iter().for_each(|file| complain(&file.to_string()));
        loaded.damages.iter().chain(&loaded.notices).for_each(|line| complain(line));
        loaded.rounded.iter().for_each(|rounded| complain(&rounded.to_string()));
    }
    Served::new(Serving { engine, runtime, board: Arc::clone(board) })
}

/// Begins to copy the log, if requested.
fn copy(serve: &Serve, served: &Served) -> Result<()> {
    let (Some(to), Some(kept)) = (&serve.copy_to, served.kept()) else { return Ok(()) };
    // The copy goes on after the signal that ends the server.
    let never = Arc::new(AtomicBool::new(false));
    let opener = Opener::new(OpenOptions::default(), quarrier_cli::environment(), &never);
    let is_quiet = serve.quiet;
    let tell = move |line: &str| {
        if !is_quiet {
            complain(line);
        }
    };
    let begun = opener.copy_place(to).and_then(|place| kept.copy_to(place, tell));
    begun.map_err(|error| wrong(&error.to_string()))
}

fn config(serve: &Serve, board: Arc<Board>) -> Result<Config> {
    let users = match &serve.users {
        Some(path) => Some(Users::read(path).map_err(|error| wrong(&error.to_string()))?),
        None => None,
    };
    let tls = match &serve.tls {
        Some(folder) => Some(Tls::read(folder).map_err(|error| wrong(&error.to_string()))?),
        None => None,
    };
    let pages = match &serve.pages {
        Some(folder) if !folder.is_dir() => {
            return Err(wrong(&format!("{}: not a folder", folder.display())));
        }
        pages => pages.clone(),
    };
    let limits = Limits {
        connections_max: serve.connections_max,
        statement_time: serve.timeout,
        ..Limits::default()
    };
    let is_quiet = serve.quiet;
    Ok(Config {
        postgres: serve.listen,
        http: serve.http,
        users,
        tls,
        pages,
        limits,
        board,
        log: Arc::new(move |line| {
            if !is_quiet {
                complain(line);
            }
        }),
    })
}

fn said(error: &std::io::Error) -> String {
    format!("cannot serve: {error}")
}

/// Prints the addresses, now that clients can connect.
fn ready(server: &Server) -> Result<()> {
    let failed = |error: std::io::Error| wrong(&said(&error));
    let mut line = format!("ready: postgres://{}", server.postgres_address().map_err(failed)?);
    if let Some(http) = server.http_address().map_err(failed)? {
        line.push_str(&format!("  http://{http}"));
    }
    let mut out = StandardOutput::new();
    // The server also runs if nobody reads its output.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    Ok(())
}

/// Returns when the server has to stop.
async fn ended(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(PERIOD).await;
    }
}

/// Stops running work when the server has to stop.
async fn stopped(stop: Arc<AtomicBool>, over: Arc<AtomicBool>) {
    ended(&stop).await;
    over.store(true, Ordering::Relaxed);
}

/// Prints a line for the user file.
fn make_user(name: &str) -> u8 {
    let line = password().and_then(|password| made_line(name, &password));
    match line {
        Ok(line) => {
            let mut out = StandardOutput::new();
            // The program reports a failed write when it ends.
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
            0
        }
        Err(reason) => {
            complain(&format!("--make-user: {reason}"));
            FAILED
        }
    }
}

/// Reads a line from standard input, without echo on a terminal.
fn password() -> std::result::Result<String, String> {
    let is_terminal = std::io::stdin().is_terminal();
    if is_terminal {
        // If standard error is closed, nobody is left to read the prompt.
        let _ = write!(std::io::stderr(), "password: ");
        echo(false);
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    if is_terminal {
        echo(true);
        let _ = writeln!(std::io::stderr());
    }
    read.map_err(|error| format!("no password could be read: {error}"))?;
    Ok(line.trim_end_matches(['\n', '\r']).to_string())
}

/// Turns the terminal's echo on or off. If `stty` fails, the echo stays on.
fn echo(shows: bool) {
    let word = if shows { "echo" } else { "-echo" };
    let _ = std::process::Command::new("stty").arg(word).status();
}
