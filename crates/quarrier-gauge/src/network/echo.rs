//! Messages that the other side sends back.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::datagram::{Control, HEADER_BYTES, header, is_right, number_of, open, place};
use super::frame::{Account, is_pause};
use super::guest::Guest;
use super::link::{ANSWER_TIME, Link};
use super::payload::Payload;
use super::stream::read_some;
use crate::error::Result;
use crate::latencies::Latencies;
use crate::schedule::{Schedule, Turn};

/// A message without an answer for this long counts as lost.
const LOST_TIME: Duration = Duration::from_millis(500);
/// Maximum number of messages in flight; beyond it the next ones wait, and their time runs.
const UNANSWERED_MAX: usize = 1024;
const READ_BYTES: usize = 64 << 10;

/// Counts of the messages that came back.
pub(super) struct Echoes {
    pub(super) latencies: Latencies,
    pub(super) answered: u64,
    pub(super) lost: u64,
}

/// Sends each message when it falls due by the schedule, and measures the time from then until its
/// echo. Without an offered rate, it sends each message after the preceding echo.
pub(super) fn ask_stream(
    link: &Link<'_>,
    payload: &Payload,
    closed: bool,
    schedule: &mut Schedule<'_>,
) -> Result<Echoes> {
    let mut stream = EchoRequest {
        link,
        payload,
        message_bytes: link.terms.message_bytes as u64,
        due: VecDeque::new(),
        sent: 0,
        came: 0,
        buffer: vec![0; READ_BYTES],
        latencies: Latencies::new()?,
    };
    loop {
        let full = stream.due.len() >= if closed { 1 } else { UNANSWERED_MAX };
        let turn = if full { Turn::Wait(far()) } else { schedule.turn(Instant::now()) };
        match turn {
            Turn::Go(since) => stream.send(since)?,
            Turn::Wait(_) if closed => stream.read()?,
            Turn::Wait(due) => {
                if stream.is_readable(due)? {
                    stream.read()?;
                }
            }
            Turn::Over if stream.due.is_empty() => break,
            Turn::Over => stream.read()?,
        }
    }
    let answered = stream.came / stream.message_bytes;
    Ok(Echoes { latencies: stream.latencies, answered, lost: 0 })
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(1)
}

/// A stream of messages and their echoes.
struct EchoRequest<'a> {
    link: &'a Link<'a>,
    payload: &'a Payload,
    message_bytes: u64,
    /// The due times of messages in flight.
    due: VecDeque<Instant>,
    sent: u64,
    came: u64,
    buffer: Vec<u8>,
    latencies: Latencies,
}

impl EchoRequest<'_> {
    fn send(&mut self, since: Instant) -> Result<()> {
        let end = self.sent + self.message_bytes;
        let start = Instant::now();
        while self.sent < end {
            let rest = self.payload.at(self.sent);
            let part = &rest[..rest.len().min((end - self.sent) as usize)];
            match (&self.link.stream).write(part) {
                Ok(bytes) => self.sent += bytes as u64,
                // The other side may wait until its answers are read.
                Err(error) if is_pause(&error) => {
                    self.in_time(start)?;
                    if self.is_readable(Instant::now())? {
                        self.read()?;
                    }
                }
                Err(error) => return Err(self.link.failed("send", error)),
            }
        }
        self.due.push_back(since);
        Ok(())
    }

    /// Returns whether there is anything to read, by `until` at the latest.
    fn is_readable(&self, until: Instant) -> Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        let mut ready = [PollFd::new(&self.link.stream, PollFlags::IN)];
        match poll(&mut ready, Some(&wait)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(self.link.failed("wait for an answer", error.into())),
        }
    }

    /// Reads what has arrived, or waits for it; records the times of whole messages.
    fn read(&mut self) -> Result<()> {
        let start = Instant::now();
        let bytes = loop {
            match (&self.link.stream).read(&mut self.buffer) {
                Ok(0) => return Err(self.link.peer("ended the session early")),
                Ok(bytes) => break bytes,
                Err(error) if is_pause(&error) => self.in_time(start)?,
                Err(error) => return Err(self.link.failed("read an answer", error)),
            }
        };
        let now = Instant::now();
        if !self.payload.is_at(self.came, &self.buffer[..bytes]) {
            return Err(self.link.peer("sent back different bytes"));
        }
        let before = self.came / self.message_bytes;
        self.came += bytes as u64;
        for _ in before..self.came / self.message_bytes {
            let Some(since) = self.due.pop_front() else {
                return Err(self.link.peer("sent back more than it was sent"));
            };
            self.latencies.record(now.saturating_duration_since(since));
        }
        Ok(())
    }

    fn in_time(&self, start: Instant) -> Result<()> {
        if self.link.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(crate::Error::Stopped);
        }
        if start.elapsed() > ANSWER_TIME {
            return Err(self.link.peer("does not answer"));
        }
        Ok(())
    }
}

