//! Mutual TLS between the parts of a cluster.
//!
//! Ballista's servers have no TLS. They listen at 127.0.0.1, and a task accepts connections from other
//! machines, checks their certificates, and passes the bytes on. Whoever has a certificate of the cluster's
//! authority for [`NAME`] is a part of the cluster.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::extension::EndpointOverrideFn;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// The name that all certificates have, because workers are reached by addresses that nobody knows in advance.
pub(crate) const NAME: &str = "quarrier-cluster";

/// The time for a handshake.
const PATIENCE: Duration = Duration::from_secs(10);

/// The certificates of a part of a cluster.
pub(crate) struct Tls {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    channels: ClientTlsConfig,
}

impl Tls {
    /// Reads `ca.crt`, `tls.crt` and `tls.key` in a folder.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn read(folder: &Path) -> Result<Self, String> {
        let bytes = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let (authority, certificate, key) =
            (bytes("ca.crt")?, bytes("tls.crt")?, bytes("tls.key")?);
        let wrong = |error: &dyn Display| format!("{}: {error}", folder.display());
        let certificates = |pem: &[u8]| -> Result<Vec<CertificateDer<'static>>, String> {
            let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
            all.map_err(|error| wrong(&error))
        };
        let private = || PrivateKeyDer::from_pem_slice(&key).map_err(|error| wrong(&error));
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&authority)? {
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
                .build()
                .map_err(|error| wrong(&error))?;
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(certificates(&certificate)?, private()?)
            .map_err(|error| wrong(&error))?;
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(certificates(&certificate)?, private()?)
            .map_err(|error| wrong(&error))?;
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        let channels = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&authority))
            .identity(Identity::from_pem(&certificate, &key))
            .domain_name(NAME);
        Ok(Tls { server: Arc::new(server), client: Arc::new(client), channels })
    }

    /// Encrypts a connection.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
    ) -> std::io::Result<client::TlsStream<TcpStream>> {
        let name = ServerName::try_from(NAME).map_err(std::io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.client)).connect(name, stream).await
    }

    /// Makes Ballista's clients encrypt.
    pub(crate) fn endpoints(&self) -> EndpointOverrideFn {
        let channels = self.channels.clone();
        Arc::new(move |endpoint: Endpoint| {
            let uri = endpoint.uri().to_string().replacen("http://", "https://", 1);
            let endpoint = Endpoint::from_shared(uri)?
                .connect_timeout(PATIENCE)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(PATIENCE)
                .keep_alive_while_idle(true)
                .tls_config(channels.clone())?;
            Ok(endpoint)
        })
    }

    /// Passes the connections of a listener on to `to`, after their certificates were checked.
    pub(crate) async fn accept(self: Arc<Self>, listener: TcpListener, to: SocketAddr) {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.server));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // No more file descriptors, for instance.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let accepted = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await;
                // Strangers get no answer.
                if let Ok(Ok(mut stream)) = accepted
                    && let Ok(mut inner) = TcpStream::connect(to).await
                {
                    // A connection that holds bytes back is slow, but works.
                    let _ = inner.set_nodelay(true);
                    let _ = stream.get_ref().0.set_nodelay(true);
                    // Either side may end the connection at any time.
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut inner).await;
                }
            });
        }
    }
}
