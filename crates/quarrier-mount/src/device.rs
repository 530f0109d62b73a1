//! Mounts and unmounts: by the system calls where they are permitted, else by `fusermount3`.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{getgid, getuid};

use crate::error::{Error, Result};

const DEVICE: &str = "/dev/fuse";
/// The programs that mount for users, in the order in which they are tried.
const HELPERS: [&str; 2] = ["fusermount3", "fusermount"];
/// The helper passes the open device over the socket with this number.
const HELPER_SOCKET: &str = "_FUSE_COMMFD";

/// Mounts a new FUSE connection at `point`, and returns its device. `mount` and `df` show `name`.
///
/// # Errors
/// [`Error::Device`], [`Error::Refused`].
pub(crate) fn attach(point: &Path, name: &str, allow_other: bool) -> Result<OwnedFd> {
    let device = OpenOptions::new().read(true).write(true).open(DEVICE);
    let device = device.map_err(|error| Error::Device { error })?;
    let refused = |reason: String| Error::Refused { point: point.to_path_buf(), reason };
    match mount_directly(&device, point, name, allow_other) {
        Ok(()) => Ok(device.into()),
        Err(Errno::PERM | Errno::ACCESS) => {
            drop(device);
            mount_by_helper(point, name, allow_other).map_err(refused)
        }
        Err(error) => Err(refused(error.to_string())),
    }
}

fn mount_directly(
    device: &File,
    point: &Path,
    name: &str,
    allow_other: bool,
) -> rustix::io::Result<()> {
    let mut data = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions",
        device.as_raw_fd(),
        getuid().as_raw(),
        getgid().as_raw(),
    );
    if allow_other {
        data.push_str(",allow_other");
    }
    let data = CString::new(data).map_err(|_| Errno::INVAL)?;
    let flags = MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
    rustix::mount::mount(name, point, "fuse.quarrier", flags, &*data)
}

/// Mounts by a program that may mount for users.
fn mount_by_helper(
    point: &Path,
    name: &str,
    allow_other: bool,
) -> std::result::Result<OwnedFd, String> {
    // A comma would end the option.
    let name = name.replace([',', '\\'], "_");
    let mut options =
        OsString::from("ro,nosuid,nodev,noexec,default_permissions,subtype=quarrier,");
    options.push(format!("fsname={name}"));
    if allow_other {
        options.push(",allow_other");
    }
    let failed = |error: io::Error| format!("fusermount3: {error}");
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    // The helper inherits its end of the socket.
    fcntl_setfd(&theirs, FdFlags::empty()).map_err(|error| failed(error.into()))?;
    let mut child = helper(|command| {
        command.arg("-o").arg(&options).arg("--").arg(point);
        command.env(HELPER_SOCKET, theirs.as_raw_fd().to_string()).stderr(Stdio::piped());
        command.spawn()
    })
    .map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "only root may, and there is no fusermount3".to_string(),
        _ => failed(error),
    })?;
    drop(theirs);
    let device = received(&ours);
    let mut reason = String::new();
    if let Some(stderr) = child.stderr.take() {
        // The helper ends by itself, and only the first line of its message is reported.
        let _ = stderr.take(4096).read_to_string(&mut reason);
    }
    let _ = child.wait();
    let reason = reason.lines().next().unwrap_or("fusermount3 failed").to_string();
    device.ok_or(reason)
}

/// The descriptor that the helper passes; `None` if it passes none.
fn received(socket: &UnixStream) -> Option<OwnedFd> {
    let mut byte = [0; 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    loop {
        let parts = &mut [IoSliceMut::new(&mut byte)];
        match recvmsg(socket, parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(_) => return None,
            Ok(_) => break,
        }
    }
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

/// Runs a helper: the first that exists.
fn helper<T>(run: impl Fn(&mut Command) -> io::Result<T>) -> io::Result<T> {
    let mut result = Err(io::ErrorKind::NotFound.into());
    for program in HELPERS {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        result = run(&mut command);
        if !result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            break;
        }
    }
    result
}

/// Unmounts the file system at `point`, even if files on it are open.
///
/// # Errors
/// The system's error.
pub(crate) fn detach(point: &Path) -> io::Result<()> {
    match rustix::mount::unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => {
            let arguments: [&OsStr; 4] =
                ["-u".as_ref(), "-z".as_ref(), "--".as_ref(), point.as_ref()];
            match helper(|command| command.args(arguments).status())?.success() {
                true => Ok(()),
                false => Err(Errno::PERM.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}
