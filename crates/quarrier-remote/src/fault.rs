//! Why an attempt to send a request failed.

use std::time::Duration;

use crate::answer::Refusal;
use crate::error::Error;
use crate::transport::innermost;

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server's response was unusable.
    Refused(Refusal),
    /// No connection; `is_final` if retrying is pointless.
    Connect { reason: String, is_final: bool },
    /// No request could be made.
    Setup(Error),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Fault::Refused(refusal)
    }
}

/// A failure after which another attempt may succeed.
pub(crate) fn again(reason: impl Into<String>) -> Fault {
    Fault::Refused(Refusal::Again { reason: reason.into(), after: None })
}

/// The reason of an attempt whose server was silent for so long.
pub(crate) fn no_byte(progress: Duration) -> String {
    format!("the server sent no byte for {} s", progress.as_secs_f64())
}

/// Classifies an error from sending a request.
pub(crate) fn fault_of(error: &reqwest::Error) -> Fault {
    let reason = innermost(error);
    if error.is_connect() {
        let is_unknown = reason.starts_with("failed to lookup address information")
            && !reason.contains("emporary");
        let is_final = is_unknown || is_wrong_certificate(error);
        return Fault::Connect { reason, is_final };
    }
    again(format!("the connection was cut ({reason})"))
}

/// Whether we rejected the certificate, so that retrying is pointless.
fn is_wrong_certificate(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let tls = tls.or_else(|| error.downcast_ref::<rustls::Error>());
        if matches!(tls, Some(rustls::Error::InvalidCertificate(_))) {
            return true;
        }
        next = error.source();
    }
    false
}
