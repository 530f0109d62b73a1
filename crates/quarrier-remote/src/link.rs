//! Requests for one object: sends them, checks the responses, reads the bodies.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quarrier_core::sync::lock;
use reqwest::header::{ACCEPT_ENCODING, IF_MATCH, IF_UNMODIFIED_SINCE, RANGE};
use reqwest::{RequestBuilder, Response, Url};
use tokio::time::timeout;

use crate::answer::{self, Answer, RangeRequest, Refusal, Version};
use crate::bucket::{Signing, path_of};
use crate::connector::Connector;
use crate::counters::Counting;
use crate::error::Result;
use crate::fault::{Fault, again, fault_of, no_byte};
use crate::location::{Location, Place};
use crate::options::Timeouts;
use crate::secrets::{Hop, Secrets};
use crate::shared::Shared;

use crate::transport::{innermost, permit_redirect, redirect_of};

/// Makes the requests for one object.
#[derive(Debug)]
pub(crate) struct Link {
    client: reqwest::Client,
    way: Way,
    timeouts: Timeouts,
    pub(crate) counting: Arc<Counting>,
}

#[derive(Debug)]
enum Way {
    Http(Box<HttpWay>),
    Bucket(Box<Signing>),
    /// No requests are allowed.
    Offline,
}

#[derive(Debug)]
struct HttpWay {
    url: Url,
    secrets: Secrets,
    /// The last redirect target: requesting it directly saves a round trip.
    target: Mutex<Option<Hop>>,
}

/// A response whose body has not arrived yet.
pub(crate) struct PendingResponse {
    pub(crate) answer: Answer,
    pub(crate) body: Body,
}

impl Link {
    pub(crate) fn new(
        location: &Location,
        shared: &Shared,
        settings: &[(String, String)],
    ) -> Result<Self> {
        let (client, options) = (shared.client.clone(), &shared.options);
        let way = match &location.place {
            // No credentials are needed.
            _ if options.offline => Way::Offline,
            Place::Http(url) => {
                let secrets = Secrets::of(url, options)?;
                let way = HttpWay { url: url.clone(), secrets, target: Mutex::new(None) };
                Way::Http(Box::new(way))
            }
            Place::Bucket { store, bucket, key } => {
                let connector = Connector::new(client.clone(), options);
                let key = path_of(&location.name, key)?;
                let signing = Signing::new(*store, (bucket.as_str(), key), settings, connector)?;
                Way::Bucket(Box::new(signing))
            }
        };
        let timeouts = options.timeouts.clone();
        let counting = Counting::of_source(&shared.counting);
        Ok(Link { client, way, timeouts, counting: Arc::new(counting) })
    }

    /// Sends the request `asked`.
    pub(crate) async fn send(
        &self,
        asked: RangeRequest,
        known: Option<&Version>,
        is_retry: bool,
    ) -> std::result::Result<PendingResponse, Fault> {
        let (hop, is_shortcut) = self.url(false).await?;
        let started = self.send_to(hop, asked, known, is_retry).await;
        let is_refused = matches!(
            started,
            Err(Fault::Refused(Refusal::Denied(_) | Refusal::NotFound | Refusal::Status(_)))
        );
        if !is_refused || !is_shortcut {
            return started;
        }
        tracing::debug!("a signature or redirect target was refused: requesting a new one");
        // Signatures and redirect targets expire.
        let (hop, _) = self.url(true).await?;
        self.send_to(hop, asked, known, true).await
    }

    /// The URL to request, and whether a new one may work if it fails.
    async fn url(&self, is_refused: bool) -> std::result::Result<(Hop, bool), Fault> {
        match &self.way {
            Way::Http(http) => {
                let mut target = lock(&http.target);
                if is_refused {
                    *target = None;
                }
                let is_shortcut = target.is_some();
                let own = || Hop { url: http.url.clone(), is_own: true };
                Ok((target.clone().unwrap_or_else(own), is_shortcut))
            }
            Way::Offline => {
                let reason = "nothing is fetched offline".to_string();
                Err(Fault::Setup(crate::Error::Setup { reason }))
            }
            Way::Bucket(signing) => {
                let url = signing.url(is_refused).await.map_err(Fault::Setup)?;
                let hop = Hop { url, is_own: true };
                Ok((hop, self.counting.read().bytes_fetched > 0))
            }
        }
    }

