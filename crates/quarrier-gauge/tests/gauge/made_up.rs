//! Synthetic reports with plausible readings.

use quarrier_gauge::conditions::{Cache, Conditions, During, Limits, Machine};
use quarrier_gauge::report::{FORMAT, Report};
use quarrier_gauge::{Area, Parameters, Percentiles, Reading, Timeline, Unit};

/// Creates a report with every type of sweep; `seed` determines the spread of its runs.
pub(crate) fn report(seed: u64) -> Report {
    let mut noise = Noise(seed);
    let mut readings = Vec::new();
    cpu(&mut readings, &mut noise);
    memory(&mut readings, &mut noise);
    disk(&mut readings, &mut noise);
    network(&mut readings, &mut noise);
    shared(&mut readings, &mut noise);
    let mut report = Report { readings, ..empty() };
    report.conditions.disturbed =
        report.readings.iter().filter(|reading| reading.disturbed).count() as u32;
    report
}

/// A report without readings.
pub(crate) fn empty() -> Report {
    Report {
        format: FORMAT,
        quarrier: "0.1.0".to_owned(),
        when: 1_795_333_150,
        seconds: 431.5,
        machine: machine(),
        limited_by: None,
        conditions: Conditions {
            load_before: 0.12,
            load_after: 2.04,
            steal: 0.002,
            others: 0.03,
            clock_before_hertz: Some(3.81e9),
            clock_after_hertz: Some(3.79e9),
            ..Conditions::default()
        },
        readings: Vec::new(),
    }
}

pub(crate) fn machine() -> Machine {
    let cache = |level, bytes, shared_by| Cache {
        level,
        kind: if level == 1 { "data" } else { "unified" }.to_owned(),
        bytes,
        shared_by,
    };
    Machine {
        name: "quarry".to_owned(),
        cpu_model: "Example 9000 32-Core Processor".to_owned(),
        cpu_signature: "GenuineExample 26 2 1".to_owned(),
        architecture: "x86_64".to_owned(),
        instruction_sets: ["scalar", "AVX2", "AVX-512"].map(str::to_owned).to_vec(),
        cpus: 4,
        caches: vec![cache(1, 48 << 10, 2), cache(2, 1 << 20, 2), cache(3, 32 << 20, 4)],
        nodes: 2,
        memory_bytes: 24 << 30,
        page_bytes: 4096,
        huge_pages: "madvise".to_owned(),
        kernel: "Linux 6.12.0".to_owned(),
        virtual_machine: Some("KVM".to_owned()),
        governor: None,
        limits: Limits::default(),
    }
}

/// A reading of runs around `value` that spread by `spread` of it.
pub(crate) fn reading(
    (area, measurement): (Area, &str),
    parameters: Parameters,
    (value, unit): (f64, Unit),
    (spread, runs): (f64, usize),
    noise: &mut Noise,
) -> Reading {
    let samples: Vec<f64> = (0..runs).map(|_| value * (1.0 + spread * noise.normal())).collect();
    let median = quarrier_gauge::statistics::median(&samples);
    let conditions = During { load: 0.4, cpu_share: 0.998, ..During::default() };
    Reading {
        area,
        measurement: measurement.to_owned().into(),
        parameters,
        value: median,
        unit,
        mean: quarrier_gauge::statistics::mean(&samples),
        stddev: quarrier_gauge::statistics::stddev(&samples),
        best: samples.iter().copied().fold(median, f64::max),
        interval: (median * (1.0 - spread), median * (1.0 + spread)),
        runs: runs as u32,
        dropped: 0,
        disturbed: false,
        samples,
        percentiles: None,
        timeline: None,
        conditions,
        earlier_value: None,
        received_share: None,
        notes: Vec::new(),
    }
}

