//! Devices: the search kernel's share of its memory's bandwidth, a stream's share of the transfer
//! rate, the drivers compared with each other, the device with the CPU, and the kernel with the
//! same text compiled as C. Without a GPU it runs on the CPU under OpenCL.

mod case;
mod filter;
mod plain_c;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use quarrier_core::source::FileSource;
use quarrier_gpu::{Device, DriverName, Kind};
use quarrier_search::Sample;
use serde_json::{Value, json};

use crate::Scale;
use crate::contender::THREADS;
use crate::image::Image;
use crate::measure::Spread;
use crate::table::Table;
use case::{Case, Cut, Rate};
use plain_c::PlainC;

const SETS: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
/// The number of patterns in the tables over slots and drivers.
const PATTERNS: usize = 1_000;
const SLOTS: [usize; 4] = [1, 2, 3, 4];
/// Numbers of threads that fill the slots; 0: the threads that wait for the device fill their own.
const READERS: [usize; 4] = [0, 1, 2, 4];
/// Minimum number of rounds where a few per cent matter.
const ROUNDS_MIN: usize = 5;

/// Checks each device, then measures and prints the tables.
///
/// `resident`: the example of quarrier-filter.
pub(crate) fn run(
    quarrier: &Path,
    resident: Option<&Path>,
    folder: &Path,
    scale: &Scale,
) -> Result<Option<Value>> {
    let image = Image::prepare(folder, scale.image_bytes)?;
    crate::warm(&image.path)?;
    let source = FileSource::open(&image.path)?;
    let sample = Sample::take(&source);
    let case = Case { image: &image, source, sample, rounds: scale.rounds.max(1) };
    let devices = quarrier_gpu::find();
    let Some(first) = devices.first() else {
        println!("gpu: no device, so nothing is measured");
        return Ok(None);
    };
    if scale.rounds == 0 {
        for device in &devices {
            for patterns in SETS {
                let searcher = case.searcher(patterns)?;
                case.on(&searcher, device, Cut::usual(device), patterns)?;
            }
        }
        resident.map(|resident| filter::run(resident, scale)).transpose()?;
        println!("gpu: {} devices found all planted keywords", devices.len());
        return Ok(None);
    }
    if first.facts().kind == Kind::Cpu {
        println!("\ngpu: the only device is the CPU under OpenCL; no figure of a GPU is measured");
    }
    let ceilings = Ceilings::measure(quarrier)?;
    let plain = beside_plain_c(&case, folder)?;
    let sets = over_sets(&case, first, &ceilings)?;
    let slots = over_slots(&case, first, &ceilings)?;
    let drivers = over_drivers(&case)?;
    let filter = resident.map(|resident| filter::run(resident, scale)).transpose()?;
    Ok(Some(json!({
        "device": first.facts().to_string(),
        "version": first.facts().version,
        "ceilings": ceilings.to_json(),
        "sets": sets,
        "threads_and_slots": slots,
        "drivers": drivers,
        "plain_c": plain,
        "filter": filter,
    })))
}

/// The rates of the first device by `quarrier gauge gpu`, in bytes per second.
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

/// Compares the device with the CPU, for 10 to 100,000 patterns.
fn over_sets(case: &Case<'_>, device: &Device, ceilings: &Ceilings) -> Result<Vec<Value>> {
    let headings =
        ["patterns", "kernel", "of memory", "stream", "of transfer", "CPU", "device / CPU"];
    let mut table = Table::new(&headings);
    let mut records = Vec::new();
    let cut = Cut::usual(device);
    for patterns in SETS {
        eprintln!("measuring {patterns} patterns on {}", device.facts());
        let searcher = case.searcher(patterns)?;
        let on = case.on(&searcher, device, cut, patterns)?;
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
        "\n{} compared with the CPU's best engine on {THREADS} threads; GB/s, {} MiB in the page cache.\n\
         kernel: by the device's clock, over bytes in its memory; stream: from the file to\n\
         findings, with the usual number of slots ({}). Shares: of the memory bandwidth and of the transfer\n\
         rate from pinned memory by `quarrier gauge gpu`.\n\n{table}",
        device.facts(),
        case.image.bytes >> 20,
        cut.slots,
    );
    Ok(records)
}