    async fn send_to(
        &self,
        hop: Hop,
        asked: RangeRequest,
        known: Option<&Version>,
        is_retry: bool,
    ) -> std::result::Result<PendingResponse, Fault> {
        self.counting.request(is_retry);
        let (first, sent) = (hop.url.clone(), Instant::now());
        let following = self.follow(hop, asked, known);
        let Ok(sent_to) = timeout(self.timeouts.progress, following).await else {
            return Err(again(no_byte(self.timeouts.progress)));
        };
        let (response, last) = sent_to?;
        if let Way::Http(http) = &self.way
            && last.url != first
            && response.status().is_success()
        {
            *lock(&http.target) = Some(last);
        }
        let (status, headers) = (response.status(), response.headers());
        let is_delimited = response.content_length().is_some()
            || headers.contains_key(reqwest::header::TRANSFER_ENCODING);
        let answer = answer::judge(status, headers, asked, known)?;
        let first_byte = sent.elapsed();
        let timeouts = self.timeouts.clone();
        let body = Body { response, timeouts, is_delimited, sent, first_byte, pace: None };
        Ok(PendingResponse { answer, body })
    }
}

impl Link {
    /// Sends a request, and further ones while the response is a redirect; also returns the last URL.
    async fn follow(
        &self,
        mut hop: Hop,
        asked: RangeRequest,
        known: Option<&Version>,
    ) -> std::result::Result<(Response, Hop), Fault> {
        let mut redirects = 0;
        loop {
            let mut request = with_range(self.client.get(hop.url.clone()), asked, known);
            // The URL of an object in a bucket is signed, and a redirect has another.
            if let Way::Http(http) = &self.way
                && hop.is_own
            {
                request = http.secrets.add_to(request);
            }
            let response = request.send().await.map_err(|error| fault_of(&error))?;
            let Some(next) = redirect_of(&response) else { return Ok((response, hop)) };
            redirects += 1;
            if let Err(reason) = permit_redirect(&hop.url, &next, redirects) {
                return Err(Fault::Connect { reason: reason.to_string(), is_final: true });
            }
            hop = hop.to(next);
        }
    }
}

/// A request for a range of a version.
fn with_range(
    request: RequestBuilder,
    asked: RangeRequest,
    known: Option<&Version>,
) -> RequestBuilder {
    let mut request = request.header(ACCEPT_ENCODING, "identity");
    request = match asked {
        RangeRequest::Span(span) => {
            let last = span.end().saturating_sub(1);
            request.header(RANGE, format!("bytes={}-{last}", span.offset))
        }
        RangeRequest::Tail(bytes) => request.header(RANGE, format!("bytes=-{bytes}")),
        RangeRequest::Whole => request,
    };
    let Some(known) = known else { return request };
    match (&known.etag, &known.last_modified) {
        (Some(etag), _) if !etag.starts_with("W/") => request.header(IF_MATCH, etag),
        (_, Some(date)) => request.header(IF_UNMODIFIED_SINCE, date),
        _ => request,
    }
}

/// A response body, read in parts, with timeouts.
pub(crate) struct Body {
    response: Response,
    timeouts: Timeouts,
    /// Whether a truncated body can be distinguished from a complete one.
    pub(crate) is_delimited: bool,
    /// When the request was sent.
    pub(crate) sent: Instant,
    /// The time until the response began.
    pub(crate) first_byte: Duration,
    pace: Option<(Instant, u64)>,
}

impl Body {
    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> std::result::Result<Option<Bytes>, Fault> {
        let part = match timeout(self.timeouts.progress, self.response.chunk()).await {
            Ok(Ok(part)) => part,
            Ok(Err(error)) => {
                return Err(again(format!("the connection was cut ({})", innermost(&error))));
            }
            Err(_) => return Err(again(no_byte(self.timeouts.progress))),
        };
        let Some(part) = part else { return Ok(None) };
        let (since, bytes) = self.pace.get_or_insert_with(|| (Instant::now(), 0));
        *bytes += part.len() as u64;
        let elapsed = since.elapsed();
        if elapsed >= self.timeouts.slow_for {
            let least = self.timeouts.bytes_per_second_min as f64 * elapsed.as_secs_f64();
            if (*bytes as f64) < least {
                return Err(again(format!(
                    "the server is too slow: {bytes} bytes in {:.1} s",
                    elapsed.as_secs_f64()
                )));
            }
            self.pace = None;
        }
        Ok(Some(part))
    }
}
