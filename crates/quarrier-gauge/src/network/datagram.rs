//! UDP datagrams, sent as fast as possible. Lost ones are counted.
//!
//! ```text
//!  message = number of the datagram, 8 bytes | seed, 8 bytes | payload at 64 × (number mod 64)
//! ```
//!
//! Messages of less than 16 bytes carry as much of it as fits.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::batch::{Receiver, Sender, receive_joined, segments};
use super::frame::{Account, FRAME_BYTES, decode_ended, is_pause};
use super::guest::Guest;
use super::link::{Link, datagram_socket};
use super::pages::{self, Pages};
use super::payload::Payload;
use crate::error::Result;
use crate::schedule::{Schedule, Turn};

/// The longest datagram over IPv4.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
pub(super) const HEADER_BYTES: usize = 16;
/// Number of different places at which payloads begin.
const PLACES: u64 = 64;
/// The payload bytes that datagrams need.
const PAYLOAD_BYTES_MAX: usize = 64 * PLACES as usize + DATAGRAM_BYTES_MAX;
/// Approximate number of bytes sent in one call, or between two readings of the clock.
const CALL_BYTES: usize = 256 << 10;
const CALL_BUFFERS: usize = 32;
/// Maximum number of buffers received in one call. A few stay in the processor's cache (64 KiB over the
/// loopback: 5.4 GB/s; with eight buffers, and one datagram in 16 compared whole, 5.1).
const RECEIVED_BUFFERS: usize = 8;
const RECEIVED_BYTES: usize = 128 << 10;
/// Datagrams may still arrive this long after the end.
const QUIET: Duration = Duration::from_millis(40);
/// One datagram in this many is compared whole, the others in a few places.
const WHOLE_EACH: u64 = 256;

/// The number of datagrams sent, and the time that took.
pub(super) struct Sent {
    pub(super) datagrams: u64,
    pub(super) seconds: f64,
    /// The system calls that sent them.
    pub(super) calls: &'static str,
}

/// The header of datagram `number`.
pub(super) fn header(number: u64, seed: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&number.to_le_bytes());
    header[8..].copy_from_slice(&seed.to_le_bytes());
    header
}

/// The place at which the payload of datagram `number` begins.
pub(super) fn place(number: u64) -> u64 {
    64 * (number % PLACES)
}

/// Sends datagrams by the schedule.
pub(super) fn send(
    link: &Link<'_>,
    socket: &UdpSocket,
    payload: &Payload,
    schedule: &mut Schedule<'_>,
) -> Result<Sent> {
    let start = Instant::now();
    let message_bytes = link.terms.message_bytes;
    if message_bytes >= pages::BYTES_MIN
        && let Ok(pages) = Pages::of(payload, PAYLOAD_BYTES_MAX)
    {
        let datagrams = send_pages(link, socket, &pages, schedule)?;
        let seconds = start.elapsed().as_secs_f64();
        return Ok(Sent { datagrams, seconds, calls: "sendfile" });
    }
    let mut segments = segments(socket, message_bytes);
    let mut sent = 0u64;
    let mut call = Call::new(message_bytes, segments);
    while let Turn::Go(_) = schedule.turn(Instant::now()) {
        match call.send(socket, payload, link.terms.seed, sent) {
            Ok(count) => sent += count,
            // Only an attempt reveals that this link does not support it.
            Err(error) if segments > 1 && !is_pause(&error) => {
                segments = 1;
                call = Call::new(message_bytes, segments);
            }
            Err(error) if is_pause(&error) || error.raw_os_error() == Some(libc::ENOBUFS) => {}
            Err(error) => return Err(link.failed("send a datagram", error)),
        }
    }
    let calls = if segments > 1 { "sendmmsg, segments" } else { "sendmmsg" };
    Ok(Sent { datagrams: sent, seconds: start.elapsed().as_secs_f64(), calls })
}

/// Sends long datagrams by pages, by the schedule. Returns their number.
fn send_pages(
    link: &Link<'_>,
    socket: &UdpSocket,
    pages: &Pages,
    schedule: &mut Schedule<'_>,
) -> Result<u64> {
    let message_bytes = link.terms.message_bytes;
    let mut sent = 0;
    while let Turn::Go(_) = schedule.turn(Instant::now()) {
        for _ in 0..(CALL_BYTES / message_bytes).max(1) {
            let header = header(sent, link.terms.seed);
            match pages.send(socket, &header, place(sent), message_bytes - HEADER_BYTES) {
                Ok(()) => sent += 1,
                // The header may still be queued, so no further datagram can be sent.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(sent),
                Err(error) if is_pause(&error) || error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) => return Err(link.failed("send a datagram", error)),
            }
        }
    }
    Ok(sent)
}

/// The buffers of one system call.
struct Call {
    sender: Sender,
    headers: Vec<[u8; HEADER_BYTES]>,
    message_bytes: usize,
    segments: usize,
}

impl Call {
    fn new(message_bytes: usize, segments: usize) -> Call {
        let buffers = (CALL_BYTES / (message_bytes * segments)).clamp(1, CALL_BUFFERS);
        Call {
            sender: Sender::new(buffers, 2 * segments),
            headers: vec![[0; HEADER_BYTES]; buffers * segments],
            message_bytes,
            segments,
        }
    }

