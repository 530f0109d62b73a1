//! A connection to the other gauge, and what both agreed on.

use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::SockRef;

use super::PORT;
use super::frame::{Account, Answer, Hello, Name, Task, encode_ended, read_frame};
use crate::error::{Error, Result};

/// How long a connection, an answer or an account may take.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(10);
/// How long a read or write waits before it is asked whether to go on.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// Asked for on sockets for datagrams: bursts wait here.
const DATAGRAM_BUFFER_BYTES: usize = 4 << 20;

/// Where the other gauge listens.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
}

/// The terms of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) task: Task,
    pub(super) message_bytes: usize,
    pub(super) time: Duration,
    pub(super) seed: u64,
    pub(super) congestion: Name,
}

/// An open session.
pub(super) struct Link<'a> {
    pub(super) stream: TcpStream,
    /// For tasks with datagrams, connected to the other side's.
    pub(super) datagrams: Option<UdpSocket>,
    pub(super) terms: Terms,
    /// The congestion control in effect on this side; the system's own where another was refused.
    pub(super) congestion: String,
    /// Why the one asked for is not in effect.
    pub(super) note: Option<String>,
    pub(super) stop: &'a AtomicBool,
    pub(super) address: SocketAddr,
}

impl Peer {
    /// Looks `text` up: `host:port`, or `host` alone.
    pub(super) fn find(text: &str) -> Result<Peer> {
        let mut addresses = text
            .to_socket_addrs()
            .or_else(|_| (text, PORT).to_socket_addrs())
            .map_err(|error| Error::io(text, "look the address up (host:port)", error))?;
        let none = || Error::Peer { address: text.to_owned(), reason: "no such host".to_owned() };
        Ok(Peer { address: addresses.next().ok_or_else(none)? })
    }

    /// Opens a session.
    pub(super) fn open<'a>(&self, terms: Terms, stop: &'a AtomicBool) -> Result<Link<'a>> {
        let failed = |what: &str, error| Error::io(self.address.to_string(), what, error);
        let stream = TcpStream::connect_timeout(&self.address, ANSWER_TIME)
            .map_err(|error| failed("connect (does a gauge listen there?)", error))?;
        bound_waiting(&stream).map_err(|error| failed("set time limits", error))?;
        let (congestion, note) = set_congestion(&stream, &terms.congestion);
        let mut link =
            Link { stream, datagrams: None, terms, congestion, note, stop, address: self.address };
        link.greet()?;
        Ok(link)
    }
}

impl Link<'_> {
    fn greet(&mut self) -> Result<()> {
        let socket = match self.terms.task {
            Task::Datagrams | Task::DatagramEcho => Some(self.datagram_socket()?),
            Task::Stream | Task::StreamEcho => None,
        };
        let port = |socket: &UdpSocket| socket.local_addr().map(|address| address.port());
        let hello = Hello {
            task: self.terms.task,
            message_bytes: self.terms.message_bytes as u32,
            time: self.terms.time,
            datagram_port: match &socket {
                Some(socket) => port(socket).map_err(|error| self.failed("open a port", error))?,
                None => 0,
            },
            seed: self.terms.seed,
            congestion: self.terms.congestion,
        };
        self.send(&hello.encode())?;
        let answer = Answer::decode(self.frame()?).map_err(|reason| self.peer(reason))?;
        if let Some(reason) = answer.refused {
            return Err(self.peer(format!("refused: {reason}")));
        }
        if let Some(socket) = &socket {
            socket
                .connect(SocketAddr::new(self.address.ip(), answer.datagram_port))
                .map_err(|error| self.failed("connect for datagrams", error))?;
        }
        self.datagrams = socket;
        Ok(())
    }

    fn datagram_socket(&self) -> Result<UdpSocket> {
        let here = self.stream.local_addr().map_err(|error| self.failed("open a port", error))?;
        datagram_socket(here.ip()).map_err(|error| self.failed("open a port for datagrams", error))
    }

    /// Says that nothing more is sent, and waits for the account. `datagrams` says how many were.
    pub(super) fn end(&self, datagrams: Option<u64>) -> Result<Account> {
        match datagrams {
            Some(count) => self.send(&encode_ended(count))?,
            None => self
                .stream
                .shutdown(Shutdown::Write)
                .map_err(|error| self.failed("end the stream", error))?,
        }
        let account = Account::decode(self.frame()?).map_err(|reason| self.peer(reason))?;
        if account.wrong > 0 {
            let reason =
                format!("{} of the messages came otherwise than they were sent", account.wrong);
            return Err(Error::wrong(format!("network to {}", self.address), reason));
        }
        Ok(account)
    }

    fn frame(&self) -> Result<[u8; super::frame::FRAME_BYTES]> {
        let stopped = || self.stop.load(Ordering::Relaxed);
        read_frame(&self.stream, ANSWER_TIME, stopped)
            .map_err(|error| self.failed("read the other gauge's answer", error))
    }

    fn send(&self, frame: &[u8]) -> Result<()> {
        (&self.stream).write_all(frame).map_err(|error| self.failed("send", error))
    }

    /// The system refused, or the caller asked to stop.
    pub(super) fn failed(&self, what: &str, error: io::Error) -> Error {
        match self.stop.load(Ordering::Relaxed) {
            true => Error::Stopped,
            false => Error::io(self.address.to_string(), what, error),
        }
    }

    /// The error for a violation by the other side.
    pub(super) fn peer(&self, reason: impl Into<String>) -> Error {
        Error::Peer { address: self.address.to_string(), reason: reason.into() }
    }
}

/// A socket for datagrams at any port of this address.
pub(super) fn datagram_socket(address: IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    // As much as the system grants.
    let _ = SockRef::from(&socket).set_recv_buffer_size(DATAGRAM_BUFFER_BYTES);
    let _ = SockRef::from(&socket).set_send_buffer_size(DATAGRAM_BUFFER_BYTES);
    socket.set_write_timeout(Some(PAUSE))?;
    Ok(socket)
}

/// No read or write waits for ever.
pub(super) fn bound_waiting(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PAUSE))?;
    stream.set_write_timeout(Some(PAUSE))
}

/// Asks for a congestion control, if it is named. Returns the one in effect, and a note where it
/// is another.
pub(super) fn set_congestion(stream: &TcpStream, name: &Name) -> (String, Option<String>) {
    let socket = SockRef::from(stream);
    let refused = match name.text() {
        "" => None,
        text => socket.set_tcp_congestion(text.as_bytes()).err(),
    };
    let held = socket.tcp_congestion().unwrap_or_default();
    let end = held.iter().position(|&byte| byte == 0).unwrap_or(held.len());
    let held = String::from_utf8_lossy(&held[..end]).into_owned();
    let note = refused
        .map(|error| format!("congestion control {} refused ({error}): {held}", name.text()));
    (held, note)
}
