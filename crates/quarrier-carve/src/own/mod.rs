//! User-defined signatures: in TOML, or in the format of `foremost.conf` and `scalpel.conf`.
//!
//! A file found by such a signature is whole if its footer or its length determines its end;
//! otherwise it breaks at the maximum size. Files of the built-in formats take precedence.

mod conf;
mod format;
mod masked;
mod names;
mod table;

use crate::error::{Error, Result};
use crate::format::Format;

pub use format::{End, Length, Rules, UserFormat};
pub use masked::Masked;

/// Maximum size of a file of signatures, in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of signatures in a file.
pub const SIGNATURES_MAX: usize = 4096;

/// Reads a file of signatures: in the format of `foremost.conf` and `scalpel.conf` if its `name`
/// ends with `.conf`, else in TOML.
///
/// # Errors
/// [`Error::Signature`] with the name, the line, and the error there.
pub fn read(name: &str, bytes: &[u8]) -> Result<Vec<Box<dyn Format>>> {
    let fault = |fault: Fault| match fault.line {
        0 => Error::Signature(format!("{name}: {}", fault.what)),
        line => Error::Signature(format!("{name}, line {line}: {}", fault.what)),
    };
    if bytes.len() > FILE_BYTES_MAX {
        return Err(fault(Fault::new(0, "is longer than 1 MiB; are these signatures?")));
    }
    let rules = match name.to_ascii_lowercase().ends_with(".conf") {
        true => conf::parse(bytes),
        false => table::parse(bytes),
    };
    let rules = rules.map_err(fault)?;
    if rules.len() > SIGNATURES_MAX {
        return Err(fault(Fault::new(0, "has more than 4096 signatures")));
    }
    let own = |(line, rules): (usize, Rules)| {
        let own = UserFormat::new(rules).map_err(|what| fault(Fault { line, what }))?;
        Ok(Box::new(own) as Box<dyn Format>)
    };
    rules.into_iter().map(own).collect()
}

/// An error in a file of signatures.
#[derive(Debug)]
struct Fault {
    /// The line, from 1; 0 if the error concerns the whole file.
    line: usize,
    what: String,
}

impl Fault {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Fault { line, what: what.into() }
    }
}
