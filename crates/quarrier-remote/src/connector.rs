//! The requests of `object_store`, made by our client: for credentials, and for folders of buckets.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpService,
};
use reqwest::{Body, Method, StatusCode};
use tokio::time::timeout;

use crate::answer::{self, Refusal};
use crate::attempts::{Attempts, CONNECT_ATTEMPTS_MAX, log_retry};
use crate::error::Error;
use crate::link::{Fault, again, fault_of, no_byte};
use crate::options::{Options, Retry, Timeouts};
use crate::transport::innermost;

/// Maximum size of a response: a page of a listing, or credentials.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// Minimum rate at which a server accepts a body.
const UPLOAD_BYTES_PER_SECOND_MIN: u64 = 64 << 10;

/// Makes requests of `object_store`. Those that are marked as [`Retried`] follow the retry policy of
/// reads; the others are left to the policy of `object_store`.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    client: reqwest::Client,
    timeouts: Timeouts,
}

/// Marks a request that [`Connector`] retries. Sending it twice must do no harm.
#[derive(Debug, Clone)]
pub(crate) struct Retried {
    /// The name in the log and in errors, without secrets.
    pub(crate) name: Arc<str>,
    pub(crate) retry: Retry,
    /// Whether 409 means that another request for the object was in progress.
    pub(crate) is_conflict_temporary: bool,
}

impl Connector {
    pub(crate) fn new(client: reqwest::Client, options: &Options) -> Self {
        Connector { client, timeouts: options.timeouts.clone() }
    }

    async fn attempt(&self, request: &Sent) -> Result<HttpResponse, Fault> {
        let body = match request.body.as_bytes() {
            Some(bytes) => Body::from(bytes.clone()),
            None => Body::wrap(request.body.clone()),
        };
        let upload_seconds = request.body.content_length() as u64 / UPLOAD_BYTES_PER_SECOND_MIN;
        let time_max = self.timeouts.progress.saturating_add(Duration::from_secs(upload_seconds));
        let request = self
            .client
            .request(request.method.clone(), &request.url)
            .headers(request.headers.clone())
            .body(body);
        let mut response = match timeout(time_max, request.send()).await {
            Ok(sent) => sent.map_err(|error| fault_of(&error))?,
            Err(_) => return Err(again(no_byte(time_max))),
        };
        let mut bytes = Vec::new();
        loop {
            let part = match timeout(self.timeouts.progress, response.chunk()).await {
                Ok(Ok(Some(part))) => part,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    return Err(again(format!("the connection was cut ({})", innermost(&error))));
                }
                Err(_) => return Err(again(no_byte(self.timeouts.progress))),
            };
            if part.len() > RESPONSE_BYTES_MAX - bytes.len() {
                return Err(again(format!(
                    "the response has more than {RESPONSE_BYTES_MAX} bytes"
                )));
            }
            bytes.extend_from_slice(&part);
        }
        let mut answer = HttpResponse::new(bytes.into());
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        Ok(answer)
    }

    /// Sends a request until it succeeds, or another attempt would not help.
    async fn attempts(&self, request: &Sent, retried: &Retried) -> Result<HttpResponse, Error> {
        let source_name = || retried.name.to_string();
        let mut attempts = Attempts::new(&retried.retry, retried.retry.attempts_max);
        let mut connects = 0;
        loop {
            let (reason, after) = match self.attempt(request).await {
                Ok(response) => match retried.judge(&response) {
                    Ok(()) => return Ok(response),
                    Err(Refusal::Again { reason, after }) => (reason, after),
                    Err(_) => {
                        let status = response.status().as_u16();
                        return Err(Error::Status { source_name: source_name(), status });
                    }
                },
                Err(Fault::Connect { reason, is_final }) => {
                    connects += 1;
                    if is_final || connects >= CONNECT_ATTEMPTS_MAX {
                        return Err(Error::Unreachable { source_name: source_name(), reason });
                    }
                    (reason, None)
                }
                Err(fault) => (reason_of(fault), None),
            };
            match attempts.failed(false, after) {
                Some(wait) => {
                    log_retry(&retried.name, 0, attempts.made, (wait, &reason));
                    tokio::time::sleep(wait).await;
                }
                None => return Err(Error::Gone { source_name: source_name(), reason }),
            }
        }
    }
}

impl Retried {
    /// Whether `object_store` can interpret a response.
    fn judge(&self, response: &HttpResponse) -> Result<(), Refusal> {
        let status = response.status();
        match status {
            StatusCode::CONFLICT if self.is_conflict_temporary => {
                Err(answer::temporary(status, response.headers()))
            }
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::CONFLICT
            | StatusCode::PRECONDITION_FAILED => Ok(()),
            _ if answer::is_temporary(status) => Err(answer::temporary(status, response.headers())),
            // Error bodies may repeat tokens, so they go no further.
            _ if status.is_client_error() || status.is_server_error() => {
                Err(Refusal::Status(status.as_u16()))
            }
            _ => Ok(()),
        }
    }
}

fn reason_of(fault: Fault) -> String {
    match fault {
        Fault::Refused(Refusal::Again { reason, .. }) | Fault::Connect { reason, .. } => reason,
        // An attempt fails in no other way.
        Fault::Refused(_) | Fault::Setup(_) => "the request failed".to_string(),
    }
}

/// A request that can be sent several times.
struct Sent {
    method: Method,
    url: String,
    headers: reqwest::header::HeaderMap,
    body: HttpRequestBody,
}

/// A reason without secrets, as an error.
#[derive(Debug)]
struct Reason(String);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Reason {}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Connector {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let retried = parts.extensions.get::<Retried>().cloned();
            let (method, url, headers) = (parts.method, parts.uri.to_string(), parts.headers);
            let sent = Sent { method, url, headers, body };
            if let Some(retried) = retried {
                let answer = self.attempts(&sent, &retried).await;
                // A kind that `object_store` does not retry.
                return answer.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error));
            }
            self.attempt(&sent).await.map_err(|fault| {
                let kind = match &fault {
                    Fault::Connect { .. } => HttpErrorKind::Connect,
                    Fault::Refused(_) | Fault::Setup(_) => HttpErrorKind::Interrupted,
                };
                HttpError::new(kind, Reason(reason_of(fault)))
            })
        })
    }
}
