//! HTTP: statements and messages of programs, metrics, and a status page.

mod body;
mod door;
mod ingest;
mod io;
mod metrics;
mod page;
mod pages;
mod query;
mod status;
mod subscribe;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::answers::Asker;
use crate::board::add;
use crate::failure::{Failure, state};
use crate::session::AnySocket;
use crate::shared::{Place, Shared};

use body::Body;
use io::{Clock, Io};

/// Maximum bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Serves a client until it disconnects.
pub(crate) async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>, place: Place) {
    let _place = place;
    let socket = match &shared.tls {
        None => AnySocket::Plain(stream),
        Some(tls) => {
            let accepting = timeout(shared.limits.login_time, tls.http.accept(stream));
            let Ok(Ok(stream)) = accepting.await else { return };
            AnySocket::Tls(Box::new(stream))
        }
    };
    let number = shared.board.number();
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answered(request, peer, number, &shared).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(Clock)
        .header_read_timeout(shared.limits.login_time)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(Io::new(socket, &shared), service);
    tokio::pin!(connection);
    tokio::select! {
        // Errors of the connection concern only the client, which was notified or has disconnected.
        _ = &mut connection => {}
        () = shared.closing.wait() => {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(shared.limits.grace_time + Duration::from_secs(1), connection).await;
        }
    }
}

async fn answered(
    request: Request<Incoming>,
    peer: SocketAddr,
    number: u32,
    shared: &Arc<Shared>,
) -> Response<Body> {
    add(&shared.board.counts.requests, 1);
    let path = request.uri().path().to_string();
    let mut response = match door::checked(&request, peer, shared).await {
        Ok(user) => {
            let application = request.headers().get(header::USER_AGENT);
            let application = application.and_then(|it| it.to_str().ok()).unwrap_or_default();
            let asker = Asker {
                user,
                application: application.chars().take(100).collect(),
                peer: peer.to_string(),
                connection: number,
            };
            match routed(request, &path, asker, shared).await {
                Ok(response) => response,
                Err(failure) => failed(&failure),
            }
        }
        Err(refused) => failed(&refused),
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

async fn routed(
    request: Request<Incoming>,
    path: &str,
    asker: Asker,
    shared: &Arc<Shared>,
) -> Result<Response<Body>, Failure> {
    let method = request.method().clone();
    let reads = matches!(method, Method::GET | Method::HEAD);
    match path {
        "/" if reads => Ok(text("text/html; charset=utf-8", page::page())),
        "/health" if reads => Ok(text("text/plain; charset=utf-8", "ok\n".to_string())),
        "/metrics" if reads => {
            Ok(text("text/plain; version=0.0.4; charset=utf-8", metrics::text(shared)))
        }
        "/status" if reads => Ok(text("application/json", status::text(shared))),
        "/query" if reads || method == Method::POST => {
            query::answered(request, asker, shared).await
        }
        "/subscribe" if method == Method::GET => subscribe::answered(&request, asker, shared).await,
        "/" | "/health" | "/metrics" | "/status" | "/query" | "/subscribe" => {
            Err(not_so(&method, path))
        }
        other if reads && other.starts_with("/pages/") => {
            let name = door::decoded(&other["/pages/".len()..]).unwrap_or_default();
            pages::answered(name, shared.pages.as_ref()).await
        }
        other => match other.strip_prefix("/tables/") {
            Some(name) if method == Method::POST => {
                let name = door::decoded(name)
                    .ok_or_else(|| Failure::new(state::PROTOCOL, "the table name is not UTF-8"))?;
                ingest::taken(request, name, asker, shared).await
            }
            Some(_) => Err(not_so(&method, path)),
            None => Err(Failure::new(
                "NOT_FOUND",
                "there are /, /query, /subscribe, /tables/NAME, /pages/NAME, /metrics, /status and /health",
            )),
        },
    }
}

fn not_so(method: &Method, path: &str) -> Failure {
    Failure::new("METHOD", format!("{path} does not accept {method}"))
}

/// Makes a response from a string.
fn text(kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(body::whole(Bytes::from(text)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Makes the response to an error.
fn failed(failure: &Failure) -> Response<Body> {
    let mut out = b"{\"error\":".to_vec();
    crate::rows::quoted(&failure.message, &mut out);
    out.extend_from_slice(b",\"code\":");
    crate::rows::quoted(failure.state, &mut out);
    if let Some(hint) = &failure.hint {
        out.extend_from_slice(b",\"hint\":");
        crate::rows::quoted(hint, &mut out);
    }
    out.extend_from_slice(b"}\n");
    let mut response = Response::new(body::whole(Bytes::from(out)));
    *response.status_mut() = code(failure.state);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if response.status() == StatusCode::UNAUTHORIZED {
        let asks = HeaderValue::from_static("Basic realm=\"quarrier\", charset=\"UTF-8\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, asks);
    }
    response
}

fn code(failure: &str) -> StatusCode {
    match failure {
        "NOT_FOUND" | state::NO_TABLE => StatusCode::NOT_FOUND,
        "METHOD" => StatusCode::METHOD_NOT_ALLOWED,
        state::PASSWORD => StatusCode::UNAUTHORIZED,
        state::AUTHORIZATION | state::DENIED | state::READ_ONLY => StatusCode::FORBIDDEN,
        state::LIMIT => StatusCode::PAYLOAD_TOO_LARGE,
        state::IDLE => StatusCode::REQUEST_TIMEOUT,
        state::CANCELLED => StatusCode::GATEWAY_TIMEOUT,
        state::MEMORY | state::TOO_MANY | state::SHUTDOWN => StatusCode::SERVICE_UNAVAILABLE,
        state::DISK_FULL => StatusCode::INSUFFICIENT_STORAGE,
        state::SYSTEM | state::INTERNAL => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}