/// Measures combinations of filling threads and slots, in turns, with the load of each stage: the
/// table of the older report.
fn over_slots(case: &Case<'_>, device: &Device, ceilings: &Ceilings) -> Result<Vec<Value>> {
    let searcher = case.searcher(PATTERNS)?;
    let mut all = Vec::new();
    for readers in READERS {
        for slots in SLOTS {
            let cut = Cut { slots, readers };
            all.push((cut, case.ready(&searcher, device, cut, PATTERNS)?, Vec::new()));
        }
    }
    eprintln!("measuring {} ways to fill slots of {}", all.len(), device.facts());
    for round in 0..=case.rounds.max(ROUNDS_MIN) {
        for (_, ready, rates) in &mut all {
            let rate = ready.once()?;
            // The first run starts the device, and does not count.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let slots = SLOTS.map(|slots| format!("{slots} slots"));
    let headings: Vec<&str> =
        std::iter::once("threads that fill").chain(slots.iter().map(String::as_str)).collect();
    let mut table = Table::new(&headings);
    let mut records = Vec::new();
    for of_readers in all.chunks(SLOTS.len()) {
        let mut row = vec![match of_readers[0].0.readers {
            0 => "each slot its own".to_string(),
            readers => readers.to_string(),
        }];
        for (cut, _, rates) in of_readers {
            let rate = Rate::middle(rates)?;
            let loads = rate.loads.map(|load| format!("{:.0}", 100.0 * load));
            row.push(format!("{} ({})", gigabytes(Some(rate.stream)), loads.join(" ")));
            records.push(slots_record(*cut, &rate, ceilings));
        }
        table.row(row);
    }
    println!(
        "\n{PATTERNS} patterns, threads × buffers: GB/s, and how many per cent of the time is\n\
         filled, copied, searched and collected: of all slots together, so that more than 100 is\n\
         more than one at a time.\n\n{table}"
    );
    Ok(records)
}

fn slots_record(cut: Cut, rate: &Rate, ceilings: &Ceilings) -> Value {
    let [fill, copy, kernel, collect] = rate.loads;
    json!({
        "readers": cut.readers,
        "slots": cut.slots,
        "stream_bytes_per_second": rate.stream,
        "of_host_to_device": ceilings.host_to_device.map(|way| rate.stream / way),
        "loads": {"fill": fill, "copy": copy, "kernel": kernel, "collect": collect},
    })
}

/// Measures the same kernel by each driver on each device that it reaches.
fn over_drivers(case: &Case<'_>) -> Result<Vec<Value>> {
    let searcher = case.searcher(PATTERNS)?;
    let mut table = Table::new(&["device", "kernel", "stream"]);
    let mut records = Vec::new();
    for driver in [DriverName::OpenCl, DriverName::Cuda] {
        for device in quarrier_gpu::drivers(driver).into_iter().map(Device::by) {
            let on = case.on(&searcher, &device, Cut::usual(&device), PATTERNS)?;
            let name = device.facts().to_string();
            table.row(vec![name.clone(), gigabytes(on.kernel), gigabytes(Some(on.stream))]);
            records.push(json!({
                "device": name,
                "kernel_bytes_per_second": on.kernel,
                "stream_bytes_per_second": on.stream,
            }));
        }
    }
    println!("\n{PATTERNS} patterns by driver, GB/s.\n\n{table}");
    Ok(records)
}

/// Compares a CPU under OpenCL with the kernel as C on as many threads, in turns, with the usual
/// number of slots.
fn beside_plain_c(case: &Case<'_>, folder: &Path) -> Result<Value> {
    let of_cpu = |device: &Device| device.facts().kind == Kind::Cpu;
    let Some(device) = quarrier_gpu::find().into_iter().find(of_cpu) else {
        println!("\nplain C: no CPU under OpenCL to compare it with");
        return Ok(Value::Null);
    };
    let folder = folder.canonicalize()?;
    let plain = Device::by(Box::new(PlainC::new(folder, device.facts().units)));
    let (searcher, cut) = (case.searcher(PATTERNS)?, Cut::usual(&device));
    let rivals = [
        case.ready(&searcher, &plain, cut, PATTERNS)?,
        case.ready(&searcher, &device, cut, PATTERNS)?,
    ];
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..=case.rounds.max(ROUNDS_MIN) {
        for (ready, rates) in rivals.iter().zip(&mut rates) {
            let rate = ready.once()?;
            // The first run starts the device, and does not count.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let pairs = || rates[0].iter().zip(&rates[1]);
    let stream = Spread::of(pairs().map(|(c, opencl)| opencl.stream / c.stream));
    let kernel = Spread::of(pairs().filter_map(|(c, opencl)| Some(opencl.kernel? / c.kernel?)));
    let (by_c, by_opencl) = (Rate::middle(&rates[0])?, Rate::middle(&rates[1])?);
    let mut table = Table::new(&["", "kernel", "stream"]);
    for (name, rate) in [("plain C", by_c), ("OpenCL", by_opencl)] {
        table.row(vec![name.to_string(), gigabytes(rate.kernel), gigabytes(Some(rate.stream))]);
    }
    table.row(vec![
        "OpenCL / plain C".to_string(),
        crate::table::ratio(kernel),
        crate::table::ratio(stream),
    ]);
    println!(
        "\n{PATTERNS} patterns, slots: {}, threads: {}, GB/s, medians of {} runs in turns; the driver\n\
         must reach 0.5 of plain C.\n\n{table}",
        cut.slots,
        device.facts().units,
        rates[0].len(),
    );
    let record = |rate: Rate| json!({"kernel_bytes_per_second": rate.kernel, "stream_bytes_per_second": rate.stream});
    Ok(json!({
        "slots": cut.slots,
        "plain_c": record(by_c),
        "opencl": record(by_opencl),
        "kernel_ratio": Spread::to_json(kernel),
        "stream_ratio": Spread::to_json(stream),
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
