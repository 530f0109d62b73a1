//! Poor environments for the programs' tests: few threads, few files, no /proc, little memory, short
//! files. `quarrier-sql` includes this file, too.

use std::io::{Error, Result};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr;

/// A resource that a run lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surroundings {
    /// Only the first thread. Process limits do not apply to root, so the run has the user with this
    /// number, who must have no other processes.
    OneThread(u32),
    /// 64 open files.
    FewFiles,
    /// An empty `/proc`.
    NoProc,
    /// 512 MiB of addresses, including stacks and the program itself.
    LittleMemory,
    /// Files of at most this size.
    ShortFiles(u64),
}

impl Surroundings {
    /// Runs a command in this environment.
    pub(crate) fn around(self, command: &mut Command) {
        // SAFETY: between fork and exec `enter` makes only system calls; it takes no lock and
        // allocates nothing.
        unsafe { command.pre_exec(move || self.enter()) };
    }

    /// Whether this machine allows creating it.
    pub(crate) fn can_be_made(self) -> bool {
        let mut command = Command::new("true");
        self.around(command.stdin(Stdio::null()));
        command.status().is_ok_and(|status| status.success())
    }

    fn enter(self) -> Result<()> {
        match self {
            Surroundings::OneThread(user) => {
                limit(libc::RLIMIT_NPROC, 1)?;
                become_user(user)
            }
            Surroundings::FewFiles => limit(libc::RLIMIT_NOFILE, 64),
            Surroundings::NoProc => hide_proc(),
            Surroundings::LittleMemory => limit(libc::RLIMIT_AS, 512 << 20),
            Surroundings::ShortFiles(bytes) => limit(libc::RLIMIT_FSIZE, bytes),
        }
    }
}

fn checked(returned: libc::c_int) -> Result<()> {
    if returned == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

fn limit(what: libc::__rlimit_resource_t, most: u64) -> Result<()> {
    let value = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: setrlimit only reads `value`, which outlives the call.
    checked(unsafe { libc::setrlimit(what, &value) })
}

fn become_user(user: u32) -> Result<()> {
    // SAFETY: geteuid takes no arguments and cannot fail.
    match unsafe { libc::geteuid() } {
        // SAFETY: setresuid takes no pointers.
        0 => checked(unsafe { libc::setresuid(user, user, user) }),
        _ => Ok(()),
    }
}

/// Mounts an empty file system over `/proc`, visible only to this process.
fn hide_proc() -> Result<()> {
    // SAFETY: geteuid takes no arguments and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let user = if is_root { 0 } else { libc::CLONE_NEWUSER };
    // SAFETY: unshare takes no pointers, and the new namespaces affect only this process, which is
    // a child before exec.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNS | user) })?;
    let (none, private) = (ptr::null(), libc::MS_REC | libc::MS_PRIVATE);
    let (root, proc, kind) = (c"/".as_ptr(), c"/proc".as_ptr(), c"tmpfs".as_ptr());
    // SAFETY: the strings are constants that end with a zero byte, and mount allows a null type and
    // null data.
    checked(unsafe { libc::mount(kind, root, none, private, none.cast()) })?;
    // SAFETY: the strings are constants that end with a zero byte, and mount allows null data.
    checked(unsafe { libc::mount(kind, proc, kind, 0, none.cast()) })
}