fn cpu(readings: &mut Vec<Reading>, noise: &mut Noise) {
    for (kind, base) in [("f64", 14.8e9), ("f32", 14.8e9)] {
        for (isa, lanes) in [("scalar", 1.0), ("AVX2", 4.0), ("AVX-512", 8.0)] {
            for threads in [1u64, 2, 4, 8] {
                let lanes = if kind == "f32" && lanes > 1.0 { lanes * 2.0 } else { lanes };
                let rate = 2.0 * base * lanes * threads.min(4) as f64 * 0.99;
                let parameters =
                    Parameters::new().with("type", kind).with("isa", isa).with("threads", threads);
                let value = (rate, Unit::FlopPerSecond);
                readings.push(reading(
                    (Area::Cpu, "multiply-add"),
                    parameters,
                    value,
                    (0.006, 5),
                    noise,
                ));
            }
        }
    }
    for (kind, rate) in [("f64", 102e9), ("f32", 195e9)] {
        for threads in [1u64, 2] {
            let parameters = Parameters::new().with("type", kind).with("threads", threads);
            let value = (rate * threads as f64, Unit::FlopPerSecond);
            readings.push(reading(
                (Area::Cpu, "matrix product"),
                parameters,
                value,
                (0.01, 5),
                noise,
            ));
        }
    }
    let value = (3.81e9, Unit::OpPerSecond);
    readings.push(reading(
        (Area::Cpu, "dependent add"),
        Parameters::new().with("threads", 1),
        value,
        (0.002, 5),
        noise,
    ));
}

/// Bytes per second by block size, as caches would give.
fn falling(bytes: f64, threads: f64) -> f64 {
    let call = bytes / (bytes + 600.0);
    let level = |size: f64| 1.0 / (1.0 + (bytes / size).powi(4));
    let single = 40e9 + 60e9 * level(32e6) + 130e9 * level(1e6) + 220e9 * level(48e3);
    single * call * threads.min(4.0) * if bytes > 32e6 { 0.6 } else { 1.0 }
}

fn memory(readings: &mut Vec<Reading>, noise: &mut Noise) {
    for threads in [1u64, 2, 4, 8] {
        streams(readings, threads, noise);
        for power in (12..=30).step_by(2) {
            let parameters = Parameters::new()
                .with("threads", threads)
                .with("block_bytes", 1u64 << power)
                .with("pages", "huge")
                .with("isa", "AVX-512");
            let each = (1u64 << power) as f64 / threads.min(4) as f64;
            let value = (falling(each, threads as f64), Unit::BytesPerSecond);
            readings.push(reading((Area::Memory, "read"), parameters, value, (0.02, 5), noise));
        }
        for access in ["sequential", "random"] {
            for power in (0..=30).step_by(3) {
                let bytes = (1u64 << power) as f64;
                let jump = if access == "random" { bytes / (bytes + 4000.0) } else { 1.0 };
                let rate = 30e9 * bytes / (bytes + 40.0) * jump * threads.min(3) as f64;
                let parameters = Parameters::new()
                    .with("threads", threads)
                    .with("block_bytes", 1u64 << power)
                    .with("access", access);
                let what = (Area::Memory, "block read");
                let value = (rate, Unit::BytesPerSecond);
                readings.push(reading(what, parameters, value, (0.02, 5), noise));
            }
        }
    }
    for pages in ["small", "huge"] {
        for power in 12..=30 {
            let bytes = (1u64 << power) as f64;
            let far = |size: f64, seconds: f64| seconds / (1.0 + (size / bytes).powi(3));
            let huge = if pages == "huge" { 0.7 } else { 1.0 };
            let seconds = 1.1e-9 + far(60e3, 3e-9) + far(1.2e6, 12e-9) + far(40e6, 150e-9 * huge);
            let parameters = Parameters::new()
                .with("block_bytes", 1u64 << power)
                .with("pages", pages)
                .with("threads", 1);
            let value = (seconds, Unit::Seconds);
            readings.push(reading((Area::Memory, "latency"), parameters, value, (0.01, 5), noise));
        }
    }
}

