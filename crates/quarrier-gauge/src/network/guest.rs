//! The server's side of a session with a client (a guest).

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::frame::{Account, Answer, Hello, Name, Task, read_frame};
use super::link::{bound_waiting, set_congestion};
use super::{datagram, echo, stream};

/// Maximum time for a client's request.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// A session may take this much longer than requested.
const GRACE: Duration = Duration::from_secs(10);
/// Maximum time of silence from a client.
const SILENCE: Duration = Duration::from_secs(10);

/// A client, and its request.
pub(super) struct Guest<'a> {
    pub(super) stream: TcpStream,
    pub(super) hello: Hello,
    until: Instant,
    stop: &'a AtomicBool,
}

impl Guest<'_> {
    /// Returns an error if the session must end. `heard` is the time of the client's last message.
    pub(super) fn check_alive(&self, heard: Instant) -> Result<(), String> {
        if self.stop.load(Ordering::Relaxed) {
            return Err("stopped".to_owned());
        }
        let now = Instant::now();
        if now > self.until {
            return Err("the session took longer than agreed".to_owned());
        }
        if now.saturating_duration_since(heard) > SILENCE {
            return Err(format!("nothing arrived for {} s", SILENCE.as_secs()));
        }
        Ok(())
    }

    /// Accepts the session, and reports the port for datagrams.
    pub(super) fn welcome(&self, datagram_port: u16) -> Result<(), String> {
        let (congestion, _) = set_congestion(&self.stream, &self.hello.congestion);
        let congestion = Name::new(&congestion).unwrap_or_default();
        answer(&self.stream, &Answer { refused: None, datagram_port, congestion })
    }
}

fn answer(mut stream: &TcpStream, answer: &Answer) -> Result<(), String> {
    stream.write_all(&answer.encode()).map_err(|error| format!("cannot answer: {error}"))
}

/// Refuses a session.
pub(super) fn refuse(stream: &TcpStream, reason: &str) {
    let refused = Some(reason.to_owned());
    // A refused client may have left already.
    let _ = answer(stream, &Answer { refused, datagram_port: 0, congestion: Name::default() });
}

/// Serves one client to the end, or returns why it could not.
pub(super) fn serve(stream: TcpStream, stop: &AtomicBool) -> Result<Account, String> {
    bound_waiting(&stream).map_err(|error| format!("cannot set time limits: {error}"))?;
    let stopped = || stop.load(Ordering::Relaxed);
    let bytes = read_frame(&stream, HELLO_TIME, stopped)
        .map_err(|error| format!("sent no valid request: {error}"))?;
    let hello = Hello::decode(bytes).inspect_err(|reason| refuse(&stream, reason))?;
    let until = Instant::now() + hello.time + GRACE;
    let guest = Guest { stream, hello, until, stop };
    let account = match hello.task {
        Task::Stream => {
            guest.welcome(0)?;
            stream::receive(&guest)?
        }
        Task::StreamEcho => {
            guest.welcome(0)?;
            echo::stream(&guest)?
        }
        Task::Datagrams => datagram::receive(&guest)?,
        Task::DatagramEcho => echo::datagrams(&guest)?,
    };
    (&guest.stream)
        .write_all(&account.encode())
        .map_err(|error| format!("cannot send the account: {error}"))?;
    Ok(account)
}
