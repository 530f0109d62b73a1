//! Splits incoming bytes into messages, and sends outgoing bytes.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use crate::board::{Board, add};
use crate::failure::{Failure, Result, state};
use crate::protocol::{MessageBuffer, Opening, framed, opening};
use crate::shared::{Held, Shared};

use super::socket::Socket;

/// Maximum length of messages that need no reserved memory.
const SMALL_BYTES: usize = 64 << 10;
/// Maximum bytes to read ahead while a statement runs.
const AHEAD_BYTES: usize = 64 << 10;
/// Minimum free space of the buffer before a read.
const READ_BYTES: usize = 4 << 10;
/// Minimum free space while rows of a COPY arrive.
const BULK_READ_BYTES: usize = 64 << 10;
/// Bytes to read at once for a large message.
const LARGE_READ_BYTES: usize = 256 << 10;

/// The bytes of a connection in both directions.
pub(super) struct Wire {
    pub(super) socket: Socket,
    pub(super) out: MessageBuffer,
    came: BytesMut,
    /// Bytes that the current message takes.
    wanted: usize,
    /// Whether the client sends many messages in a row, so that large reads save system calls.
    pub(super) is_bulk: bool,
    held: Option<Held>,
    pub(super) board: Option<Arc<Board>>,
}

/// A complete message.
pub(super) struct ClientMessage {
    pub(super) kind: u8,
    pub(super) body: Bytes,
    /// The memory reserved for it.
    pub(super) held: Option<Held>,
}

impl Wire {
    pub(super) fn new(socket: Socket) -> Self {
        Wire {
            socket,
            out: MessageBuffer::default(),
            came: BytesMut::new(),
            wanted: 0,
            is_bulk: false,
            held: None,
            board: None,
        }
    }

    /// Decodes the first message of a client; `None` if it is incomplete.
    pub(super) fn opening(&mut self) -> Result<Option<Opening>> {
        let Some((opening, length)) = opening(&self.came)? else { return Ok(None) };
        let _ = self.came.split_to(length);
        Ok(Some(opening))
    }

    /// Whether no bytes are left in the buffer. Bytes that arrived before a connection was encrypted
    /// must not count as encrypted.
    pub(super) fn is_empty(&self) -> bool {
        self.came.is_empty()
    }

    /// Whether a part of a message has arrived.
    pub(super) fn has_begun(&self) -> bool {
        !self.came.is_empty()
    }

    /// Returns a message of at most `bytes_max` bytes, if one has arrived.
    pub(super) fn take_small(&mut self, bytes_max: usize) -> Result<Option<(u8, Bytes)>> {
        let Some((kind, length)) = framed(&self.came, bytes_max)? else { return Ok(None) };
        if self.came.len() < length {
            return Ok(None);
        }
        let mut message = self.came.split_to(length).freeze();
        Ok(Some((kind, message.split_off(5))))
    }

    /// Returns the next message, if it has arrived.
    pub(super) fn take(&mut self, shared: &Arc<Shared>) -> Result<Option<ClientMessage>> {
        let Some((_, length)) = framed(&self.came, shared.limits.message_bytes_max)? else {
            return Ok(None);
        };
        self.wanted = length;
        if length > SMALL_BYTES && self.held.is_none() {
            let held = shared.hold(length);
            self.held = Some(held.ok_or_else(|| {
                Failure::fatal(state::MEMORY, "too many large messages are on their way")
            })?);
        }
        if self.came.len() < length {
            return Ok(None);
        }
        self.wanted = 0;
        let kind = self.came[0];
        let mut message = self.came.split_to(length).freeze();
        Ok(Some(ClientMessage { kind, body: message.split_off(5), held: self.held.take() }))
    }

    /// Frees memory that an idle connection does not need.
    pub(super) fn rest(&mut self) {
        if self.came.is_empty() {
            self.came = BytesMut::new();
        }
    }

    /// Waits for more bytes. Returns false if the client disconnected.
    pub(super) async fn more(&mut self) -> io::Result<bool> {
        let missing = self.wanted.saturating_sub(self.came.len());
        let least = if self.is_bulk { BULK_READ_BYTES } else { READ_BYTES };
        let room = missing.clamp(least, LARGE_READ_BYTES);
        // An idle connection has no buffer: allocate one when there is something to read.
        if self.came.capacity() == 0
            && let Socket::Plain(stream) = &self.socket
        {
            stream.readable().await?;
        }
        self.came.reserve(room);
        let read = self.socket.read_buf(&mut self.came).await?;
        if let Some(board) = &self.board {
            add(&board.counts.bytes_received, read as u64);
        }
        Ok(read > 0)
    }

    /// Returns when the client disconnects.
    pub(super) async fn left(&mut self) {
        loop {
            if self.came.len() >= AHEAD_BYTES {
                // The client sends without end; a disconnection shows when its bytes are read
                // again.
                return std::future::pending().await;
            }
            if !matches!(self.more().await, Ok(true)) {
                return;
            }
        }
    }

    /// Encrypts the connection from now on.
    pub(super) async fn encrypt(&mut self, tls: &TlsAcceptor) -> io::Result<()> {
        if let Socket::Plain(stream) = std::mem::replace(&mut self.socket, Socket::Gone) {
            self.socket = Socket::Tls(Box::new(tls.accept(stream).await?));
        }
        Ok(())
    }

    /// Sends a part of the pending output.
    pub(super) async fn send_some(&mut self) -> io::Result<()> {
        let sent = self.socket.write(self.out.waiting()).await?;
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.out.advance(sent);
        if let Some(board) = &self.board {
            add(&board.counts.bytes_sent, sent as u64);
        }
        if self.out.waiting().is_empty() {
            self.socket.flush().await?;
        }
        Ok(())
    }

    /// Sends all pending output.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        while !self.out.waiting().is_empty() {
            self.send_some().await?;
        }
        self.socket.flush().await
    }
}
