//! A mount from its start to its end.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, Session, SessionACL};
use quarrier::mount::Tree;
use rustix::io::Errno;

use crate::device;
use crate::error::{Error, Result};
use crate::readers::Readers;
use crate::requests::Requests;

/// Maximum time to wait after unmounting. The kernel ends the session at once, unless files are open.
const END: Duration = Duration::from_millis(300);

/// Options of a mount.
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub struct MountOptions {
    allow_other: bool,
}

impl MountOptions {
    /// Lets other users read, too. By default the kernel refuses them, root included. Unless root mounts,
    /// `/etc/fuse.conf` must have `user_allow_other`.
    pub fn allow_other(mut self, allow_other: bool) -> Self {
        self.allow_other = allow_other;
        self
    }
}

/// A mount. It remains until [`Mounted::unmount`], or until somebody else unmounts it.
pub struct Mounted {
    point: PathBuf,
    /// The device number of the file system, by which to recognise it.
    device: u64,
    session: BackgroundSession,
}

/// Checks that `point` can be a mount point, and returns its absolute path.
///
/// # Errors
/// [`Error::MountPoint`] unless it is an empty folder.
pub fn check_mount_point(point: &Path) -> Result<PathBuf> {
    let refused = |reason: String| Error::MountPoint { point: point.to_path_buf(), reason };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => refused("no such folder; create it first".to_string()),
        _ if error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => refused(
            "is a mount whose program has ended; 'fusermount3 -u' or 'umount' removes it"
                .to_string(),
        ),
        _ => refused(format!("cannot mount here: {error}")),
    };
    let meta = fs::metadata(point).map_err(failed)?;
    if !meta.is_dir() {
        return Err(refused("is not a folder; mount at an empty folder".to_string()));
    }
    if let Some(first) = fs::read_dir(point).map_err(failed)?.next() {
        let name = first.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        return Err(refused(format!("is not empty: it has '{name}'; mount at an empty folder")));
    }
    point.canonicalize().map_err(failed)
}

/// Mounts a tree at a folder, and starts threads that answer the kernel until the mount ends.
///
/// # Errors
/// Those of [`check_mount_point`]; [`Error::Device`] without `/dev/fuse`, [`Error::Refused`] without the
/// right to mount, [`Error::Session`].
pub fn mount(tree: &Arc<Tree>, point: &Path, options: MountOptions) -> Result<Mounted> {
    let point = check_mount_point(point)?;
    let failed = |error| Error::Session { point: point.clone(), error };
    let readers = Readers::start(tree).map_err(failed)?;
    let device = device::attach(&point, tree.source_name(), options.allow_other)?;
    let acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    let requests = Requests { tree: Arc::clone(tree), readers };
    let started = Session::from_fd(requests, device, acl, Config::default())
        .and_then(Session::spawn)
        .and_then(|session| Ok((session, fs::metadata(&point)?.dev())));
    match started {
        Ok((session, device)) => Ok(Mounted { point, device, session }),
        Err(error) => {
            // The first error is the one to report.
            let _ = device::detach(&point);
            Err(failed(error))
        }
    }
}

impl Mounted {
    /// Whether the mount has ended, because somebody unmounted it.
    pub fn has_ended(&self) -> bool {
        self.session.guard.is_finished()
    }

    /// Unmounts it, even if files on it are open; programs that read these get errors when this process
    /// ends. Takes at most a second. Does nothing if the mount has ended.
    ///
    /// # Errors
    /// The system's error.
    pub fn unmount(self) -> io::Result<()> {
        if self.has_ended() {
            return match self.session.guard.join() {
                // Somebody unmounted it.
                Ok(Ok(())) => Ok(()),
                // The session failed, so nothing answers the kernel any more.
                _ => device::detach(&self.point),
            };
        }
        // Another file system may be at this path by now.
        if !fs::metadata(&self.point).is_ok_and(|meta| meta.dev() == self.device) {
            return Ok(());
        }
        device::detach(&self.point)?;
        let started = Instant::now();
        while !self.has_ended() && started.elapsed() < END {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]

    use super::*;

    #[test]
    fn only_an_empty_folder_is_a_mount_point() {
        let lab = tempfile::tempdir().unwrap();
        let check = |point: &Path, expected: &str| {
            let error = check_mount_point(point).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{}: {expected}", point.display())), "{error}");
        };
        let (folder, file) = (lab.path().join("folder"), lab.path().join("folder/file"));
        check(&folder, "no such folder");
        fs::create_dir(&folder).unwrap();
        assert_eq!(check_mount_point(&folder).unwrap(), folder.canonicalize().unwrap());
        fs::write(&file, "x").unwrap();
        check(&folder, "is not empty: it has 'file'");
        check(&file, "is not a folder");
    }
}
