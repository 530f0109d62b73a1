//! Devices: what the search kernel reaches of the memory it reads from, what a stream reaches of
//! the way to the device, one driver beside the other, the device beside the CPU, and the kernel
//! beside the same text compiled as C. Without a GPU it runs on what OpenCL makes of the CPU.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use quarrier_core::pipeline::{Access, Pipeline, Run, Stage};
use quarrier_core::source::FileSource;
use quarrier_gpu::{Device, DriverName, Kind};
use quarrier_search::{Pattern, Sample, Searcher};
use serde_json::{Value, json};

use crate::Scale;
use crate::contender::THREADS;
use crate::image::Image;
use crate::measure::Spread;
use crate::plain_c::PlainC;
use crate::table::Table;

const SETS: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
/// The set of the tables over slots and drivers.
const PATTERNS: usize = 1_000;
const SLOTS: [usize; 4] = [1, 2, 3, 4];

/// What one run of a device or the CPU came to, in bytes a second.
#[derive(Debug, Clone, Copy)]
struct Rate {
    stream: f64,
    /// By the device's clock; of a CPU none.
    kernel: Option<f64>,
}

struct Case<'c> {
    image: &'c Image,
    source: FileSource,
    sample: Sample,
    rounds: usize,
}

/// Checks each device, then measures; prints the tables.
pub(crate) fn run(quarrier: &Path, folder: &Path, scale: &Scale) -> Result<Option<Value>> {
    let image = Image::prepare(folder, scale.image_bytes)?;
    crate::warm(&image.path)?;
    let source = FileSource::open(&image.path)?;
    let sample = Sample::take(&source);
    let case = Case { image: &image, source, sample, rounds: scale.rounds.max(1) };
    let devices = quarrier_gpu::find();
    let Some(first) = devices.first() else {
        println!("gpu: no device, so nothing of this is measured");
        return Ok(None);
    };
    if scale.rounds == 0 {
        for device in &devices {
            for patterns in SETS {
                case.on(&case.searcher(patterns)?, device, 3, patterns)?;
            }
        }
        println!("gpu: {} devices found what was planted", devices.len());
        return Ok(None);
    }
    if first.facts().kind == Kind::Cpu {
        println!("\ngpu: the only device is the CPU under OpenCL; no figure of a GPU is measured");
    }
    let ceilings = Ceilings::measure(quarrier)?;
    let sets = over_sets(&case, first, &ceilings)?;
    let slots = over_slots(&case, first, &ceilings)?;
    let drivers = over_drivers(&case)?;
    let plain = beside_plain_c(&case, folder)?;
    Ok(Some(json!({
        "device": first.facts().to_string(),
        "version": first.facts().version,
        "ceilings": ceilings.to_json(),
        "sets": sets,
        "slots": slots,
        "drivers": drivers,
        "plain_c": plain,
    })))
}

impl Case<'_> {
    fn searcher(&self, patterns: usize) -> Result<Arc<Searcher>> {
        let words = self.image.keywords.iter().take(patterns);
        let patterns = words.map(|word| Ok(Pattern::literal(std::str::from_utf8(word)?)?));
        let builder = Searcher::builder().sample(self.sample.clone());
        Ok(Arc::new(builder.build(patterns.collect::<Result<_>>()?)?))
    }

    /// The rate of a device, of which the count is checked each time.
    fn on(
        &self,
        searcher: &Arc<Searcher>,
        device: &Device,
        slots: usize,
        patterns: usize,
    ) -> Result<Rate> {
        let on = searcher.on_devices(std::slice::from_ref(device), slots, &self.sample)?;
        let memory = |bytes| on.buffer(bytes);
        let buffer_bytes = match device.facts().kind {
            Kind::Cpu => 4 << 20,
            _ => 16 << 20,
        };
        let mut rates = Vec::new();
        // The first run starts the device, and does not count.
        for _ in 0..=self.rounds {
            let mut found = 0;
            let mut sink = searcher.sink(|_, findings| {
                found += findings.len();
                ControlFlow::Continue(())
            });
            let run = Pipeline::new(&self.source)
                .access(Access::Read)
                .workers(slots)
                .buffers(slots)
                .buffer_bytes(buffer_bytes)
                .memory(&memory)
                .run(&on, &mut sink)?;
            drop(sink);
            self.check(found, patterns, &device.facts().name)?;
            if let Some(lost) = on.lost().first() {
                bail!("{lost}");
            }
            rates.push(rate(&run));
        }
        middle(&rates[1..])
    }

    /// The rate of the CPU's best engine.
    fn on_cpu(&self, searcher: &Searcher, patterns: usize) -> Result<Rate> {
        let mut rates = Vec::new();
        for _ in 0..=self.rounds {
            let mut found = 0;
            let mut sink = searcher.sink(|_, findings| {
                found += findings.len();
                ControlFlow::Continue(())
            });
            let pipeline = Pipeline::new(&self.source).workers(THREADS);
            let run = pipeline.run(searcher, &mut sink)?;
            drop(sink);
            self.check(found, patterns, "the CPU")?;
            rates.push(rate(&run));
        }
        middle(&rates[1..])
    }

    fn check(&self, found: usize, patterns: usize, who: &str) -> Result<()> {
        let expected = self.image.plants_of(patterns).count();
        if found != expected {
            bail!("WRONG COUNT: {who} found {found} of {patterns} patterns, expected {expected}");
        }
        Ok(())
    }
}

