//! Measures a job.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quarrier_core::sync::StopOnDrop;
use quarrier_core::threads;

use super::datagram;
use super::echo::{self, Echoes};
use super::frame::{Account, Name};
use super::job::{Course, Job, Protocol};
use super::link::{Link, Peer, Terms};
use super::listen::Listener;
use super::payload::Payload;
use super::{LOOPBACK, stream};
use crate::error::{Error, Result};
use crate::latencies::Latencies;
use crate::reading::Unit;
use crate::request::Network;
use crate::schedule::Schedule;
use crate::trial::{Datagrams, Needs, Series, Session, Team, ThreadWork, Trial};

/// Calls `work` with the other side: the named peer, or a listener of this process, which has ended
/// when this returns.
///
/// # Errors
/// If the peer is not found, or no address is free.
pub(super) fn with_peer<T>(network: &Network, work: impl FnOnce(&Peer) -> Result<T>) -> Result<T> {
    if let Some(address) = &network.peer {
        return work(&Peer::find(address)?);
    }
    let listener = Listener::bind(LOOPBACK)?;
    let peer = Peer { address: listener.address()? };
    let end = StopOnDrop::default();
    let over = end.flag();
    thread::scope(|scope| {
        // Dropped when the work ends, even by a panic: the scope waits for the listener.
        let _end = end;
        threads::in_scope(scope, "", || listener.serve(&over, &|_, _| ()))
            .map_err(|error| Error::io("listener", "start a thread", error))?;
        work(&peer)
    })
}

/// One stream of one run.
struct Flow<'a> {
    link: Link<'a>,
    payload: Payload,
    sent: u64,
    /// The system calls that sent datagrams.
    calls: &'static str,
    send_seconds: f64,
    account: Account,
    echoes: Option<Echoes>,
}

/// The results of a run besides its rate.
struct Aside {
    latencies: Latencies,
    /// For datagrams only.
    sent: u64,
    came: u64,
    lost: u64,
    late: u64,
    calls: &'static str,
    congestion: String,
    note: Option<String>,
}

/// Measures `job` between this side and `peer`. For datagrams it reports the share that arrived.
pub(super) fn measure_job(
    session: &mut Session<'_>,
    network: &Network,
    peer: &Peer,
    job: &Job,
) -> Result<Series> {
    let (time, stop) = (job.run_time(session.effort.trial), session.stop);
    job.verify(time)?;
    let asked = network.congestion.as_deref().unwrap_or("");
    let congestion = Name::new(asked).ok_or_else(|| {
        Error::BadRequest(format!("{asked:?} is not a congestion control algorithm"))
    })?;
    let path = network.peer.as_deref().unwrap_or("loopback");
    let subject = job.subject(path);
    let unit = subject.unit;
    let terms = |index: usize, run: usize| Terms {
        task: job.task(),
        message_bytes: job.message_bytes,
        time,
        seed: (run as u64) << 32 | index as u64,
        congestion,
    };
    let mut asides: Vec<Aside> = Vec::new();
    let mut runs = session.runs(subject, Needs::Answers, |team| {
        let run = asides.len();
        let mut flows = team.prepare(job.streams, |index| open(peer, terms(index, run), stop))?;
        let trial = one_run(team, &mut flows, job, time, stop)?;
        let aside = aside(&flows, stop)?;
        let trial = valued(trial, unit, job, &flows, &aside);
        asides.push(aside);
        Ok(trial)
    })?;
    tell(&mut runs, job, &asides)?;
    Ok(runs)
}

fn open<'a>(peer: &Peer, terms: Terms, stop: &'a AtomicBool) -> Result<Flow<'a>> {
    Ok(Flow {
        link: peer.open(terms, stop)?,
        payload: Payload::new(terms.seed),
        sent: 0,
        calls: "",
        send_seconds: 0.0,
        account: Account::default(),
        echoes: None,
    })
}

