//! Authentication: users and their verifiers, SCRAM, TLS.

mod scram;
mod tls;
mod users;
mod wrong;

pub use tls::{Tls, TlsError};
pub use users::{Users, UsersError, made_line};

/// Compares two secrets in constant time.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences =
        one.iter().zip(other).fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
    one.len() == other.len() && differences == 0
}

pub(crate) use scram::{Exchange, MECHANISM};
pub(crate) use wrong::WrongPasswords;
