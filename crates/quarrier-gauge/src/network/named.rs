//! Finds a job by the name and parameters of a reading.

use super::job::{Course, Job, Protocol};
use super::measure_job;
use crate::error::Result;
use crate::named::{size, unknown, word};
use crate::reading::{Area, Parameters, Value};
use crate::request::Network;
use crate::trial::Session;

/// Measures `name` over the loopback, or to the gauge that listens at `peer`.
pub(crate) fn measure_named(
    session: &mut Session<'_>,
    name: &str,
    parameters: &Parameters,
) -> Result<()> {
    let course = match (name, parameters.get("offered_per_second")) {
        ("throughput", _) => Course::Throughput,
        ("round trip", Some(Value::Integer(rate))) => Course::Offered(*rate as f64),
        ("round trip", Some(Value::Number(rate))) => Course::Offered(*rate),
        ("round trip", _) => Course::RoundTrip,
        _ => return Err(unknown(Area::Network, name)),
    };
    let job = Job {
        protocol: word(parameters, "protocol", "tcp", Protocol::of)?,
        course,
        message_bytes: size(parameters, "message_bytes", 64),
        streams: size(parameters, "streams", 1),
    };
    let text = |name| parameters.text(name).map(str::to_owned);
    let network = Network { peer: text("peer"), congestion: text("congestion") };
    let for_answers = session.effort.for_answers();
    let effort = std::mem::replace(&mut session.effort, for_answers);
    let runs = measure_job(session, &network, &job);
    session.effort = effort;
    session.push(runs?);
    Ok(())
}