fn one_run(
    team: &Team,
    flows: &mut [Flow<'_>],
    job: &Job,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Trial> {
    let streams = flows.len() as f64;
    // The threads of the other side need CPUs, too.
    team.run_unpinned(flows, |_, flow| {
        let offered = match job.course {
            Course::Offered(rate) => Some(rate / streams),
            Course::Throughput | Course::RoundTrip => None,
        };
        flow.run(job, &mut Schedule::new(time, offered, stop))
    })
}

impl Flow<'_> {
    /// Refuses an account that cannot be true. A network may duplicate a datagram now and then, but
    /// cannot deliver more than were sent.
    fn believe(&self, message_bytes: u64) -> Result<()> {
        let Account { messages, bytes, .. } = self.account;
        if messages > self.sent.saturating_mul(2) || bytes > messages.saturating_mul(message_bytes)
        {
            let text = format!("accounts for {messages} datagrams, and {} were sent", self.sent);
            return Err(self.link.peer(text));
        }
        Ok(())
    }

    fn run(&mut self, job: &Job, schedule: &mut Schedule<'_>) -> Result<ThreadWork> {
        let nothing = || Error::BadRequest("a session without a socket for datagrams".to_owned());
        match (job.protocol, job.course) {
            (Protocol::Tcp, Course::Throughput) => {
                let start = Instant::now();
                let sent = stream::send(&self.link, &self.payload, schedule)?;
                self.send_seconds = start.elapsed().as_secs_f64();
                self.account = self.link.end(None)?;
                if self.account.bytes != sent {
                    let came = self.account.bytes;
                    return Err(self.link.peer(format!("received {came} of {sent} bytes")));
                }
            }
            (Protocol::Tcp, _) => {
                let nodelay = self.link.stream.set_nodelay(true);
                nodelay.map_err(|error| self.link.failed("send at once", error))?;
                let closed = job.course == Course::RoundTrip;
                self.echoes = Some(echo::ask_stream(&self.link, &self.payload, closed, schedule)?);
                self.account = self.link.end(None)?;
            }
            (Protocol::Udp, Course::Throughput) => {
                let socket = self.link.datagrams.as_ref().ok_or_else(nothing)?;
                let sent = datagram::send(&self.link, socket, &self.payload, schedule)?;
                (self.sent, self.calls) = (sent.datagrams, sent.calls);
                self.send_seconds = sent.seconds;
                self.account = self.link.end(Some(sent.datagrams))?;
                self.believe(job.message_bytes as u64)?;
            }
            (Protocol::Udp, _) => {
                let socket = self.link.datagrams.as_ref().ok_or_else(nothing)?;
                let echoes = echo::ask_datagrams(&self.link, socket, &self.payload, schedule)?;
                let asked = echoes.answered + echoes.lost;
                self.echoes = Some(echoes);
                self.account = self.link.end(Some(asked))?;
            }
        }
        Ok(ThreadWork { units: self.account.bytes as f64, check: self.account.messages })
    }
}

fn aside(flows: &[Flow<'_>], stop: &AtomicBool) -> Result<Aside> {
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Stopped);
    }
    let mut latencies = Latencies::new()?;
    flows.iter().filter_map(|flow| flow.echoes.as_ref()).for_each(|echoes| {
        latencies.add(&echoes.latencies);
    });
    let sent: u64 = flows.iter().map(|flow| flow.sent).sum();
    let came: u64 = flows.iter().map(|flow| flow.account.messages).sum();
    let lost = flows.iter().filter_map(|flow| flow.echoes.as_ref()).map(|echoes| echoes.lost);
    let first = flows.first();
    Ok(Aside {
        latencies,
        sent,
        came,
        lost: sent.saturating_sub(came) + lost.sum::<u64>(),
        late: flows.iter().map(|flow| flow.account.late).sum(),
        calls: first.map_or("", |flow| flow.calls),
        congestion: first.map_or_else(String::new, |flow| flow.link.congestion.clone()),
        note: first.and_then(|flow| flow.link.note.clone()),
    })
}

/// Sets a trial's value. For round trips it is the median time of one. The rate counts bytes over the
/// time in which they were sent and received, since the account arrives some time after the last of
/// them. The rates of several streams, each over its own time, are added up, as other tools do.
fn valued(trial: Trial, unit: Unit, job: &Job, flows: &[Flow<'_>], aside: &Aside) -> Trial {
    if unit == Unit::Seconds {
        return Trial { seconds: aside.latencies.median_seconds(), units: 1.0, ..trial };
    }
    let seconds = |flow: &Flow<'_>| flow.send_seconds.max(flow.account.span_ns as f64 * 1e-9);
    match job.protocol {
        Protocol::Tcp => {
            let rate = |flow: &Flow<'_>| flow.account.bytes as f64 / seconds(flow).max(1e-9);
            let rate: f64 = flows.iter().map(rate).sum();
            Trial { seconds: trial.units / rate.max(1e-9), ..trial }
        }
        Protocol::Udp => Trial { seconds: flows.iter().map(seconds).fold(1e-9, f64::max), ..trial },
    }
}

/// Adds the results besides the rate to the runs.
fn tell(runs: &mut Series, job: &Job, asides: &[Aside]) -> Result<()> {
    let kept = runs.kept_of(asides);
    let Some(last) = kept.last() else { return Ok(()) };
    let parameters = runs.subject.parameters.clone();
    runs.subject.parameters = match (job.protocol, job.course) {
        (Protocol::Tcp, _) => parameters.with("congestion", last.congestion.as_str()),
        (Protocol::Udp, Course::Throughput) => parameters.with("calls", last.calls),
        (Protocol::Udp, _) => parameters,
    };
    runs.notes.extend(last.note.clone());
    let sum = |count: fn(&Aside) -> u64| kept.iter().map(|aside| count(aside)).sum();
    runs.datagrams = (job.protocol == Protocol::Udp).then(|| Datagrams {
        sent: sum(|aside| aside.sent),
        came: sum(|aside| aside.came),
        lost: sum(|aside| aside.lost),
        late: sum(|aside| aside.late),
    });
    let latencies: Vec<&Latencies> = kept.iter().map(|aside| &aside.latencies).collect();
    runs.latencies = Some(Latencies::sum(&latencies)?);
    Ok(())
}