fn rate(run: &Run) -> Rate {
    let kernel = run.timeline.load_alone(Stage::Kernel).busy.as_secs_f64();
    Rate {
        stream: run.bytes as f64 / run.elapsed.as_secs_f64(),
        kernel: (kernel > 0.0).then(|| run.bytes as f64 / kernel),
    }
}

fn middle(rates: &[Rate]) -> Result<Rate> {
    let stream = Spread::of(rates.iter().map(|rate| rate.stream)).context("no run")?;
    let kernel = Spread::of(rates.iter().filter_map(|rate| rate.kernel));
    Ok(Rate { stream: stream.median, kernel: kernel.map(|kernel| kernel.median) })
}

/// What `quarrier gauge gpu` says of the first device, in bytes a second.
struct Ceilings {
    memory_read: Option<f64>,
    host_to_device: Option<f64>,
}

impl Ceilings {
    fn measure(quarrier: &Path) -> Result<Self> {
        let mut gauge = Command::new(quarrier);
        gauge.args(["gauge", "gpu", "--quick", "--format", "json", "--quiet"]);
        let answer = gauge.output().context("quarrier gauge gpu")?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let rows: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let first = rows.first().map(|row| row["parameters"]["device"].clone());
        let of = |name: &str| {
            rows.iter()
                .filter(|row| Some(&row["parameters"]["device"]) == first.as_ref())
                .filter(|row| row["measurement"] == name && row["unit"] == "B/s")
                .filter(|row| row["parameters"]["memory"] != "pageable")
                .filter_map(|row| row["value"].as_f64())
                .reduce(f64::max)
        };
        Ok(Ceilings { memory_read: of("read"), host_to_device: of("host to device") })
    }

    fn to_json(&self) -> Value {
        json!({"memory_read": self.memory_read, "host_to_device": self.host_to_device})
    }
}

/// The device beside the CPU, for 10 to 100,000 patterns.
fn over_sets(case: &Case<'_>, device: &Device, ceilings: &Ceilings) -> Result<Vec<Value>> {
    let headings =
        ["patterns", "kernel", "of memory", "stream", "of the way", "CPU", "device / CPU"];
    let mut table = Table::new(&headings);
    let mut records = Vec::new();
    for patterns in SETS {
        eprintln!("measuring {patterns} patterns on {}", device.facts());
        let searcher = case.searcher(patterns)?;
        let on = case.on(&searcher, device, 3, patterns)?;
        let cpu = case.on_cpu(&searcher, patterns)?;
        table.row(vec![
            patterns.to_string(),
            gigabytes(on.kernel),
            share(on.kernel, ceilings.memory_read),
            gigabytes(Some(on.stream)),
            share(Some(on.stream), ceilings.host_to_device),
            gigabytes(Some(cpu.stream)),
            format!("{:.2}", on.stream / cpu.stream),
        ]);
        records.push(json!({
            "patterns": patterns,
            "kernel_bytes_per_second": on.kernel,
            "stream_bytes_per_second": on.stream,
            "cpu_bytes_per_second": cpu.stream,
            "cpu_engine": searcher.engine_name(),
        }));
    }
    println!(
        "\n{} beside the CPU's best engine on {THREADS} threads; GB/s, {} MiB in the page cache.\n\
         kernel: by the device's clock, over bytes that are there; stream: from the file to\n\
         findings, 3 slots. Shares: of what `quarrier gauge gpu` reads of the device's memory, and\n\
         copies to it from pinned memory.\n\n{table}",
        device.facts(),
        case.image.bytes >> 20,
    );
    Ok(records)
}

