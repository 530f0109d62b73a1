"""Messages between processes: pickled objects and descriptors over a socket."""

from __future__ import annotations

import array
import os
import pickle
import select
import socket
import struct
from typing import Any

_HEAD = struct.Struct("<QI")
DESCRIPTORS_MAX = 250  # in one message; the system's limit is 253
_ANCILLARY_BYTES = socket.CMSG_SPACE(DESCRIPTORS_MAX * array.array("i").itemsize)
_READ_BYTES = 1 << 18


class Closed(Exception):  # noqa: N818 (not an error: the other side is gone)
    """The other side has closed its end or has died."""


class Channel:
    """One end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._held = bytearray()
        self.ended = False

    def fileno(self) -> int:
        """The descriptor of this end."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes this end."""
        self._socket.close()

    def send(self, message: Any, descriptors: tuple[int, ...] = ()) -> None:
        """Sends a message; waits until it is received or buffered."""
        self.send_bytes(pickle.dumps(message, 5), descriptors)

    def send_bytes(self, data: bytes, descriptors: tuple[int, ...] = ()) -> None:
        """Sends a message that is already pickled."""
        head = _HEAD.pack(len(data), len(descriptors))
        try:
            sent = 0
            if descriptors:
                sent = socket.send_fds(self._socket, [head, data], descriptors)
            message = head + data
            if sent < len(message):
                self._socket.sendall(memoryview(message)[sent:])
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def has_news(self, seconds: float) -> bool:
        """Whether a message, or the end, arrives within so many seconds."""
        # Not select(), which does not support descriptors above 1,023.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(1e3 * seconds))

    def receive(self) -> tuple[Any, list[int]]:
        """Waits for a message; the caller owns the descriptors that come with it."""
        head, descriptors = self._receive_head()
        length, count = _HEAD.unpack(head)
        if len(descriptors) != count:
            for descriptor in descriptors:
                os.close(descriptor)
            raise OSError(f"{count} descriptors were sent, {len(descriptors)} arrived")
        return pickle.loads(self._receive_exactly(length)), descriptors

    def _receive_head(self) -> tuple[bytes, list[int]]:
        head, descriptors = b"", list[int]()
        while len(head) < _HEAD.size:
            part, ancillary, _, _ = self._receive_message(_HEAD.size - len(head))
            for level, kind, data in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    numbers = array.array("i")
                    numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
                    descriptors.extend(numbers)
            if not part:
                raise Closed
            head += part
        return head, descriptors

    def _receive_message(self, size: int) -> Any:
        try:
            return self._socket.recvmsg(size, _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            raise Closed from None

    def _receive_exactly(self, length: int) -> bytearray:
        data = bytearray(length)
        rest = memoryview(data)
        while rest:
            try:
                count = self._socket.recv_into(rest)
            except ConnectionResetError:
                raise Closed from None
            if count == 0:
                raise Closed
            rest = rest[count:]
        return data

    def arrived(self) -> list[Any]:
        """The complete messages received so far, without waiting; they carry no descriptors.

        `ended` is set when no more can come.
        """
        while True:
            try:
                part = self._socket.recv(_READ_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except ConnectionResetError:
                part = b""
            if not part:
                self.ended = True
                break
            self._held += part
            if len(part) < _READ_BYTES:
                break
        messages = []
        begin = 0
        while len(self._held) - begin >= _HEAD.size:
            length, _ = _HEAD.unpack_from(self._held, begin)
            end = begin + _HEAD.size + length
            if len(self._held) < end:
                break
            with memoryview(self._held) as held, held[begin + _HEAD.size : end] as message:
                messages.append(pickle.loads(message))
            begin = end
        if begin:
            del self._held[:begin]
        return messages


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets, closed in programs that this process starts."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
