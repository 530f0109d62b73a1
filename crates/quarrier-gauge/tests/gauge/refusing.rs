//! Makes the kernel refuse system calls of one thread and of its children.

use std::thread;

/// Calls that containers and older kernels refuse.
#[derive(Clone, Copy)]
pub(crate) enum Refused {
    /// `io_uring_setup`.
    IoUring,
    /// `openat` with `O_TMPFILE`.
    NamelessFiles,
    /// `fallocate`.
    Reserving,
    /// `sendfile`.
    SendingFiles,
}

/// Runs `work` on a thread to which the kernel refuses these calls.
pub(crate) fn with_refused<T: Send>(refused: Refused, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let run = move || {
            refuse(refused);
            work()
        };
        scope.spawn(run).join().unwrap()
    })
}

fn statement(code: u32, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

fn refuse(refused: Refused) {
    /// The offset of the system call's number in a filter's input, and that of its third argument.
    const NUMBER: u32 = 0;
    const THIRD: u32 = 32;
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let give_back = libc::BPF_RET | libc::BPF_K;
    let unless_equal = |value: u32, skip: u8| libc::sock_filter {
        jf: skip,
        ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value)
    };
    let unless_set = |bits: u32, skip: u8| libc::sock_filter {
        jf: skip,
        ..statement(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, bits)
    };
    let fail = |error: i32| statement(give_back, libc::SECCOMP_RET_ERRNO | error as u32);
    let mut program = vec![statement(load, NUMBER)];
    match refused {
        Refused::IoUring => {
            program.extend([unless_equal(libc::SYS_io_uring_setup as u32, 1), fail(libc::EPERM)]);
        }
        Refused::NamelessFiles => {
            let flag = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;
            program.extend([
                unless_equal(libc::SYS_openat as u32, 3),
                statement(load, THIRD),
                unless_set(flag, 1),
                fail(libc::EOPNOTSUPP),
            ]);
        }
        Refused::SendingFiles => {
            program.extend([unless_equal(libc::SYS_sendfile as u32, 1), fail(libc::ENOSYS)]);
        }
        Refused::Reserving => {
            program.extend([unless_equal(libc::SYS_fallocate as u32, 1), fail(libc::EOPNOTSUPP)]);
        }
    }
    program.push(statement(give_back, libc::SECCOMP_RET_ALLOW));
    let whole = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: PR_SET_NO_NEW_PRIVS takes no pointers. PR_SET_SECCOMP reads `whole` and the `len`
    // instructions of `program`, which live until the call returns; the kernel copies them. The
    // filter affects only this thread and those that it starts.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const whole), 0);
    }
}
