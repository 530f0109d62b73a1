//! Errors of a source as a whole.

use std::io;

/// Whether an error of a [source](super::Source) concerns all of it rather than a sector, so that no other
/// range is worth trying.
pub fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, NotConnected, NotFound, PermissionDenied, StaleNetworkFileHandle,
    };
    const GONE: [rustix::io::Errno; 5] = [
        rustix::io::Errno::NODEV,
        rustix::io::Errno::NXIO,
        rustix::io::Errno::BADF,
        rustix::io::Errno::STALE,
        rustix::io::Errno::NOMEDIUM,
    ];
    match error.raw_os_error() {
        Some(code) => GONE.iter().any(|gone| gone.raw_os_error() == code),
        // A source other than a file of the system reports it by the error's kind.
        None => matches!(
            error.kind(),
            ConnectionAborted | NotConnected | NotFound | PermissionDenied | StaleNetworkFileHandle
        ),
    }
}