/// What cores share: requests in flight, latency under load, transfers between CPUs and nodes.
fn shared(readings: &mut Vec<Reading>, noise: &mut Noise) {
    let mut push = |name: &str, parameters: Parameters, value: f64, unit: Unit| {
        readings.push(reading((Area::Memory, name), parameters, (value, unit), (0.01, 5), noise));
    };
    for chains in [1_u32, 2, 4, 8, 16, 32] {
        let parameters = Parameters::new().with("chains", chains).with("threads", 1);
        let rate = 10e6 * f64::from(chains.min(24));
        push("loads in flight", parameters, rate, Unit::OpPerSecond);
    }
    for pause in [32_000_u32, 4_000, 1_000, 250, 0] {
        let parameters = Parameters::new().with("pause_ns", pause).with("threads", 4);
        let load = 90e9 / (1.0 + f64::from(pause) / 400.0);
        let seconds = 100e-9 + 80e-9 * load / (100e9 - load);
        push("latency under load", parameters.clone(), seconds, Unit::Seconds);
        push("load beside latency", parameters, load, Unit::BytesPerSecond);
    }
    for (from, to) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        let parameters =
            Parameters::new().with("from_cpu", from).with("to_cpu", to).with("threads", 2);
        let seconds = if to == from + 1 { 20e-9 } else { 110e-9 };
        push("core to core", parameters, seconds, Unit::Seconds);
    }
    for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let parameters =
            Parameters::new().with("from_node", from).with("to_node", to).with("threads", 1);
        let seconds = if from == to { 95e-9 } else { 140e-9 };
        push("node latency", parameters, seconds, Unit::Seconds);
    }
}

/// The readings of STREAM, beyond the caches.
fn streams(readings: &mut Vec<Reading>, threads: u64, noise: &mut Noise) {
    for (name, rate) in [("read", 26e9), ("write", 20e9), ("copy", 24e9), ("triad", 25e9)] {
        for stores in ["ordinary", "streaming"] {
            for pages in ["small", "huge"] {
                let mut parameters =
                    Parameters::new().with("threads", threads).with("block_bytes", 128u64 << 20);
                let mut rate = rate * (threads.min(4) as f64).powf(0.7);
                if name != "read" {
                    parameters = parameters.with("stores", stores);
                    rate *= if stores == "streaming" { 1.4 } else { 1.0 };
                } else if stores == "streaming" {
                    continue;
                }
                rate *= if pages == "huge" { 1.05 } else { 1.0 };
                let parameters = parameters.with("pages", pages).with("isa", "AVX-512");
                let what = (Area::Memory, name);
                let value = (rate, Unit::BytesPerSecond);
                let mut one = reading(what, parameters, value, (0.02, 5), noise);
                if name == "triad" && threads == 2 {
                    one.disturbed = true;
                    one.stddev *= 6.0;
                    one.notes.push("two modes: 4.68e10 and 7.90e10".to_owned());
                }
                readings.push(one);
            }
        }
    }
}

fn disk(readings: &mut Vec<Reading>, noise: &mut Noise) {
    let parameters = |block: u64, depth: u64, threads: u64, cache: &str| {
        Parameters::new()
            .with("block_bytes", block)
            .with("depth", depth)
            .with("threads", threads)
            .with("cache", cache)
            .with("load", "closed loop")
    };
    for name in ["sequential read", "random read", "sequential write"] {
        let mut jobs: Vec<(u64, u64, u64, &str)> = Vec::new();
        jobs.extend(
            (9..=24).step_by(3).flat_map(|p| [(1 << p, 1, 1, "direct"), (1 << p, 32, 1, "direct")]),
        );
        jobs.extend([1, 2, 4, 8, 16, 64].map(|depth| (4096, depth, 1, "direct")));
        jobs.extend([1, 2, 4].map(|threads| (1 << 16, 1, threads, "warm")));
        jobs.extend((0..=24).step_by(4).map(|p| (1 << p, 1, 1, "warm")));
        jobs.sort_unstable();
        jobs.dedup();
        for (block, depth, threads, cache) in jobs {
            let wait = if cache == "warm" { 0.5e-6 } else { 63e-6 };
            let top = if cache == "warm" { 12e9 * threads as f64 } else { 2.2e9 };
            let per_second = (depth as f64).powf(0.6) / wait;
            let rate = 1.0 / (1.0 / (per_second * block as f64) + 1.0 / top);
            let unit = if name == "random read" { Unit::OpPerSecond } else { Unit::BytesPerSecond };
            let value = if name == "random read" { rate / block as f64 } else { rate };
            let mut one = reading(
                (Area::Disk, name),
                parameters(block, depth, threads, cache),
                (value, unit),
                (0.03, 4),
                noise,
            );
            if name == "random read" && block == 4096 {
                one.percentiles = Some(percentiles(wait * (depth as f64).powf(0.4), noise));
            }
            readings.push(one);
        }
    }
    sustained(readings);
    let sync =
        Parameters::new().with("block_bytes", 4096).with("threads", 1).with("calls", "fdatasync");
    let mut one = reading((Area::Disk, "sync"), sync, (1.2e-3, Unit::Seconds), (0.05, 5), noise);
    one.percentiles = Some(percentiles(1.2e-3, noise));
    readings.push(one);
}

