//! Jobs: the messages to send, and how.

use std::time::Duration;

use super::datagram::DATAGRAM_BYTES_MAX;
use super::frame::{MESSAGE_BYTES_MAX, TIME_MAX, Task};
use crate::error::{Error, Result};
use crate::reading::{Area, Parameters, Subject, Unit};

/// Maximum number of concurrent streams.
const STREAMS_MAX: usize = 32;

/// The protocol under measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Streams, without loss.
    Tcp,
    /// Datagrams, some of which may be lost.
    Udp,
}

/// The quantity that a job measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Course {
    /// Messages in one direction, as fast as possible; only received ones count.
    Throughput,
    /// A message and its echo, after which the next one starts (closed loop).
    RoundTrip,
    /// A message and its echo, at this many per second, whether or not earlier echoes have arrived; the
    /// time counts from when a message fell due. With [`Protocol::Tcp`].
    Offered(f64),
}

/// A way to use a network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    /// The protocol.
    pub protocol: Protocol,
    /// The quantity to measure.
    pub course: Course,
    /// Size of a message's payload in bytes; at most 65,507 for a datagram.
    pub message_bytes: usize,
    /// The number of concurrent connections, each with a thread on both sides.
    pub streams: usize,
}

impl Protocol {
    /// The value of a reading's parameter.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        }
    }

    /// Parses the parameter's value.
    pub fn of(name: &str) -> Option<Protocol> {
        [Protocol::Tcp, Protocol::Udp].into_iter().find(|protocol| protocol.name() == name)
    }
}

impl Job {
    pub(super) fn verify(&self, time: Duration) -> Result<()> {
        let most = match self.protocol {
            Protocol::Tcp => MESSAGE_BYTES_MAX,
            Protocol::Udp => DATAGRAM_BYTES_MAX,
        };
        let refuse = |text: String| Err(Error::BadRequest(text));
        if self.message_bytes == 0 || self.message_bytes > most {
            return refuse(format!("messages of {} bytes: 1 to {most}", self.message_bytes));
        }
        if self.streams == 0 || self.streams > STREAMS_MAX {
            return refuse(format!("{} streams: 1 to {STREAMS_MAX}", self.streams));
        }
        if time > TIME_MAX {
            return refuse(format!("runs of {} s: at most {}", time.as_secs(), TIME_MAX.as_secs()));
        }
        match (self.course, self.protocol) {
            (Course::Offered(_), Protocol::Udp) => refuse("an offered rate needs TCP".to_owned()),
            (Course::Offered(rate), _) if !(rate > 0.0 && rate <= 1e7) => refuse(
                "the offered rate must be above 0 and at most 10^7 messages a second".to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Returns the time of a run. TCP's rates converge slowly and change from state to state: four
    /// streams over a loopback reached 6.9 GB/s in runs of 0.2 s, 7.6 in runs of 0.5 s, 8.4 in runs of
    /// 1 s, and iperf3 8.2 in 2 s.
    pub(super) fn run_time(&self, trial: Duration) -> Duration {
        match (self.protocol, self.course) {
            (Protocol::Tcp, Course::Throughput) => trial.max((trial * 5).min(TIME_MAX)),
            _ => trial,
        }
    }

    pub(super) fn task(&self) -> Task {
        match (self.protocol, self.course) {
            (Protocol::Tcp, Course::Throughput) => Task::Stream,
            (Protocol::Tcp, _) => Task::StreamEcho,
            (Protocol::Udp, Course::Throughput) => Task::Datagrams,
            (Protocol::Udp, _) => Task::DatagramEcho,
        }
    }

    /// Makes the subject of the reading. `path` names the other side.
    pub(super) fn subject(&self, path: &str) -> Subject {
        let mut parameters = Parameters::new()
            .with("protocol", self.protocol.name())
            .with("message_bytes", self.message_bytes)
            .with("streams", self.streams)
            .with("path", path);
        let (name, unit) = match self.course {
            Course::Throughput => ("throughput", Unit::BytesPerSecond),
            Course::RoundTrip => {
                parameters = parameters.with("load", "closed loop");
                ("round trip", Unit::Seconds)
            }
            Course::Offered(rate) => {
                parameters = parameters.with("load", "offered").with("offered_per_second", rate);
                ("round trip", Unit::Seconds)
            }
        };
        Subject::new(Area::Network, name, parameters, unit)
    }
}
