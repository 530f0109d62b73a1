//! The certificate's folder: `tls.crt`, `tls.key`, and `ca.crt` if clients must present a
//! certificate.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// The certificate and key of encrypted connections.
#[derive(Clone)]
pub struct Tls {
    pub(crate) postgres: TlsAcceptor,
    pub(crate) http: TlsAcceptor,
    /// Whether clients must present a certificate, so that even local ones must encrypt.
    pub(crate) knows_clients: bool,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// The reason why TLS is not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why it is invalid.
    pub reason: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for TlsError {}

impl Tls {
    /// Reads the certificate and key in a folder.
    ///
    /// # Errors
    /// If a file does not exist, or is not a certificate or key.
    pub fn read(folder: &Path) -> Result<Self, TlsError> {
        let certificates = certificates(&folder.join("tls.crt"))?;
        let key = folder.join("tls.key");
        let read = PrivateKeyDer::from_pem_file(&key);
        let private = read.map_err(|error| wrong(&key, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(folder, &error))?;
        let authority = folder.join("ca.crt");
        let knows_clients = authority.exists();
        let builder = if knows_clients {
            let mut roots = RootCertStore::empty();
            for certificate in self::certificates(&authority)? {
                roots.add(certificate).map_err(|error| wrong(&authority, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier.build().map_err(|error| wrong(&authority, &error))?;
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder
            .with_single_cert(certificates, private)
            .map_err(|error| wrong(folder, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let http = TlsAcceptor::from(Arc::new(config.clone()));
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Tls { postgres: TlsAcceptor::from(Arc::new(config)), http, knows_clients })
    }
}

fn wrong(path: &Path, error: &dyn fmt::Display) -> TlsError {
    TlsError { path: path.to_path_buf(), reason: error.to_string() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, &error))?;
    let all = read.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(path, &error))?;
    if all.is_empty() {
        return Err(wrong(path, &"it contains no certificate"));
    }
    Ok(all)
}