    /// Returns how many datagrams the kernel took.
    fn send(
        &mut self,
        socket: &UdpSocket,
        payload: &Payload,
        seed: u64,
        first: u64,
    ) -> io::Result<u64> {
        for (number, slot) in (first..).zip(&mut self.headers) {
            *slot = header(number, seed);
        }
        let head_bytes = self.message_bytes.min(HEADER_BYTES);
        let rest_bytes = self.message_bytes - head_bytes;
        let pieces = (first..).zip(&self.headers).flat_map(|(number, header)| {
            [&header[..head_bytes], &payload.at(place(number))[..rest_bytes]]
        });
        let segment_bytes = (self.segments > 1).then_some(self.message_bytes as u16);
        let buffers = self.sender.send(socket, pieces, segment_bytes)?;
        Ok((buffers * self.segments) as u64)
    }
}

/// Receives until the client has ended and nothing more arrives; returns the account.
pub(super) fn receive(guest: &Guest<'_>) -> std::result::Result<Account, String> {
    let socket = open(guest)?;
    receive_joined(&socket);
    let payload = Payload::new(guest.hello.seed);
    let message_bytes = guest.hello.message_bytes as usize;
    let buffers = (RECEIVED_BYTES / message_bytes.max(1)).clamp(1, RECEIVED_BUFFERS);
    let mut receiver = Receiver::new(buffers, 1 << 16);
    let mut account = Account::default();
    let mut control = Control::new(&guest.stream)?;
    let mut span: Option<(Instant, Instant)> = None;
    let mut highest = None;
    let mut heard = Instant::now();
    for call in 0u64.. {
        let answer = receiver.receive(&socket, |datagram| {
            take(&payload, guest, datagram, &mut account, &mut highest);
        });
        match answer {
            Ok(()) => {
                heard = Instant::now();
                span = Some((span.map_or(heard, |(first, _)| first), heard));
                if call.is_multiple_of(1024) {
                    guest.check_alive(heard)?;
                }
            }
            Err(error) if is_pause(&error) => {
                if control.has_ended()? && heard.elapsed() >= QUIET {
                    break;
                }
                guest.check_alive(heard)?;
            }
            // The system returns this error after the client refused a datagram.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                guest.check_alive(heard)?
            }
            Err(error) => return Err(format!("cannot receive: {error}")),
        }
    }
    account.span_ns = span.map_or(0, |(first, last)| (last - first).as_nanos() as u64);
    Ok(account)
}

/// Opens a socket that only the client's datagrams reach, and tells the client its port.
pub(super) fn open(guest: &Guest<'_>) -> std::result::Result<UdpSocket, String> {
    let failed = |error: io::Error| format!("cannot open a port for datagrams: {error}");
    if guest.hello.message_bytes as usize > DATAGRAM_BYTES_MAX {
        super::guest::refuse(&guest.stream, "the datagrams are too long");
        return Err(format!("datagrams have at most {DATAGRAM_BYTES_MAX} bytes"));
    }
    let here = guest.stream.local_addr().map_err(failed)?;
    let there = guest.stream.peer_addr().map_err(failed)?;
    let socket = datagram_socket(here.ip()).map_err(failed)?;
    socket.connect(SocketAddr::new(there.ip(), guest.hello.datagram_port)).map_err(failed)?;
    socket.set_read_timeout(Some(QUIET / 2)).map_err(failed)?;
    guest.welcome(socket.local_addr().map_err(failed)?.port())?;
    Ok(socket)
}

fn take(
    payload: &Payload,
    guest: &Guest<'_>,
    datagram: &[u8],
    account: &mut Account,
    highest: &mut Option<u64>,
) {
    account.messages += 1;
    account.bytes += datagram.len() as u64;
    let whole = account.messages.is_multiple_of(WHOLE_EACH);
    let (seed, length) = (guest.hello.seed, guest.hello.message_bytes as usize);
    let number = number_of(datagram);
    if datagram.len() != length || !is_right(payload, seed, datagram, number, whole) {
        account.wrong += 1;
    } else if let Some(number) = number {
        let late = highest.is_some_and(|highest| number <= highest);
        account.late += u64::from(late);
        *highest = (*highest).max(Some(number));
    }
}

/// Returns the number in a datagram, if it is long enough to have one.
pub(super) fn number_of(datagram: &[u8]) -> Option<u64> {
    datagram.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Whether a datagram equals the one that was sent with this number.
pub(super) fn is_right(
    payload: &Payload,
    seed: u64,
    datagram: &[u8],
    number: Option<u64>,
    whole: bool,
) -> bool {
    let Some(number) = number else { return true };
    let (head, rest) = datagram.split_at(datagram.len().min(HEADER_BYTES));
    let at = place(number);
    head == &header(number, seed)[..head.len()]
        && (if whole { payload.is_at(at, rest) } else { payload.is_at_hastily(at, rest) })
}

/// Watches the connection for the client's message that it has sent all datagrams.
pub(super) struct Control<'a> {
    stream: &'a TcpStream,
    frame: [u8; FRAME_BYTES],
    read: usize,
}

impl Control<'_> {
    pub(super) fn new(stream: &TcpStream) -> std::result::Result<Control<'_>, String> {
        let failed = |error| format!("cannot read: {error}");
        stream.set_read_timeout(Some(Duration::from_millis(1))).map_err(failed)?;
        Ok(Control { stream, frame: [0; FRAME_BYTES], read: 0 })
    }

    /// Whether the client has sent that message. An error if it sent another one, or closed the
    /// connection.
    pub(super) fn has_ended(&mut self) -> std::result::Result<bool, String> {
        if self.read == FRAME_BYTES {
            return Ok(true);
        }
        let mut stream = self.stream;
        match io::Read::read(&mut stream, &mut self.frame[self.read..]) {
            Ok(0) => return Err("the client left before the end".to_owned()),
            Ok(bytes) => self.read += bytes,
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(format!("cannot read: {error}")),
        }
        if self.read < FRAME_BYTES {
            return Ok(false);
        }
        decode_ended(self.frame).map(|_| true)
    }
}
