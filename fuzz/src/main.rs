//! The driver: inputs from a seed, for a number of seconds, on stable Rust.
//!
//! Without guidance by coverage: half of the inputs are random bytes, half are mutated seeds. The
//! n-th input of a target is the same for the same seed, on every machine.

mod mutate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use mutate::Random;
use quarrier_fuzz::{TARGETS, Target, Verdict, volumes};

const USAGE: &str = "\
usage: quarrier-fuzz [--seconds N] [--seed N] [TARGET...]
       quarrier-fuzz --replay FILE|HEX TARGET
       quarrier-fuzz --write FOLDER

  --seconds N   for all targets together (default: 15)
  --seed N      selects the inputs (default: 1)
  --replay X    one input: a file, or bytes in hexadecimal
  --write X     the volume of each file system, as FOLDER/volume.NAME

targets: pattern_file engines regex rules sparse journal listing log condition statement messages
         formats ewf qcow2 vdi vhd vhdx vmdk parallels dmg ewf2 aff4 packed kept unallocated fat
         exfat ntfs ext xfs hfs btrfs apfs iso known members carve strides jpeg png zip pdf gzip
         wire arrow parquet; all by default
";

/// An input that takes longer than this counts as a hang.
const HANG: Duration = Duration::from_secs(60);
/// An input that takes longer than this is reported as slow.
const SLOW: Duration = Duration::from_secs(5);

struct Wishes {
    seconds: f64,
    seed: u64,
    replay: Option<Vec<u8>>,
    write: Option<PathBuf>,
    targets: Vec<&'static Target>,
}

fn main() -> ExitCode {
    let Some(wishes) = wishes(std::env::args().skip(1)) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    if let Some(folder) = &wishes.write {
        return write_volumes(folder);
    }
    remember_panics();
    watch();
    let share = Duration::from_secs_f64(wishes.seconds / wishes.targets.len() as f64);
    let mut is_good = true;
    for target in &wishes.targets {
        is_good &= match &wishes.replay {
            Some(input) => replay(target, input),
            None => fuzz(target, wishes.seed, share),
        };
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn wishes(mut words: impl Iterator<Item = String>) -> Option<Wishes> {
    let mut wishes =
        Wishes { seconds: 15.0, seed: 1, replay: None, write: None, targets: Vec::new() };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => wishes.seconds = words.next()?.parse().ok().filter(|s| *s >= 0.0)?,
            "--seed" => wishes.seed = words.next()?.parse().ok()?,
            "--replay" => {
                let input = words.next()?;
                let file = Path::new(&input);
                wishes.replay =
                    Some(if file.is_file() { std::fs::read(file).ok()? } else { bytes(&input)? });
            }
            "--write" => wishes.write = Some(words.next()?.into()),
            name => wishes.targets.push(TARGETS.iter().find(|target| target.name == name)?),
        }
    }
    if wishes.targets.is_empty() {
        wishes.targets = TARGETS.iter().collect();
    }
    (wishes.replay.is_none() || wishes.targets.len() == 1).then_some(wishes)
}

/// Writes a volume of each file system, for tools that need files.
fn write_volumes(folder: &Path) -> ExitCode {
    if let Err(error) = std::fs::create_dir_all(folder) {
        eprintln!("{}: {error}", folder.display());
        return ExitCode::FAILURE;
    }
    for (name, volume) in volumes::ALL {
        let path = folder.join(format!("volume.{name}"));
        if let Err(error) = std::fs::write(&path, volume()) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn replay(target: &Target, input: &[u8]) -> bool {
    match attempt(target, input) {
        Ok(verdict) => println!("fuzz {}: {verdict:?}", target.name),
        Err(said) => println!("fuzz {}: failed\n{said}", target.name),
    }
    attempt(target, input).is_ok()
}

/// Runs seeds first, then generated inputs until the time is over. Returns false at the first
/// failure.
fn fuzz(target: &Target, seed: u64, time: Duration) -> bool {
    println!("fuzz {}: for {} s from seed {seed}", target.name, time.as_secs_f64());
    let start = Instant::now();
    let (mut inputs, mut checked) = (0u64, 0u64);
    let mut slowest = (Duration::ZERO, Vec::new());
    let first: Vec<&[u8]> = [target.once, target.seeds].concat();
    while inputs < first.len() as u64 || start.elapsed() < time {
        let input = match first.get(inputs as usize) {
            Some(seed) => seed.to_vec(),
            None => mutate::input(target, &mut Random::new(seed, inputs)),
        };
        let begun = Instant::now();
        match attempt(target, &input) {
            Ok(Verdict::Checked) => checked += 1,
            Ok(Verdict::Skipped) => {}
            Err(_) => {
                println!("fuzz {}: FAILED at input {inputs} of seed {seed}", target.name);
                report(target, &input);
                return false;
            }
        }
        if begun.elapsed() > slowest.0 {
            slowest = (begun.elapsed(), input);
        }
        inputs += 1;
    }
    println!(
        "fuzz {}: {inputs} inputs, {checked} of them checked, the slowest took {:.0?}: good",
        target.name, slowest.0
    );
    if slowest.0 > SLOW {
        println!("fuzz {0}: slow: --replay {1} {0}", target.name, hex(&slowest.1));
    }
    true
}

/// Prints the failing input, minimised, and how to reproduce it.
fn report(target: &Target, input: &[u8]) {
    let until = Instant::now() + Duration::from_secs(10);
    let fails = |input: &[u8]| Instant::now() < until && attempt(target, input).is_err();
    let small = mutate::smaller(input.to_vec(), fails);
    let (name, hex) = (target.name, hex(&small));
    let said = attempt(target, &small).err();
    println!("{}", said.unwrap_or_else(|| "did not fail again".to_string()));
    println!("replay: cargo run --manifest-path fuzz/Cargo.toml -- --replay {hex} {name}");
    if said_twice_differs(target, &small) {
        println!("it does not fail every time; the whole input: {}", self::hex(input));
    }
}

fn said_twice_differs(target: &Target, input: &[u8]) -> bool {
    (0..5).any(|_| attempt(target, input).is_ok())
}

/// The messages of panics, in order.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// The current input, and when it began.
static AT_WORK: Mutex<Option<(Instant, &'static str, Vec<u8>)>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one input; the error is the message of its panic.
fn attempt(target: &Target, input: &[u8]) -> Result<Verdict, String> {
    lock(&PANICS).clear();
    *lock(&AT_WORK) = Some((Instant::now(), target.name, input.to_vec()));
    let done = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    *lock(&AT_WORK) = None;
    done.map_err(|_| lock(&PANICS).join("\n"))
}

fn remember_panics() {
    std::panic::set_hook(Box::new(|info| lock(&PANICS).push(info.to_string())));
}

/// Ends the process when an input hangs.
fn watch() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            if let Some((since, name, input)) = &*lock(&AT_WORK)
                && since.elapsed() > HANG
            {
                println!("fuzz {name}: HANGS for {HANG:?} at --replay {} {name}", hex(input));
                std::process::exit(1);
            }
        }
    });
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = hex.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}
