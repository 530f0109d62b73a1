//! A `tmpfs` of the process's own whose files have huge pages; it is mounted nowhere.
//!
//! A memfd has huge pages only if the administrator enabled them for the whole system. A mount may
//! enable them for itself, and a process may mount where it is root: in the system, or in a user
//! namespace that a child of it creates (see `namespace`). The mount is made once and kept as a
//! descriptor, by forked children too. There is no lock, since a fork would leave it locked.

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
        /// Tells whether the descriptor is still the mount's: a program that closes all that it
        /// does not know may have put another file in its place.
        device: u64,
    },
    Refused(String),
}

/// The current attempt. Attempts are never freed, because others may be reading them. There is one per
/// process, and one more whenever the mount was closed from outside.
static ATTEMPT: AtomicPtr<Attempt> = AtomicPtr::new(ptr::null_mut());

/// A file without name and bytes on huge pages. `None` where that is refused.
pub(super) fn file() -> Option<OwnedFd> {
    for _ in 0..2 {
        let known = ATTEMPT.load(Ordering::Acquire);
        // SAFETY: null, or leaked by `publish` and never freed.
        match unsafe { known.as_ref() } {
            Some(Attempt::Refused(_)) => return None,
            Some(Attempt::Mounted { mount, device }) => {
                // SAFETY: if it was closed behind our back, the call fails or gives a file of
                // another device; nothing is done to it.
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

/// Why there are no huge pages, if that was tried.
pub(super) fn refused() -> Option<&'static str> {
    // SAFETY: as in `file`.
    match unsafe { ATTEMPT.load(Ordering::Acquire).as_ref() } {
        Some(Attempt::Refused(reason)) => Some(reason),
        Some(Attempt::Mounted { .. }) | None => None,
    }
}

/// Makes `attempt` the one that counts, unless another thread was first.
fn publish(known: *mut Attempt, attempt: Attempt) {
    let attempt = Box::into_raw(Box::new(attempt));
    if ATTEMPT.compare_exchange(known, attempt, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // SAFETY: made above, and nobody else has seen it.
        if let Attempt::Mounted { mount, .. } = *unsafe { Box::from_raw(attempt) } {
            // SAFETY: the descriptor was given up by `attempt`, and nobody else has it.
            drop(unsafe { OwnedFd::from_raw_fd(mount) });
        }
    }
}

/// Whether an error says nothing about the next attempt.
fn is_passing(error: Errno) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN].contains(&error)
}

/// Mounts, here or from a namespace, and tries a file. `None` when it is worth another try, at
/// another time.
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
            "the process may not have a tmpfs of its own: {}",
            plain(&error.into())
        )),
    })
}

/// Mounts the file system, without a place among folders. Makes system calls only: a child
/// forked from many threads may call it.
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

/// A new file in the mount, and the number of its device.
fn file_in(mount: BorrowedFd<'_>) -> rustix::io::Result<(OwnedFd, u64)> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(mount, c".", flags, Mode::RUSR | Mode::WUSR)?;
    let device = rustix::fs::fstat(&file)?.st_dev;
    Ok((file, device))
}
