//! The requests of `object_store`, made by our client: for credentials, and for folders of buckets.
//!
//! `object_store` signs them. The response to a request for a folder is judged here and goes to the caller
//! as [`Answered`], because `object_store` puts the text of error responses into its errors, and ignores keys
//! and listings that it does not expect.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpService,
};
use quarrier_core::sync::lock;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{Body, Method, StatusCode, Url};
use tokio::time::timeout;

use crate::answer::{self, Refusal};
use crate::attempts::{Attempts, CONNECT_ATTEMPTS_MAX, log_retry};
use crate::counters::Counting;
use crate::error::{Error, Result};
use crate::fault::{Fault, again, fault_of, no_byte};
use crate::location::{Store, redacted};
use crate::options::{Options, Retry, Timeouts};
use crate::shared::Shared;
use crate::transport::{innermost, redirect_of};

/// Maximum size of a response: a page of a listing, or credentials.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// Minimum rate at which a server accepts a body.
const UPLOAD_BYTES_PER_SECOND_MIN: u64 = 64 << 10;

/// A listing without objects, in the formats of all stores.
const NO_OBJECTS: &[u8] = b"<Listing><Blobs/></Listing>";

/// Makes requests of `object_store`. Those that are marked as [`Asked`] follow the retry policy of reads;
/// the others, for credentials, are left to the policy of `object_store`.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    client: reqwest::Client,
    timeouts: Timeouts,
    is_anonymous: bool,
}

/// Marks a request for a folder of a bucket. Sending it twice must do no harm.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The name in the log and in errors, without secrets.
    pub(crate) name: Arc<str>,
    pub(crate) store: Store,
    pub(crate) purpose: Purpose,
    retry: Retry,
    counting: Arc<Counting>,
    answered: Arc<Mutex<Option<Answered>>>,
}

/// What a request for a folder does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    List,
    /// Writes an object unless it exists.
    PutNew,
    Remove,
}

/// A response that was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The request succeeded, with this body.
    Done(Bytes),
    /// An object of this name exists.
    Exists,
}

impl Asked {
    pub(crate) fn new(name: &Arc<str>, store: Store, purpose: Purpose, shared: &Shared) -> Self {
        let (name, retry) = (Arc::clone(name), shared.options.retry.clone());
        let counting = Arc::clone(&shared.counting);
        Asked { name, store, purpose, retry, counting, answered: Arc::default() }
    }

    /// Takes the response, if one was judged to be usable.
    pub(crate) fn take(&self) -> Option<Answered> {
        lock(&self.answered).take()
    }

    /// Judges a response.
    fn judge(&self, response: &Response) -> Result<Answered, Verdict> {
        let status = response.status;
        let source_name = || self.name.to_string();
        // The signature in the header is a secret, and only valid for the host that it names.
        if let Some(target) = &response.redirect {
            let what = format!("redirects requests to {}", place(target.as_str()));
            return Err(Verdict::Final(self.misplaced(&what)));
        }
        let code = status.as_u16();
        match (self.purpose, status) {
            _ if status.is_success() => Ok(Answered::Done(response.body.clone())),
            (Purpose::PutNew, StatusCode::PRECONDITION_FAILED) => Ok(Answered::Exists),
            (Purpose::PutNew, StatusCode::CONFLICT) if self.store == Store::Azure => {
                Ok(Answered::Exists)
            }
            // Another request for the object was in progress.
            (Purpose::PutNew | Purpose::Remove, StatusCode::CONFLICT) => {
                Err(Verdict::again(response))
            }
            (Purpose::Remove, StatusCode::NOT_FOUND) => Ok(Answered::Done(Bytes::new())),
            (_, StatusCode::NOT_FOUND) => {
                Err(Verdict::Final(Error::NoBucket { source_name: source_name() }))
            }
            (Purpose::List, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(Verdict::Final(Error::NotListed { source_name: source_name(), status: code }))
            }
            (_, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(Verdict::Final(Error::Denied { source_name: source_name(), status: code }))
            }
            _ if answer::is_temporary(status) => Err(Verdict::again(response)),
            _ => Err(Verdict::Final(self.misplaced(&format!("responds with status {code}")))),
        }
    }

    /// The error for a server that may be another one than the user means.
    fn misplaced(&self, what: &str) -> Error {
        let reason = format!("the server {what}; check {}", self.store.place_settings());
        Error::Unusable { source_name: self.name.to_string(), reason }
    }
}

/// Why a response is not usable. The body of the response goes no further: it may repeat tokens.
enum Verdict {
    Again { reason: String, after: Option<Duration> },
    Final(Error),
}

impl Verdict {
    fn again(response: &Response) -> Self {
        let (reason, after) = answer::temporary(response.status, &response.headers);
        Verdict::Again { reason, after }
    }
}

/// A request that can be sent several times.
pub(crate) struct Sent {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: HttpRequestBody,
}

struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// The target of a redirect.
    redirect: Option<Url>,
}

impl Connector {
    pub(crate) fn new(client: reqwest::Client, options: &Options) -> Self {
        Connector { client, timeouts: options.timeouts.clone(), is_anonymous: false }
    }

