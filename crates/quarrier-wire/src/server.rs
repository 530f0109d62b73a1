//! The server: listens, admits clients up to a limit, and shuts down without losing data.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::answers::{Answers, Stop};
use crate::auth::{Tls, Users, WrongPasswords};
use crate::board::{Board, Ending, add};
use crate::shared::{Limits, Shared};
use crate::{http, session};

/// The server's settings: addresses, users and limits.
pub struct Config {
    /// The address for PostgreSQL's protocol.
    pub postgres: SocketAddr,
    /// The address for HTTP, if any.
    pub http: Option<SocketAddr>,
    /// The users; without any, everybody on this machine has access.
    pub users: Option<Users>,
    /// The certificate and key of encrypted connections.
    pub tls: Option<Tls>,
    /// A folder of pages that HTTP serves at `/pages/NAME`.
    pub pages: Option<PathBuf>,
    /// Limits on counts, times and sizes.
    pub limits: Limits,
    /// The board of connections and statements.
    pub board: Arc<Board>,
    /// Receives log lines: wrong passwords, broken connections, internal errors.
    pub log: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Config");
        shown.field("postgres", &self.postgres).field("http", &self.http);
        shown.field("users", &self.users).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A server that listens.
pub struct Server {
    postgres: TcpListener,
    http: Option<TcpListener>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("postgres", &self.postgres).finish_non_exhaustive()
    }
}

impl Server {
    /// Binds the addresses. Clients that connect wait until [`run`](Self::run).
    ///
    /// # Errors
    /// If an address is in use or does not belong to this machine, or if other machines could
    /// connect although there are no users.
    pub async fn bind(config: Config, answers: Arc<dyn Answers>) -> io::Result<Self> {
        let Config { postgres, http, users, tls, pages, limits, board, log } = config;
        for address in [Some(postgres), http].into_iter().flatten() {
            if users.is_none() && !address.ip().is_loopback() {
                let said = format!(
                    "{address} is reachable from other machines; specify users with --users"
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, said));
            }
        }
        let at = |address: SocketAddr| {
            move |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"))
        };
        let listener = TcpListener::bind(postgres).await.map_err(at(postgres))?;
        let http = match http {
            Some(address) => Some(TcpListener::bind(address).await.map_err(at(address))?),
            None => None,
        };
        let is_local = match &http {
            Some(http) => http.local_addr()?.ip().is_loopback(),
            None => true,
        };
        let shared = Arc::new(Shared {
            answers,
            users,
            tls,
            limits,
            board,
            log,
            closing: Stop::default(),
            is_local,
            since: Instant::now(),
            pages,
            wrong_passwords: WrongPasswords::default(),
            held: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        });
        Ok(Server { postgres: listener, http, shared })
    }

    /// Returns the address for PostgreSQL's protocol.
    ///
    /// # Errors
    /// The system's error.
    pub fn postgres_address(&self) -> io::Result<SocketAddr> {
        self.postgres.local_addr()
    }

    /// Returns the address for HTTP.
    ///
    /// # Errors
    /// The system's error.
    pub fn http_address(&self) -> io::Result<Option<SocketAddr>> {
        self.http.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// Serves until `stop` completes, then shuts down: accepts no more clients, closes idle
    /// connections, and lets statements finish within the grace period.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Server { postgres, http, shared } = self;
        let mut tasks = JoinSet::new();
        tokio::pin!(stop);
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = seconds.tick() => {
                    shared.board.tick();
                    if let Some(line) = shared.wrong_passwords.tick() {
                        (shared.log)(&line);
                    }
                }
                came = postgres.accept() => {
                    come_in(came, &shared, &mut tasks, false).await;
                }
                came = accept(http.as_ref()) => {
                    come_in(came, &shared, &mut tasks, true).await;
                }
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                    note(&shared, ended);
                }
            }
        }
        drop((postgres, http));
        shared.closing.set();
        shared.board.live().iter().for_each(|running| running.end(Ending::Shutdown));
        let grace = shared.limits.grace_time;
        if timeout(grace, all(&mut tasks, &shared)).await.is_err() {
            shared.board.end_all();
            // All were notified; a connection that does not end now is stuck.
            if timeout(Duration::from_secs(2), all(&mut tasks, &shared)).await.is_err() {
                tasks.shutdown().await;
            }
        }
    }
}

async fn all(tasks: &mut JoinSet<()>, shared: &Shared) {
    while let Some(ended) = tasks.join_next().await {
        note(shared, ended);
    }
}

/// Logs a connection whose task panicked; others continue.
fn note(shared: &Shared, ended: Result<(), tokio::task::JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        (shared.log)("a connection hit an internal error and was closed");
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

async fn come_in(
    came: io::Result<(TcpStream, SocketAddr)>,
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<()>,
    is_http: bool,
) {
    let (stream, peer) = match came {
        Ok(came) => came,
        Err(error) => {
            (shared.log)(&format!("a connection could not be accepted: {error}"));
            // Usually there are no descriptors left; some become free only after a while.
            sleep(Duration::from_millis(50)).await;
            return;
        }
    };
    add(&shared.board.counts.connections, 1);
    // Responses are small, and the client waits for each.
    let _ = stream.set_nodelay(true);
    let place = shared.place();
    if place.is_none() {
        add(&shared.board.counts.refused, 1);
    }
    let shared = Arc::clone(shared);
    match (is_http, place) {
        (true, Some(place)) => drop(tasks.spawn(http::serve(stream, peer, shared, place))),
        (false, Some(place)) => drop(tasks.spawn(session::serve(stream, peer, shared, place))),
        (false, None) => drop(tasks.spawn(session::refuse(stream))),
        // Reporting it would require reading the request.
        (true, None) => drop(stream),
    }
}
