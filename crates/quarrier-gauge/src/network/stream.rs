//! TCP streams, as fast as possible.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::frame::{Account, is_pause};
use super::guest::Guest;
use super::link::Link;
use super::payload::Payload;
use crate::error::Result;
use crate::schedule::{Schedule, Turn};

/// Bytes per read.
const READ_BYTES: usize = 128 << 10;
/// One read in this many is compared whole, the others in a few places.
const WHOLE_EACH: u64 = 64;
/// Number of bytes between two readings of the clock.
const UNTIMED_BYTES: usize = 64 << 10;
const UNTIMED: usize = 64;
/// The number of polls, each yielding to other threads, before a receiver sleeps. Over the loopback the
/// sender has to wake a sleeping receiver by an interrupt of the other processor, which is expensive on
/// a virtual machine; under BBR, which paces bytes, it does so each time. With one stream, in GB/s: 2.8
/// without polling, 3.2 with 32 polls, up to 3.6 with 128 (Reno 4.4, 4.8, 4.8; iperf3, which calls
/// `select` first, 3.1 and 4.7). Polling without yielding cost four streams a fifth of their rate.
const LOOKS: u32 = 32;

/// Sends messages by the schedule. Returns the number of bytes.
pub(super) fn send(link: &Link<'_>, payload: &Payload, schedule: &mut Schedule<'_>) -> Result<u64> {
    let message_bytes = link.terms.message_bytes;
    let group = (UNTIMED_BYTES / message_bytes).clamp(1, UNTIMED);
    let mut sent = 0;
    while let Turn::Go(_) = schedule.turn(Instant::now()) {
        for _ in 0..group {
            let end = sent + message_bytes as u64;
            while sent < end {
                let rest = payload.at(sent);
                let part = &rest[..rest.len().min((end - sent) as usize)];
                match (&link.stream).write(part) {
                    Ok(bytes) => sent += bytes as u64,
                    Err(error) if is_pause(&error) => {
                        if let Turn::Over = schedule.turn(Instant::now()) {
                            return Ok(sent);
                        }
                    }
                    Err(error) => return Err(link.failed("send", error)),
                }
            }
        }
    }
    Ok(sent)
}

/// Receives until the stream ends; returns the account.
pub(super) fn receive(guest: &Guest<'_>) -> std::result::Result<Account, String> {
    let payload = Payload::new(guest.hello.seed);
    let mut buffer = vec![0; READ_BYTES];
    let mut account = Account::default();
    let mut reads = 0u64;
    let mut first = None;
    let mut heard = Instant::now();
    while let Some(bytes) = read_some(guest, LOOKS, &mut buffer, &mut heard, reads)? {
        first.get_or_insert_with(Instant::now);
        reads += 1;
        let came = &buffer[..bytes];
        let right = if reads.is_multiple_of(WHOLE_EACH) {
            payload.is_at(account.bytes, came)
        } else {
            payload.is_at_hastily(account.bytes, came)
        };
        account.wrong += u64::from(!right);
        account.bytes += bytes as u64;
    }
    account.messages = account.bytes / u64::from(guest.hello.message_bytes);
    account.span_ns = first.map_or(0, |first| first.elapsed().as_nanos() as u64);
    Ok(account)
}

/// Reads some bytes, or none at the end of the stream. Polls before it sleeps. `heard` is the time of
/// the last bytes.
pub(super) fn read_some(
    guest: &Guest<'_>,
    looks: u32,
    buffer: &mut [u8],
    heard: &mut Instant,
    reads: u64,
) -> std::result::Result<Option<usize>, String> {
    /// Reading the clock at every poll would take time itself.
    const CLOCK_EACH: u64 = 256;
    loop {
        match read_soon(&guest.stream, looks, buffer) {
            Ok(0) => return Ok(None),
            Ok(bytes) => {
                if reads.is_multiple_of(CLOCK_EACH) {
                    *heard = Instant::now();
                    guest.check_alive(*heard)?;
                }
                return Ok(Some(bytes));
            }
            Err(error) if is_pause(&error) => guest.check_alive(*heard)?,
            Err(error) => return Err(format!("cannot read: {error}")),
        }
    }
}

fn read_soon(mut stream: &TcpStream, looks: u32, buffer: &mut [u8]) -> io::Result<usize> {
    for _ in 0..looks {
        match recv(stream, &mut *buffer, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => std::thread::yield_now(),
            came => return Ok(came?.0),
        }
    }
    stream.read(buffer)
}
