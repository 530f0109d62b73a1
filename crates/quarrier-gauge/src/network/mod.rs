//! The speed of the network between two gauges, or of the loopback of one machine.
//!
//! ```text
//!  client                                server: Listener, a thread each session
//!  Job ─→ Hello ─────────────────────→   bounds checked, session of bounded time
//!         payload, as fast as it goes ─→ counted and compared
//!         ←───────────────────────────   Account: bytes received, and whether they were right
//! ```
//!
//! Bytes received count, not bytes sent. In a stream, some bytes in each 16 KiB are compared, and every
//! 64th read whole; of datagrams, every 256th is compared whole. Comparing all bytes would take a tenth
//! of the receiver's time.

mod batch;
mod datagram;
mod echo;
mod frame;
mod guest;
mod job;
mod link;
mod listen;
mod measure;
mod named;
mod pages;
mod payload;
mod stream;
mod sweep;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub use datagram::DATAGRAM_BYTES_MAX;
pub use frame::MESSAGE_BYTES_MAX;
pub use job::{Course, Job, Protocol};
pub use listen::{Listener, SESSIONS_MAX, SessionOutcome};
pub(crate) use named::measure_named;

use crate::Request;
use crate::error::Result;
use crate::request::Network;
use crate::trial::{Series, Session};

/// The default port of a gauge.
pub const PORT: u16 = 7413;
/// Any free port of the loopback.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Messages are offered at these shares of the closed loop's rate.
const OFFERED_SHARES: [f64; 2] = [0.5, 0.8];
const OFFERED_BYTES: usize = 64;

/// Measures `job` over the path that `network` names, and returns its runs; for datagrams they include
/// the share received.
///
/// # Errors
/// If the job cannot be measured, the other side is missing or ends the session, or received bytes
/// differ from those sent.
pub fn measure_job(session: &mut Session<'_>, network: &Network, job: &Job) -> Result<Series> {
    measure::with_peer(network, |peer| measure::measure_job(session, network, peer, job))
}

/// Results of the first visit that the second needs.
#[derive(Default)]
pub(crate) struct VisitState {
    /// The round trip over TCP of the first visit, in seconds.
    round_trip: Option<f64>,
}

pub(crate) fn measure(
    request: &Request,
    session: &mut Session<'_>,
    state: &mut VisitState,
) -> Result<()> {
    let effort = session.effort.clone();
    session.effort = effort.for_answers();
    let result = measure_all(request, session, state);
    session.effort = effort;
    result
}

fn measure_all(request: &Request, session: &mut Session<'_>, state: &mut VisitState) -> Result<()> {
    let network = &request.network;
    measure::with_peer(network, |peer| {
        let mut round_trip = f64::INFINITY;
        for job in sweep::jobs(request) {
            session.check_stop()?;
            let runs = measure::measure_job(session, network, peer, &job)?;
            if (job.protocol, job.course) == (Protocol::Tcp, Course::RoundTrip) {
                round_trip = round_trip.min(runs.reading().value);
            }
            session.push(runs);
        }
        let round_trip = *state.round_trip.get_or_insert(round_trip);
        for share in OFFERED_SHARES.iter().filter(|_| !request.quick && round_trip > 0.0) {
            let job = Job {
                protocol: Protocol::Tcp,
                course: Course::Offered(share / round_trip),
                message_bytes: OFFERED_BYTES,
                streams: 1,
            };
            let runs = measure::measure_job(session, network, peer, &job)?;
            session.push(runs);
        }
        Ok(())
    })
}
