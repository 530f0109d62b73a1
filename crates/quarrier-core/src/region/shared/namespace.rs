//! Mounting without privileges: a child process creates a user namespace, in which it is root,
//! mounts there, sends the mount's descriptor back and exits.
//!
//! The child is a copy of a single thread, so it makes system calls only: it allocates no memory
//! and takes no lock. The program's own `wait` calls do not see it, and its exit sends no signal.

use std::ffi::CStr;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::thread::UnshareFlags;

use super::huge;

/// The process's identity outside the namespace, in the format of `/proc/self/uid_map`.
struct Identity {
    uid_map: String,
    gid_map: String,
}

/// As [`huge::mount`], in a new namespace.
pub(super) fn mount() -> rustix::io::Result<OwnedFd> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    // The process creates files in the mount under its own ids, so the namespace must map them.
    let identity = Identity {
        uid_map: format!("{0} {0} 1", uid.as_raw()),
        gid_map: format!("{0} {0} 1", gid.as_raw()),
    };
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let signals = block_signals();
    // SAFETY: all arguments are 0, so the child runs on a copy of this memory and stack, as after
    // fork, but without `pthread_atfork` handlers and without a signal at its exit. It has one
    // thread, so it may only make async-signal-safe calls: it runs `serve`, which makes only system
    // calls, and `_exit`.
    let child = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
    if child == 0 {
        let status = serve(&identity, theirs.as_fd()).err().map_or(0, Errno::raw_os_error);
        // SAFETY: `_exit` has no conditions: it ends the child without running exit handlers.
        unsafe { libc::_exit(status) };
    }
    let forked = if child < 0 { Err(last_errno()) } else { Ok(child as libc::pid_t) };
    // SAFETY: `block_signals` initialised `signals`, which is a live local; a null old set is
    // allowed.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &signals, std::ptr::null_mut()) };
    let child = forked?;
    drop(theirs);
    let received = receive(ours.as_fd());
    reap(child)?;
    received
}

/// Runs in the child: mounts, and sends the descriptor.
fn serve(identity: &Identity, socket: BorrowedFd<'_>) -> rustix::io::Result<()> {
    // SAFETY: the child has one thread and shares no memory with the parent, so no other code
    // relies on its namespaces or its credentials.
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    }
    write(c"/proc/self/setgroups", b"deny")?;
    write(c"/proc/self/uid_map", identity.uid_map.as_bytes())?;
    write(c"/proc/self/gid_map", identity.gid_map.as_bytes())?;
    let mount = huge::mount()?;
    let descriptors = [mount.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(&descriptors));
    let byte = [IoSlice::new(&[0])];
    rustix::net::sendmsg(socket, &byte, &mut message, SendFlags::NOSIGNAL).map(|_| ())
}

fn write(path: &CStr, text: &[u8]) -> rustix::io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text).map(|_| ())
}

/// Receives the descriptor from the child.
fn receive(socket: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::io::retry_on_intr(|| {
        let mut into = [IoSliceMut::new(&mut byte)];
        rustix::net::recvmsg(socket, &mut into, &mut message, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut received = message.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.next().ok_or(Errno::PERM)
}

/// Waits for the child, and returns its exit status as an error.
fn reap(child: libc::pid_t) -> rustix::io::Result<()> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live local that the call may write to. `child` is a child of this
        // process that nobody else waits for.
        let waited = unsafe { libc::waitpid(child, &mut status, libc::__WALL) };
        if waited == child {
            break;
        }
        if last_errno() != Errno::INTR {
            return Err(last_errno());
        }
    }
    match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
        Some(0) => Ok(()),
        Some(errno) => Err(Errno::from_raw_os_error(errno)),
        None => Err(Errno::CHILD),
    }
}

/// Blocks all signals of this thread, so that no handler runs in the child, and returns the signal
/// mask from before.
fn block_signals() -> libc::sigset_t {
    // SAFETY: `sigset_t` is a C struct of integers, for which zeros are valid. All pointers are to
    // live locals.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)
}