/// Sends datagrams, each after the preceding echo; one without an echo within half a second counts as
/// lost.
pub(super) fn ask_datagrams(
    link: &Link<'_>,
    socket: &UdpSocket,
    payload: &Payload,
    schedule: &mut Schedule<'_>,
) -> Result<Echoes> {
    let failed = |error| link.failed("ask by datagram", error);
    socket.set_read_timeout(Some(LOST_TIME)).map_err(failed)?;
    let mut echoes = Echoes { latencies: Latencies::new()?, answered: 0, lost: 0 };
    let mut message = vec![0; link.terms.message_bytes];
    let mut buffer = vec![0; 1 << 16];
    let mut number = 0;
    while let Turn::Go(since) = schedule.turn(Instant::now()) {
        let head_bytes = message.len().min(HEADER_BYTES);
        let (head, rest) = message.split_at_mut(head_bytes);
        head.copy_from_slice(&header(number, link.terms.seed)[..head_bytes]);
        rest.copy_from_slice(&payload.at(place(number))[..rest.len()]);
        socket.send(&message).map_err(failed)?;
        match await_datagram(socket, &message, &mut buffer, since) {
            Ok(()) => {
                echoes.latencies.record(since.elapsed());
                echoes.answered += 1;
            }
            Err(error) if is_pause(&error) => echoes.lost += 1,
            Err(error) => return Err(failed(error)),
        }
        number += 1;
    }
    Ok(echoes)
}

/// Waits for this message; others are late answers to earlier ones.
fn await_datagram(
    socket: &UdpSocket,
    message: &[u8],
    buffer: &mut [u8],
    since: Instant,
) -> io::Result<()> {
    loop {
        let bytes = socket.recv(buffer)?;
        if buffer[..bytes] == *message {
            return Ok(());
        }
        if since.elapsed() > LOST_TIME {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// Sends everything back until the stream ends.
pub(super) fn stream(guest: &Guest<'_>) -> std::result::Result<Account, String> {
    let failed = |error| format!("cannot send back: {error}");
    guest.stream.set_nodelay(true).map_err(failed)?;
    let mut buffer = vec![0; READ_BYTES];
    let mut account = Account::default();
    let mut heard = Instant::now();
    while let Some(bytes) = read_some(guest, 0, &mut buffer, &mut heard, 0)? {
        let mut rest = &buffer[..bytes];
        while !rest.is_empty() {
            match (&guest.stream).write(rest) {
                Ok(bytes) => rest = &rest[bytes..],
                Err(error) if is_pause(&error) => guest.check_alive(heard)?,
                Err(error) => return Err(failed(error)),
            }
        }
        account.bytes += bytes as u64;
    }
    account.messages = account.bytes / u64::from(guest.hello.message_bytes);
    Ok(account)
}

/// Sends back the datagrams of a gauge until the client has ended.
pub(super) fn datagrams(guest: &Guest<'_>) -> std::result::Result<Account, String> {
    let socket = open(guest)?;
    let payload = Payload::new(guest.hello.seed);
    let mut control = Control::new(&guest.stream)?;
    let mut buffer = vec![0; 1 << 16];
    let mut account = Account::default();
    let mut heard = Instant::now();
    loop {
        match socket.recv(&mut buffer) {
            Ok(bytes) => {
                let message = &buffer[..bytes];
                if !is_right(&payload, guest.hello.seed, message, number_of(message), true) {
                    account.wrong += 1;
                    continue;
                }
                // A datagram that cannot be sent is a lost one.
                let _ = socket.send(message);
                heard = Instant::now();
                guest.check_alive(heard)?;
                account.messages += 1;
                account.bytes += bytes as u64;
            }
            Err(error) if is_pause(&error) => {
                if control.has_ended()? {
                    return Ok(account);
                }
                guest.check_alive(heard)?;
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                guest.check_alive(heard)?
            }
            Err(error) => return Err(format!("cannot receive: {error}")),
        }
    }
}
