//! The server: waits for other gauges and measures with them.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use quarrier_core::threads;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::guest::{refuse, serve};
use crate::error::{Error, Result};

/// Maximum number of concurrent sessions.
pub const SESSIONS_MAX: usize = 64;
/// Maximum delay until `stop` takes effect.
const LOOK: Duration = Duration::from_millis(50);

/// The outcome of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionOutcome {
    /// The session was served to the end.
    Served {
        /// The payload received, in bytes.
        bytes: u64,
        /// The messages received.
        messages: u64,
    },
    /// The session ended early, for this reason.
    Ended(String),
}

/// Listens for other gauges. It accepts only bounded numbers from them (see the frames), and a
/// stranger's bytes can end only their own session.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
}

impl Listener {
    /// Listens at `address`. At an address outside of the loopback, the whole network can connect and
    /// use up the link: do that only on your own network.
    ///
    /// # Errors
    /// If the address is not this machine's, or is in use.
    pub fn bind(address: SocketAddr) -> Result<Listener> {
        let failed = |error| Error::io(address.to_string(), "listen", error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Listener { listener })
    }

    /// Returns the address that it listens at.
    ///
    /// # Errors
    /// If the system does not report the address.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|error| Error::io("listener", "ask its address", error))
    }

    /// Serves until `stop` is set, with a thread for each session, and reports the end of each session
    /// to `heard`.
    ///
    /// # Errors
    /// If the system no longer accepts connections.
    pub fn serve(
        &self,
        stop: &AtomicBool,
        heard: &(dyn Fn(SocketAddr, SessionOutcome) + Sync),
    ) -> Result<()> {
        let sessions = AtomicUsize::new(0);
        thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                let Some((stream, address)) = self.next()? else { continue };
                if sessions.fetch_add(1, Ordering::Relaxed) >= SESSIONS_MAX {
                    sessions.fetch_sub(1, Ordering::Relaxed);
                    refuse(&stream, "too many sessions");
                    heard(address, SessionOutcome::Ended("too many sessions".to_owned()));
                    continue;
                }
                let sessions = &sessions;
                let started = threads::in_scope(scope, "", move || {
                    heard(address, one(stream, stop));
                    sessions.fetch_sub(1, Ordering::Relaxed);
                });
                if let Err(error) = started {
                    sessions.fetch_sub(1, Ordering::Relaxed);
                    heard(address, SessionOutcome::Ended(error.to_string()));
                }
            }
            Ok(())
        })
    }

    /// Returns the next connection, if one arrives soon.
    fn next(&self) -> Result<Option<(TcpStream, SocketAddr)>> {
        let failed = |error| Error::io("listener", "take a connection", error);
        let wait = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as _ };
        let mut ready = [PollFd::new(&self.listener, PollFlags::IN)];
        match poll(&mut ready, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(failed(error.into())),
        }
        match self.listener.accept() {
            Ok((stream, address)) => match stream.set_nonblocking(false) {
                Ok(()) => Ok(Some((stream, address))),
                Err(error) => Err(failed(error)),
            },
            // The client has left already, or no descriptor is free at the moment.
            Err(_) => {
                thread::sleep(Duration::from_millis(1));
                Ok(None)
            }
        }
    }
}

fn one(stream: TcpStream, stop: &AtomicBool) -> SessionOutcome {
    match serve(stream, stop) {
        Ok(account) if account.wrong > 0 => SessionOutcome::Ended(format!(
            "{} received messages differ from those sent",
            account.wrong
        )),
        Ok(account) => SessionOutcome::Served { bytes: account.bytes, messages: account.messages },
        Err(reason) => SessionOutcome::Ended(reason),
    }
}
