//! Requests to the scheduler's door.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use quarrier_core::sync::lock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::tls::Tls;

/// How to reach a scheduler.
#[derive(Clone)]
pub(crate) struct Peer {
    /// Its address, with a number for the host.
    pub(crate) at: String,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Open connections without a request, for the next ones.
    idle: Arc<Mutex<Vec<Connection>>>,
}

type Connection = SendRequest<Full<Bytes>>;

/// Maximum number of open connections without a request.
const IDLE_MAX: usize = 64;

impl Peer {
    /// The scheduler at an address, with the certificates of a folder.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn new(at: &str, tls: Option<&Path>) -> Result<Self, String> {
        let tls = tls.map(Tls::read).transpose()?.map(Arc::new);
        Ok(Peer { at: address_of(at)?.to_string(), tls, idle: Arc::default() })
    }

    /// The address for Ballista's clients.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.at)
    }

    /// Opens a connection.
    async fn connect(&self) -> Result<Connection, Fault> {
        let stream = TcpStream::connect(&self.at).await.map_err(|error| silent(&error))?;
        // Otherwise requests could wait for the confirmation of earlier ones.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => serve(stream).await,
            Some(tls) => serve(tls.connect(stream).await.map_err(|error| silent(&error))?).await,
        }
    }

    /// Sends a request over an open connection, or over a new one.
    async fn answer(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Connection, Response<Incoming>), Fault> {
        // In a statement of its own, which ends the lock.
        while let Some(mut connection) = { lock(&self.idle).pop() } {
            match connection.try_send_request(request).await {
                Ok(answer) => return Ok((connection, answer)),
                // A connection that the scheduler has closed returns the request.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(silent(&error.into_error())),
                },
            }
        }
        let mut connection = self.connect().await?;
        let answer = connection.send_request(request).await.map_err(|error| silent(&error))?;
        Ok((connection, answer))
    }
}

/// Starts to speak HTTP over a stream.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Connection, Fault> {
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| silent(&error))?;
    // Its errors come with the answers.
    tokio::spawn(connection);
    Ok(sender)
}

/// Maximum size of an answer in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// The time after which a request has failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time for an answer that shows whether the scheduler lives.
const PATIENCE_FOR_SIGNS: Duration = Duration::from_secs(2);

/// The time for a request with a large body.
const PATIENCE_FOR_BODIES: Duration = Duration::from_secs(120);

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Nobody answered.
    Silent(String),
    /// The answer was an error.
    Refused(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Silent(reason) => write!(f, "does not answer: {reason}"),
            Fault::Refused(reason) => write!(f, "refused a request: {reason}"),
        }
    }
}

/// The address with this name.
///
/// # Errors
/// A message for the user.
pub(crate) fn address_of(listen: &str) -> Result<SocketAddr, String> {
    use std::net::ToSocketAddrs;
    let wrong = |reason: &dyn std::fmt::Display| {
        format!("'{listen}' is not an address such as 127.0.0.1:50050: {reason}")
    };
    let mut all = listen.to_socket_addrs().map_err(|error| wrong(&error))?;
    all.next().ok_or_else(|| wrong(&"the name has no address"))
}

/// Gets a resource.
///
/// # Errors
/// [`Fault`].
pub(crate) async fn get(at: &Peer, path: &str) -> Result<Bytes, Fault> {
    within(PATIENCE, send(at, Method::GET, path, Bytes::new())).await
}

/// Gets a resource from a scheduler that may have gone.
///
/// # Errors
/// [`Fault`].
pub(crate) async fn get_soon(at: &Peer, path: &str) -> Result<Bytes, Fault> {
    within(PATIENCE_FOR_SIGNS, send(at, Method::GET, path, Bytes::new())).await
}

/// Gets a resource that may be large.
///
/// # Errors
/// [`Fault`].
pub(crate) async fn get_large(at: &Peer, path: &str) -> Result<Bytes, Fault> {
    within(PATIENCE_FOR_BODIES, send(at, Method::GET, path, Bytes::new())).await
}

/// Posts to a resource.
///
/// # Errors
/// [`Fault`].
pub(crate) async fn post(at: &Peer, path: &str) -> Result<Bytes, Fault> {
    within(PATIENCE, send(at, Method::POST, path, Bytes::new())).await
}

/// Puts a resource.
///
/// # Errors
/// [`Fault`].
pub(crate) async fn put(at: &Peer, path: &str, body: Vec<u8>) -> Result<(), Fault> {
    within(PATIENCE_FOR_BODIES, send(at, Method::PUT, path, body.into())).await.map(|_| ())
}

async fn within(
    patience: Duration,
    sent: impl Future<Output = Result<Bytes, Fault>>,
) -> Result<Bytes, Fault> {
    match tokio::time::timeout(patience, sent).await {
        Ok(answer) => answer,
        Err(_) => Err(Fault::Silent(format!("no answer within {} s", patience.as_secs()))),
    }
}

async fn send(peer: &Peer, method: Method, path: &str, body: Bytes) -> Result<Bytes, Fault> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", &peer.at)
        .body(Full::new(body))
        .map_err(|error| Fault::Refused(error.to_string()))?;
    let (connection, answer) = peer.answer(request).await?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| silent(&error))?.to_bytes();
    let mut idle = lock(&peer.idle);
    if idle.len() < IDLE_MAX {
        idle.push(connection);
    }
    match status.is_success() {
        true => Ok(body),
        false => Err(Fault::Refused(String::from_utf8_lossy(&body).into_owned())),
    }
}

fn silent(error: &dyn std::fmt::Display) -> Fault {
    Fault::Silent(error.to_string())
}
