//! Many datagrams per system call.
//!
//! `sendmmsg` and `recvmmsg` take several buffers at once. Where the kernel has segmentation for UDP
//! (since 4.18; for receiving since 5.0), it cuts one buffer of up to 64 KiB into datagrams of equal
//! length, and may join received ones into one buffer again.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::ptr;

/// Maximum number of datagrams per buffer: the limit of older kernels.
const SEGMENTS_MAX: usize = 64;
/// Maximum number of bytes per buffer: the limit of one datagram.
const SEGMENTS_BYTES_MAX: usize = 65_507;
/// Room for one control message that carries a length.
const CONTROL_BYTES: usize = 64;

/// Room for a control message, aligned as the kernel requires.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

/// Returns how many datagrams of this length one buffer can hold; 1 if the kernel cannot cut it.
pub(super) fn segments(socket: &UdpSocket, message_bytes: usize) -> usize {
    let most = (SEGMENTS_BYTES_MAX / message_bytes).min(SEGMENTS_MAX);
    // A length of 0 changes nothing; the call only reveals whether the kernel supports the option.
    if most > 1 && set_option(socket, libc::UDP_SEGMENT, 0).is_ok() { most } else { 1 }
}

/// Lets the kernel join datagrams of equal length in one buffer. Kernels that cannot do so deliver them
/// individually.
pub(super) fn receive_joined(socket: &UdpSocket) {
    let _ = set_option(socket, libc::UDP_GRO, 1);
}

fn set_option(socket: &UdpSocket, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the option's value is an int, which is readable during the call, and the length given
    // is that of an int.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_UDP,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends buffers. Each consists of pieces and is cut into datagrams.
pub(super) struct Sender {
    headers: Vec<libc::mmsghdr>,
    pieces: Vec<libc::iovec>,
    control: Control,
    pieces_each: usize,
}

impl Sender {
    /// Makes a sender for calls with `buffers` of `pieces_each` pieces.
    pub(super) fn new(buffers: usize, pieces_each: usize) -> Sender {
        // SAFETY: zeros are a valid `mmsghdr`: integers, null pointers, and lengths of 0.
        let header: libc::mmsghdr = unsafe { zeroed() };
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        Sender {
            headers: vec![header; buffers],
            pieces: vec![empty; buffers * pieces_each],
            control: Control([0; CONTROL_BYTES]),
            pieces_each,
        }
    }

    /// Sends `pieces` as buffers, each cut into datagrams of `segment_bytes` if given. Returns how many
    /// buffers the kernel took.
    pub(super) fn send<'a>(
        &mut self,
        socket: &UdpSocket,
        pieces: impl Iterator<Item = &'a [u8]>,
        segment_bytes: Option<u16>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for (slot, piece) in self.pieces.iter_mut().zip(pieces) {
            *slot =
                libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() };
            count += 1;
        }
        let buffers = count / self.pieces_each;
        let control_bytes = segment_bytes.map_or(0, |bytes| self.put_segment(bytes));
        for (index, header) in self.headers[..buffers].iter_mut().enumerate() {
            let first = index * self.pieces_each;
            header.msg_hdr.msg_iov = self.pieces[first..].as_mut_ptr();
            header.msg_hdr.msg_iovlen = self.pieces_each as _;
            header.msg_hdr.msg_control = match control_bytes {
                0 => ptr::null_mut(),
                _ => self.control.0.as_mut_ptr().cast(),
            };
            header.msg_hdr.msg_controllen = control_bytes as _;
        }
        // SAFETY: `headers` has at least `buffers` initialised headers. Each points to
        // `pieces_each` pieces and at most one control message, which live in `self` and do not
        // move during the call; the pieces point to slices of `'a`, which outlives the call. The
        // kernel only reads them, and writes only the lengths in the headers.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                buffers as libc::c_uint,
                0,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Writes the control message with the length of a datagram. Returns the message's length.
    fn put_segment(&mut self, bytes: u16) -> usize {
        // SAFETY: these functions only compute lengths.
        let (whole, length) = unsafe { (libc::CMSG_SPACE(2), libc::CMSG_LEN(2)) };
        let header = libc::cmsghdr {
            cmsg_len: length as _,
            cmsg_level: libc::IPPROTO_UDP,
            cmsg_type: libc::UDP_SEGMENT,
        };
        let start = self.control.0.as_mut_ptr();
        // SAFETY: the room is 64 bytes, aligned to 8: enough for a header and the two bytes that
        // CMSG_DATA finds after it, `whole` bytes in all. The write of the header is aligned, that of
        // the length needs no alignment.
        unsafe {
            start.cast::<libc::cmsghdr>().write(header);
            let data = libc::CMSG_DATA(start.cast());
            data.cast::<u16>().write_unaligned(bytes);
        }
        whole as usize
    }
}

/// Receives buffers.
pub(super) struct Receiver {
    headers: Vec<libc::mmsghdr>,
    pieces: Vec<libc::iovec>,
    controls: Vec<Control>,
    bytes: Vec<u8>,
    each_bytes: usize,
}

impl Receiver {
    /// Makes a receiver for calls that return up to `buffers` buffers of at most `each_bytes`.
    pub(super) fn new(buffers: usize, each_bytes: usize) -> Receiver {
        // SAFETY: zeros are a valid `mmsghdr`: integers, null pointers, and lengths of 0.
        let header: libc::mmsghdr = unsafe { zeroed() };
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        Receiver {
            headers: vec![header; buffers],
            pieces: vec![empty; buffers],
            controls: vec![Control([0; CONTROL_BYTES]); buffers],
            bytes: vec![0; buffers * each_bytes],
            each_bytes,
        }
    }

    /// Waits for at least one buffer, within the socket's time limit, and passes each datagram to
    /// `take`.
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let room = self.bytes.chunks_exact_mut(self.each_bytes);
        let parts = room.zip(&mut self.pieces).zip(&mut self.controls).zip(&mut self.headers);
        for (((room, piece), control), header) in parts {
            *piece = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            header.msg_hdr.msg_iov = piece;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
        }
        // SAFETY: all `headers` were just set: each points to a piece and a control message with
        // their lengths, and the piece to a part of `bytes` of its own. All of them live in `self`,
        // which is borrowed mutably, and do not move during the call. A null timeout is allowed.
        let came = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                libc::MSG_WAITFORONE,
                ptr::null_mut(),
            )
        };
        let came = usize::try_from(came).map_err(|_| io::Error::last_os_error())?;
        let buffers = self.bytes.chunks_exact(self.each_bytes).zip(&self.headers).take(came);
        for (bytes, header) in buffers {
            let bytes = &bytes[..(header.msg_len as usize).min(self.each_bytes)];
            match segment_bytes(&header.msg_hdr) {
                Some(segment) => bytes.chunks(segment).for_each(&mut take),
                None => take(bytes),
            }
        }
        Ok(())
    }
}

/// Returns the length of each datagram of a buffer, if several were joined.
fn segment_bytes(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel filled the control messages of `header` within the room that it was given
    // and set their length; that room lives in `Receiver::controls`. CMSG_FIRSTHDR and CMSG_NXTHDR
    // return null or a header within that length. A message of the type UDP_GRO has an int as data.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::IPPROTO_UDP && (*message).cmsg_type == libc::UDP_GRO {
                let bytes = libc::CMSG_DATA(message).cast::<libc::c_int>().read_unaligned();
                return usize::try_from(bytes).ok().filter(|&bytes| bytes > 0);
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    None
}