fn over_slots(case: &Case<'_>, device: &Device, ceilings: &Ceilings) -> Result<Vec<Value>> {
    let searcher = case.searcher(PATTERNS)?;
    let mut table = Table::new(&["slots", "stream", "of the way"]);
    let mut records = Vec::new();
    for slots in SLOTS {
        let on = case.on(&searcher, device, slots, PATTERNS)?;
        let of = share(Some(on.stream), ceilings.host_to_device);
        table.row(vec![slots.to_string(), gigabytes(Some(on.stream)), of]);
        records.push(json!({"slots": slots, "stream_bytes_per_second": on.stream}));
    }
    println!("\n{PATTERNS} patterns by slots, GB/s.\n\n{table}");
    Ok(records)
}

/// The same kernel by each driver on each device that it reaches.
fn over_drivers(case: &Case<'_>) -> Result<Vec<Value>> {
    let searcher = case.searcher(PATTERNS)?;
    let mut table = Table::new(&["device", "kernel", "stream"]);
    let mut records = Vec::new();
    for driver in [DriverName::OpenCl, DriverName::Cuda] {
        for device in quarrier_gpu::drivers(driver).into_iter().map(Device::by) {
            let on = case.on(&searcher, &device, 3, PATTERNS)?;
            let name = device.facts().to_string();
            table.row(vec![name.clone(), gigabytes(on.kernel), gigabytes(Some(on.stream))]);
            records.push(json!({
                "device": name,
                "kernel_bytes_per_second": on.kernel,
                "stream_bytes_per_second": on.stream,
            }));
        }
    }
    println!("\n{PATTERNS} patterns by driver, 3 slots, GB/s.\n\n{table}");
    Ok(records)
}

/// A CPU under OpenCL beside the kernel as C on as many threads. One slot, so that neither takes
/// the other's CPUs.
fn beside_plain_c(case: &Case<'_>, folder: &Path) -> Result<Value> {
    let of_cpu = |device: &Device| device.facts().kind == Kind::Cpu;
    let Some(device) = quarrier_gpu::find().into_iter().find(of_cpu) else {
        println!("\nplain C: no CPU under OpenCL to compare it with");
        return Ok(Value::Null);
    };
    let folder = folder.canonicalize()?;
    let plain = Device::by(Box::new(PlainC::new(folder, device.facts().units)));
    let searcher = case.searcher(PATTERNS)?;
    let (by_c, by_opencl) =
        (case.on(&searcher, &plain, 1, PATTERNS)?, case.on(&searcher, &device, 1, PATTERNS)?);
    let mut table = Table::new(&["", "kernel", "stream"]);
    for (name, rate) in [("plain C", by_c), ("OpenCL", by_opencl)] {
        table.row(vec![name.to_string(), gigabytes(rate.kernel), gigabytes(Some(rate.stream))]);
    }
    let ratio = by_opencl.stream / by_c.stream;
    println!(
        "\n{PATTERNS} patterns, 1 slot, {} threads, GB/s: the driver reaches {ratio:.2} of plain C \
         (must be at least 0.5).\n\n{table}",
        device.facts().units
    );
    Ok(json!({
        "plain_c": {"kernel_bytes_per_second": by_c.kernel, "stream_bytes_per_second": by_c.stream},
        "opencl": {
            "kernel_bytes_per_second": by_opencl.kernel,
            "stream_bytes_per_second": by_opencl.stream,
        },
        "stream_ratio": ratio,
    }))
}

fn gigabytes(rate: Option<f64>) -> String {
    rate.map_or("–".to_string(), |rate| format!("{:.2}", rate / 1e9))
}

fn share(rate: Option<f64>, of: Option<f64>) -> String {
    match (rate, of) {
        (Some(rate), Some(of)) => format!("{:.0} %", 100.0 * rate / of),
        _ => "–".to_string(),
    }
}
