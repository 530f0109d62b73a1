//! A connection to the other gauge, with the agreed terms.

use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::SockRef;

use super::PORT;
use super::frame::{Account, Answer, Hello, Name, Task, encode_ended, read_frame};
use crate::error::{Error, Result};

/// The time limit for a connection, an answer or an account.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(10);
/// A read or write waits this long before it checks whether to continue.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// The buffer requested for datagram sockets, which has to hold bursts.
const DATAGRAM_BUFFER_BYTES: usize = 4 << 20;

/// The address of the other gauge.
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
    /// The socket for tasks with datagrams, connected to the other side's.
    pub(super) datagrams: Option<UdpSocket>,
    pub(super) terms: Terms,
    /// The congestion control in effect on this side; the system's default if the requested one was
    /// refused.
    pub(super) congestion: String,
    /// Why the requested congestion control is not in effect.
    pub(super) note: Option<String>,
    pub(super) stop: &'a AtomicBool,
    pub(super) address: SocketAddr,
}

impl Peer {
    /// Resolves `text`: `host:port`, or `host` alone.
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

    /// Signals that nothing more follows, and waits for the account. `datagrams` is the number sent.
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
                format!("{} of the received messages differ from those sent", account.wrong);
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

    /// Makes the error for an operation that the system refused, or for a stop.
    pub(super) fn failed(&self, what: &str, error: io::Error) -> Error {
        match self.stop.load(Ordering::Relaxed) {
            true => Error::Stopped,
            false => Error::io(self.address.to_string(), what, error),
        }
    }

    /// Makes the error for a violation by the other side.
    pub(super) fn peer(&self, reason: impl Into<String>) -> Error {
        Error::Peer { address: self.address.to_string(), reason: reason.into() }
    }
}

/// Opens a datagram socket at any port of this address.
pub(super) fn datagram_socket(address: IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    // The system may grant less.
    let _ = SockRef::from(&socket).set_recv_buffer_size(DATAGRAM_BUFFER_BYTES);
    let _ = SockRef::from(&socket).set_send_buffer_size(DATAGRAM_BUFFER_BYTES);
    socket.set_write_timeout(Some(PAUSE))?;
    Ok(socket)
}

/// Limits the time of each read and write.
pub(super) fn bound_waiting(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PAUSE))?;
    stream.set_write_timeout(Some(PAUSE))
}

/// Selects a congestion control, if one is named. Returns the one in effect, and a note if it is
/// another.
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
