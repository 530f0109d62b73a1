//! The jobs of a report, and those for the profile.

use super::datagram::DATAGRAM_BYTES_MAX;
use super::job::{Course, Job, Protocol};
use crate::Request;

const KIB: usize = 1 << 10;
/// The message size of the sweeps over streams; the default of iperf3.
const LARGE: usize = 128 * KIB;

/// All jobs except the offered ones, which depend on the rates of the others.
pub(super) fn jobs(request: &Request) -> Vec<Job> {
    if request.quick { quick(&request.threads) } else { full() }
}

fn throughput(protocol: Protocol, message_bytes: usize, streams: usize) -> Job {
    Job { protocol, course: Course::Throughput, message_bytes, streams }
}

fn round_trip(protocol: Protocol, message_bytes: usize) -> Job {
    Job { protocol, course: Course::RoundTrip, message_bytes, streams: 1 }
}

fn quick(threads: &[usize]) -> Vec<Job> {
    let most = threads.iter().copied().max().unwrap_or(1).min(8);
    let mut jobs = vec![
        throughput(Protocol::Tcp, LARGE, 1),
        throughput(Protocol::Tcp, LARGE, most),
        throughput(Protocol::Udp, DATAGRAM_BYTES_MAX, 1),
        round_trip(Protocol::Tcp, 64),
    ];
    jobs.dedup();
    jobs
}

fn full() -> Vec<Job> {
    let mut jobs = Vec::new();
    for message_bytes in [1, 16, 64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB] {
        jobs.push(throughput(Protocol::Tcp, message_bytes, 1));
    }
    for streams in [1, 2, 4, 8] {
        jobs.push(throughput(Protocol::Tcp, LARGE, streams));
    }
    // 1,472 bytes fit into an Ethernet frame.
    for message_bytes in [1, 16, 64, 256, 1_472, 8 * KIB, 32 * KIB] {
        jobs.push(throughput(Protocol::Udp, message_bytes, 1));
    }
    for streams in [1, 2, 4, 8] {
        jobs.push(throughput(Protocol::Udp, DATAGRAM_BYTES_MAX, streams));
    }
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for message_bytes in [1, 64, KIB, 16 * KIB, DATAGRAM_BYTES_MAX] {
            jobs.push(round_trip(protocol, message_bytes));
        }
    }
    jobs
}
