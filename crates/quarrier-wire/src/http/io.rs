//! Implements hyper's I/O and timer traits with tokio. Drops clients that read nothing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Read, ReadBufCursor, Sleep, Timer, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::board::{Board, add};
use crate::session::AnySocket;
use crate::shared::Shared;

/// Bytes to read at once.
const READ_BYTES: usize = 16 << 10;

/// The bytes of a connection.
pub(super) struct Io {
    socket: AnySocket,
    send_time: Duration,
    /// The deadline for sending, while a write is pending.
    patience: Option<Pin<Box<tokio::time::Sleep>>>,
    board: Arc<Board>,
}

impl Io {
    pub(super) fn new(socket: AnySocket, shared: &Shared) -> Self {
        let (send_time, board) = (shared.limits.send_time, Arc::clone(&shared.board));
        Io { socket, send_time, patience: None, board }
    }

    /// Fails once the client has read nothing for too long.
    fn wait<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let send_time = self.send_time;
        let patience = self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep(send_time)));
        ready!(patience.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Read for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut room = [0; READ_BYTES];
        let most = room.len().min(cursor.remaining());
        let mut buffer = ReadBuf::new(&mut room[..most]);
        ready!(Pin::new(&mut this.socket).poll_read(context, &mut buffer))?;
        add(&this.board.counts.bytes_received, buffer.filled().len() as u64);
        cursor.put_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }
}

impl Write for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match Pin::new(&mut this.socket).poll_write(context, bytes) {
            Poll::Pending => this.wait(context),
            Poll::Ready(sent) => {
                this.patience = None;
                if let Ok(sent) = sent {
                    add(&this.board.counts.bytes_sent, sent as u64);
                }
                Poll::Ready(sent)
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }
}

/// tokio's clock for hyper.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock;

struct Asleep(Pin<Box<tokio::time::Sleep>>);

impl Future for Asleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl Sleep for Asleep {}

impl Timer for Clock {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Asleep(Box::pin(tokio::time::sleep(time))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Asleep(Box::pin(tokio::time::sleep_until(deadline.into()))))
    }
}