/// Long runs: writes that slow down after 31 s, and steady reads.
fn sustained(readings: &mut Vec<Reading>) {
    let noise = &mut Noise(5);
    for (name, initial, initial_windows, rate) in
        [("sustained write", 250e6, 31, 128e6), ("sustained read", 2.2e9, 60, 2.2e9)]
    {
        let level = |window| if window < initial_windows { initial } else { rate };
        let rates: Vec<f64> =
            (0..60).map(|window| level(window) * (1.0 + 0.02 * noise.normal())).collect();
        let from = if initial_windows == 60 { 0 } else { initial_windows };
        let parameters = Parameters::new()
            .with("block_bytes", 1 << 20)
            .with("access", "sequential")
            .with("depth", 32)
            .with("seconds", 60);
        let value = (rate, Unit::BytesPerSecond);
        let mut one = reading((Area::Disk, name), parameters, value, (0.02, 60 - from), noise);
        one.samples = rates[from..].to_vec();
        one.timeline = Some(Timeline {
            window_seconds: 1.0,
            initial,
            initial_seconds: initial_windows as f64,
            steady_after_seconds: Some(from as f64),
            rates,
        });
        readings.push(one);
    }
}

fn network(readings: &mut Vec<Reading>, noise: &mut Noise) {
    for streams in [1u64, 2, 4, 8] {
        for power in (0..=16).step_by(2) {
            let bytes = (1u64 << power) as f64;
            let rate = bytes / (1.2e-6 + bytes / 8e9) * (streams as f64).min(3.0).powf(0.7);
            let parameters = Parameters::new()
                .with("protocol", "TCP")
                .with("message_bytes", 1u64 << power)
                .with("streams", streams);
            readings.push(reading(
                (Area::Network, "throughput"),
                parameters,
                (rate, Unit::BytesPerSecond),
                (0.05, 5),
                noise,
            ));
        }
    }
    for power in (0..=16).step_by(4) {
        let parameters =
            Parameters::new().with("protocol", "TCP").with("message_bytes", 1u64 << power);
        let mut one = reading(
            (Area::Network, "round trip"),
            parameters,
            (52e-6, Unit::Seconds),
            (0.04, 5),
            noise,
        );
        one.percentiles = Some(percentiles(52e-6, noise));
        readings.push(one);
    }
}

/// Request times around `middle`, with a tail.
fn percentiles(middle: f64, noise: &mut Noise) -> Percentiles {
    let mut times: Vec<f64> = (0..20_000)
        .map(|n| {
            let tail = if n % 200 == 0 { 8.0 } else { 1.0 };
            middle * (0.25 * noise.normal()).exp() * tail
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize];
    let mut buckets: Vec<(f64, u64)> = Vec::new();
    for time in &times {
        let end = 1.02f64.powf((time.ln() / 1.02f64.ln()).ceil());
        match buckets.last_mut() {
            Some((last, count)) if *last >= end => *count += 1,
            _ => buckets.push((end, 1)),
        }
    }
    Percentiles {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: at(1.0),
        buckets,
    }
}

/// A deterministic generator of numbers.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An approximate normal distribution: the sum of twelve uniform numbers.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}