    /// Removes the credentials that `object_store` may add to requests for a public bucket.
    pub(crate) fn anonymous(self) -> Self {
        Connector { is_anonymous: true, ..self }
    }

    async fn attempt(&self, sent: &Sent) -> Result<Response, Fault> {
        let body = match sent.body.as_bytes() {
            Some(bytes) => Body::from(bytes.clone()),
            None => Body::wrap(sent.body.clone()),
        };
        let upload_seconds = sent.body.content_length() as u64 / UPLOAD_BYTES_PER_SECOND_MIN;
        let time_max = self.timeouts.progress.saturating_add(Duration::from_secs(upload_seconds));
        let request = self.client.request(sent.method.clone(), &sent.url);
        let mut request = request.headers(sent.headers.clone()).body(body).build();
        if let Ok(request) = &mut request
            && self.is_anonymous
        {
            request.headers_mut().remove(AUTHORIZATION);
        }
        let request = request.map_err(|error| fault_of(&error))?;
        let mut response = match timeout(time_max, self.client.execute(request)).await {
            Ok(sent) => sent.map_err(|error| fault_of(&error))?,
            Err(_) => return Err(again(no_byte(time_max))),
        };
        let redirect = redirect_of(&response);
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
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Response { status, headers, body: bytes.into(), redirect })
    }

    /// Sends a request until it succeeds, or another attempt would not help.
    ///
    /// # Errors
    /// [`Error::NoBucket`], [`Error::NotListed`], [`Error::Denied`], [`Error::Unusable`],
    /// [`Error::Unreachable`] and [`Error::Gone`].
    pub(crate) async fn ask(&self, sent: &Sent, asked: &Asked) -> Result<Answered> {
        let source_name = || asked.name.to_string();
        let mut attempts = Attempts::new(&asked.retry, asked.retry.attempts_max);
        let mut connects = 0;
        loop {
            asked.counting.request(attempts.made > 0);
            let (reason, after) = match self.attempt(sent).await {
                Ok(response) => {
                    asked.counting.fetched(response.body.len());
                    match asked.judge(&response) {
                        Ok(answered) => return Ok(answered),
                        Err(Verdict::Again { reason, after }) => (reason, after),
                        Err(Verdict::Final(error)) => return Err(error),
                    }
                }
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
                    log_retry(&asked.name, 0, attempts.made, (wait, &reason));
                    tokio::time::sleep(wait).await;
                }
                None => return Err(Error::Gone { source_name: source_name(), reason }),
            }
        }
    }

    /// Makes a request for a folder; `object_store` learns only that it was made.
    async fn ask_for_folder(
        &self,
        sent: &Sent,
        asked: &Asked,
    ) -> std::result::Result<HttpResponse, HttpError> {
        match self.ask(sent, asked).await {
            Ok(answered) => {
                *lock(&asked.answered) = Some(answered);
                let body = if asked.purpose == Purpose::List { NO_OBJECTS } else { b"" };
                Ok(HttpResponse::new(Bytes::from_static(body).into()))
            }
            // A kind that `object_store` does not retry.
            Err(error) => Err(HttpError::new(HttpErrorKind::Unknown, error)),
        }
    }

    /// Makes a request for credentials.
    async fn ask_for_credentials(
        &self,
        sent: &Sent,
    ) -> std::result::Result<HttpResponse, HttpError> {
        let response = self.attempt(sent).await.map_err(|fault| {
            let kind = match &fault {
                Fault::Connect { .. } => HttpErrorKind::Connect,
                Fault::Refused(_) | Fault::Setup(_) => HttpErrorKind::Interrupted,
            };
            HttpError::new(kind, Reason(format!("{}: {}", place(&sent.url), reason_of(fault))))
        })?;
        let body = match response.status.is_success() {
            true => response.body,
            // `object_store` puts the body into its error, where the place helps more.
            false => place(&sent.url).into(),
        };
        let mut answer = HttpResponse::new(body.into());
        *answer.status_mut() = response.status;
        *answer.headers_mut() = response.headers;
        Ok(answer)
    }
}

fn reason_of(fault: Fault) -> String {
    match fault {
        Fault::Refused(Refusal::Again { reason, .. }) | Fault::Connect { reason, .. } => reason,
        // An attempt fails in no other way.
        Fault::Refused(_) | Fault::Setup(_) => "the request failed".to_string(),
    }
}

/// The scheme, host and port of a URL.
fn place(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) => {
            url.set_path("");
            url.set_query(None);
            redacted(url.as_str())
        }
        Err(_) => "an invalid URL".to_string(),
    }
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
    ) -> Pin<Box<dyn Future<Output = std::result::Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let asked = parts.extensions.get::<Asked>().cloned();
            let (method, url, headers) = (parts.method, parts.uri.to_string(), parts.headers);
            let sent = Sent { method, url, headers, body };
            match asked {
                Some(asked) => self.ask_for_folder(&sent, &asked).await,
                None => self.ask_for_credentials(&sent).await,
            }
        })
    }
}
