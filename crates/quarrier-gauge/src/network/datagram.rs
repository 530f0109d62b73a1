//! Datagrams over UDP, as fast as they go; some are lost, and are counted.
//!
//! ```text
//!  message = number of the datagram, 8 bytes | seed, 8 bytes | payload at 64 × (number mod 64)
//! ```
//!
//! Messages of less than 16 bytes carry as much of it as they can.

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
/// Payloads begin at this many places.
const PLACES: u64 = 64;
/// As far as the payload of a datagram reaches.
const PAYLOAD_BYTES_MAX: usize = 64 * PLACES as usize + DATAGRAM_BYTES_MAX;
/// Sent in one call, or between two looks at the clock, about.
const CALL_BYTES: usize = 256 << 10;
const CALL_BUFFERS: usize = 32;
/// Datagrams received in one call, at most; and their buffers' size, so that they stay in the
/// processor's cache (64 KiB over the loopback: 5.4 GB/s; with eight buffers, and one datagram in 16
/// compared whole, 5.1).
const RECEIVED_BUFFERS: usize = 8;
const RECEIVED_BYTES: usize = 128 << 10;
/// So long after the end datagrams may still come.
const QUIET: Duration = Duration::from_millis(40);
/// One in this many datagrams is compared whole, the others at a few places.
const WHOLE_EACH: u64 = 256;

/// The datagrams sent, how, and in what time.
pub(super) struct Sent {
    pub(super) datagrams: u64,
    pub(super) seconds: f64,
    /// The system calls that did it.
    pub(super) calls: &'static str,
}

/// The header of datagram `number`.
pub(super) fn header(number: u64, seed: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&number.to_le_bytes());
    header[8..].copy_from_slice(&seed.to_le_bytes());
    header
}

/// Where the payload of datagram `number` begins.
pub(super) fn place(number: u64) -> u64 {
    64 * (number % PLACES)
}

/// Sends datagrams as long as the schedule says.
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
            // Not over this link, which is known only when it is tried.
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

/// Sends long datagrams by pages, as long as the schedule says. Returns how many.
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
                // Whether the header still waits is not known: this was the last one.
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

    /// Returns how many datagrams were taken.
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

/// Receives until the guest has ended and nothing more comes, and accounts for it.
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
                    guest.go_on(heard)?;
                }
            }
            Err(error) if is_pause(&error) => {
                if control.has_ended()? && heard.elapsed() >= QUIET {
                    break;
                }
                guest.go_on(heard)?;
            }
            // A datagram that the guest refused comes back as this error.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => guest.go_on(heard)?,
            Err(error) => return Err(format!("cannot receive: {error}")),
        }
    }
    account.span_ns = span.map_or(0, |(first, last)| (last - first).as_nanos() as u64);
    Ok(account)
}

/// A socket that only the guest's datagrams reach; the guest learns its port.
pub(super) fn open(guest: &Guest<'_>) -> std::result::Result<UdpSocket, String> {
    let failed = |error: io::Error| format!("cannot open a port for datagrams: {error}");
    if guest.hello.message_bytes as usize > DATAGRAM_BYTES_MAX {
        super::guest::refuse(&guest.stream, "datagrams that long are not");
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

/// The number that a datagram carries, if it is long enough for one.
pub(super) fn number_of(datagram: &[u8]) -> Option<u64> {
    datagram.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Whether a datagram equals the one sent under this number.
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

/// Sees on the connection that the guest has sent all.
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

    /// Whether the guest has said so by now. An error if it said something else, or went.
    pub(super) fn has_ended(&mut self) -> std::result::Result<bool, String> {
        if self.read == FRAME_BYTES {
            return Ok(true);
        }
        let mut stream = self.stream;
        match io::Read::read(&mut stream, &mut self.frame[self.read..]) {
            Ok(0) => return Err("the guest went before the end".to_owned()),
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
