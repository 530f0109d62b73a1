//! A private `tmpfs` whose files have huge pages; it is not attached to any folder.
//!
//! A memfd has huge pages only if the administrator enabled them for the whole system. A mount can
//! enable them for itself, and a process may mount if it is root: in the system, or in a user
//! namespace created by its child (see `namespace`). The process mounts once and keeps the
//! descriptor, which forked children inherit. It uses no lock, since a fork could leave it locked.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use super::file::page_bytes;
use super::{HUGE_PAGE_BYTES, namespace};
use crate::error::plain;

/// The outcome of the attempt to mount.
enum Attempt {
    Mounted {
        mount: RawFd,
        /// The device number of the mount, to check that the descriptor still refers to it: a
        /// program that closes all unknown descriptors may have put another file in its place.
        device: u64,
    },
    Refused(String),
}

/// The current attempt. Attempts are never freed, because other threads may be reading them. A
/// process makes one attempt, and one more whenever other code closed the mount.
static ATTEMPT: AtomicPtr<Attempt> = AtomicPtr::new(ptr::null_mut());

/// Returns an unnamed, empty file on huge pages; `None` if the system refuses.
pub(super) fn file() -> Option<OwnedFd> {
    for _ in 0..2 {
        let known = ATTEMPT.load(Ordering::Acquire);
        // SAFETY: `known` is null, or `publish` made it from `Box::into_raw` and it is never freed,
        // so it is aligned and valid for `'static`. Acquire pairs with the release in `publish`.
        match unsafe { known.as_ref() } {
            Some(Attempt::Refused(_)) => return None,
            Some(Attempt::Mounted { mount, device }) => {
                // SAFETY: the descriptor is not -1, and this process never closes it. Other code
                // may have closed it, or put another file in its place: then `openat` fails, or
                // creates a file on another device, which the check of `found` discards.
                let mount = unsafe { BorrowedFd::borrow_raw(*mount) };
                match file_in(mount) {
                    Ok((file, found)) if found == *device => return Some(file),
                    Err(error) if is_passing(error) => return None,
                    _ => {}
                }
            }
            None => {}
        }
        publish(known, attempt()?);
    }
    None
}

/// Returns why huge pages are not available, if the process has tried.
pub(super) fn refused() -> Option<&'static str> {
    // SAFETY: the pointer is null, or `publish` made it from `Box::into_raw` and it is never freed,
    // so it is aligned and valid for `'static`. Acquire pairs with the release in `publish`.
    match unsafe { ATTEMPT.load(Ordering::Acquire).as_ref() } {
        Some(Attempt::Refused(reason)) => Some(reason),
        Some(Attempt::Mounted { .. }) | None => None,
    }
}

/// Makes `attempt` the current one, unless another thread was first.
fn publish(known: *mut Attempt, attempt: Attempt) {
    let attempt = Box::into_raw(Box::new(attempt));
    if ATTEMPT.compare_exchange(known, attempt, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // SAFETY: `Box::into_raw` returned the pointer above, and the exchange failed, so nobody
        // else has it.
        if let Attempt::Mounted { mount, .. } = *unsafe { Box::from_raw(attempt) } {
            // SAFETY: `attempt` is owned here, and with it the descriptor that `into_raw_fd`
            // released, open and not shared.
            drop(unsafe { OwnedFd::from_raw_fd(mount) });
        }
    }
}

/// Whether an error is temporary and does not predict the next attempt.
fn is_passing(error: Errno) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN].contains(&error)
}

/// Mounts, here or in a namespace, and tries to create a file. Returns `None` if a later attempt
/// may succeed.
fn attempt() -> Option<Attempt> {
    let mounted = match mount() {
        Err(Errno::PERM | Errno::ACCESS) => namespace::mount(),
        answer => answer,
    };
    let tried = mounted.and_then(|mount| Ok((file_in(mount.as_fd())?, mount)));
    Some(match tried {
        Ok(((file, device), mount)) if page_bytes(&file).ok()? == HUGE_PAGE_BYTES => {
            Attempt::Mounted { mount: mount.into_raw_fd(), device }
        }
        Ok(_) => Attempt::Refused(
            "the system denies huge pages to shared memory \
             (/sys/kernel/mm/transparent_hugepage/shmem_enabled)"
                .to_string(),
        ),
        Err(error) if is_passing(error) => return None,
        Err(error) => Attempt::Refused(format!(
            "the process may not mount a private tmpfs: {}",
            plain(&error.into())
        )),
    })
}

/// Mounts the file system without attaching it to a folder. Makes system calls only, so a child
/// forked from a process with many threads may call it.
pub(super) fn mount() -> rustix::io::Result<OwnedFd> {
    let fs = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let settings =
        [(c"huge", c"always"), (c"size", c"0"), (c"nr_inodes", c"0"), (c"mode", c"0700")];
    for (key, value) in settings {
        rustix::mount::fsconfig_set_string(&fs, key, value)?;
    }
    rustix::mount::fsconfig_create(&fs)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    rustix::mount::fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Creates a file in the mount; returns it and its device number.
fn file_in(mount: BorrowedFd<'_>) -> rustix::io::Result<(OwnedFd, u64)> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(mount, c".", flags, Mode::RUSR | Mode::WUSR)?;
    let device = rustix::fs::fstat(&file)?.st_dev;
    Ok((file, device))
}
