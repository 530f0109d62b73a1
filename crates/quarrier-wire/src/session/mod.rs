//! A connection that uses PostgreSQL's protocol, from start to end.
//!
//! ```text
//!  socket ─→ wire (frames, buffers) ─→ greet (TLS, cancel, password) ─→ turn: one message at a time
//!                                            simple ─┐
//!                                          extended ─┼→ run: sends and watches rows ─→ Answers
//!                                      utility, copy ┘
//! ```

mod copy;
mod extended;
mod greet;
mod run;
mod settings;
mod simple;
mod socket;
mod state;
mod utility;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::failure::{Failure, Result, state as code};
use crate::protocol::Frontend;
use crate::shared::{Place, Shared};

use socket::Socket;
use state::{Session, Status};
use wire::{ClientMessage, Wire};

pub(crate) use socket::Socket as AnySocket;

/// Serves a client until it disconnects.
pub(crate) async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>, place: Place) {
    let _place = place;
    let login = Box::pin(greet::greet(stream, peer, &shared));
    let Ok(Some(mut session)) = timeout(shared.limits.login_time, login).await else { return };
    if let Err(failure) = Box::pin(session.turns()).await {
        session.wire.out.error(&failure);
    }
    let _ = timeout(Duration::from_secs(1), session.wire.flush()).await;
}

/// Reports that there are too many clients.
pub(crate) async fn refuse(stream: TcpStream) {
    let mut wire = Wire::new(Socket::Plain(stream));
    // Read the client's request first, or it never reads the response.
    let heard = async {
        let _ = wire.more().await;
        wire.out.error(&Failure::fatal(code::TOO_MANY, "sorry, too many clients already"));
        let _ = wire.flush().await;
    };
    let _ = timeout(Duration::from_secs(2), heard).await;
}

/// Returns when the grace period of a shutdown is over.
async fn grace(shared: &Shared) {
    shared.closing.wait().await;
    sleep(shared.limits.grace_time / 2).await;
}

impl Session {
    /// Processes one message at a time.
    async fn turns(&mut self) -> Result<()> {
        loop {
            let taken = match self.wire.take(&Arc::clone(&self.shared))? {
                Some(taken) => Some(taken),
                None => {
                    // Outside of a transaction, report changes only when they are on the disk.
                    if self.status == Status::Idle
                        && let Err(failure) = self.settle().await
                    {
                        self.failed(b'E', failure)?;
                    }
                    self.next().await?
                }
            };
            let Some(taken) = taken else { return Ok(()) };
            let ClientMessage { kind, body, held } = taken;
            let message = match Frontend::parse(kind, &body) {
                Ok(message) => message,
                Err(failure) if failure.is_fatal => return Err(failure),
                Err(failure) => {
                    self.failed(kind, failure)?;
                    continue;
                }
            };
            if matches!(message, Frontend::Terminate) {
                return Ok(());
            }
            if let Err(failure) = Box::pin(self.obey(&message)).await {
                // Changes that were acknowledged before must be on the disk, or the client must
                // learn that they are not.
                let failure = self.settle().await.err().unwrap_or(failure);
                self.failed(kind, failure)?;
            }
            drop(held);
        }
    }

    /// Receives the next message; sends pending output before it waits. `None` if the client
    /// disconnected.
    async fn next(&mut self) -> Result<Option<ClientMessage>> {
        let shared = Arc::clone(&self.shared);
        loop {
            if let Some(taken) = self.wire.take(&shared)? {
                return Ok(Some(taken));
            }
            let sending = timeout(shared.limits.send_time, self.wire.flush()).await;
            match sending {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ok(None),
                Err(_) => {
                    return Err(Failure::fatal(code::IDLE, "the client does not read its data"));
                }
            }
            let has_begun = self.wire.has_begun();
            self.wire.rest();
            tokio::select! {
                biased;
                more = self.wire.more() => match more {
                    Ok(true) => {}
                    _ => return Ok(None),
                },
                () = shared.closing.wait(), if self.status == Status::Idle || has_begun => {
                    let said = "terminating connection: the server is shutting down";
                    return Err(Failure::fatal(code::SHUTDOWN, said));
                }
                () = sleep(shared.limits.message_time), if has_begun => {
                    let said = "a message was not completed in time";
                    return Err(Failure::fatal(code::IDLE, said));
                }
                () = grace(&shared), if self.status != Status::Idle => {
                    let said = "terminating connection: the server is shutting down";
                    return Err(Failure::fatal(code::SHUTDOWN, said));
                }
            }
        }
    }

    async fn obey(&mut self, message: &Frontend<'_>) -> Result<()> {
        if self.is_skipping {
            if matches!(message, Frontend::Sync) {
                self.is_skipping = false;
                return self.sync().await;
            }
            return Ok(());
        }
        match message {
            Frontend::Query(text) => {
                self.query(text).await?;
                self.sync().await
            }
            Frontend::Parse { name, text, kinds } => self.parse(name, text, kinds).await,
            Frontend::Bind(bound) => self.bind(bound),
            Frontend::Describe(named) => self.describe(*named),
            Frontend::Execute { portal, rows_max } => self.execute(portal, *rows_max).await,
            Frontend::Close(named) => {
                self.close(*named);
                Ok(())
            }
            Frontend::Sync => self.sync().await,
            Frontend::Flush => {
                self.settle().await?;
                self.flush().await
            }
            // Data of a COPY that failed, sent before the client learned of it.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => Ok(()),
            Frontend::FunctionCall => {
                Err(Failure::new(code::UNSUPPORTED, "function calls are not supported"))
            }
            Frontend::Password(_) => {
                Err(Failure::fatal(code::PROTOCOL, "an unexpected password message"))
            }
            Frontend::Terminate => Ok(()),
        }
    }

    /// Reports the error of a message, and decides how to continue.
    fn failed(&mut self, kind: u8, failure: Failure) -> Result<()> {
        if failure.is_fatal {
            return Err(failure);
        }
        self.wire.out.error(&failure);
        if self.status == Status::Open {
            self.status = Status::Failed;
        }
        if matches!(kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H') {
            self.is_skipping = true;
        } else {
            self.ready();
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        let flushed = timeout(self.shared.limits.send_time, self.wire.flush()).await;
        match flushed {
            Ok(Ok(())) => Ok(()),
            _ => Err(Failure::fatal(code::IDLE, "the client does not read its data")),
        }
    }

    /// Reports readiness for the next statement. Ends everything that belongs to no transaction.
    fn ready(&mut self) {
        if self.status == Status::Idle {
            self.end_portals();
        }
        self.wire.out.ready(self.status.letter());
    }

    /// Ends everything that belongs to no transaction. Changes are on the disk before the client learns
    /// that the next statement may follow.
    async fn sync(&mut self) -> Result<()> {
        if self.status == Status::Idle {
            self.settle().await?;
        }
        self.ready();
        Ok(())
    }
}
