//! Power cuts and kills at every moment of many short lives of a log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quarrier_messages::log::disk::FaultyDisk;

use crate::kit::{Contents, Random, batch, open, read};

/// Total number of crash points; the environment variable `LOG_CRASH_POINTS` overrides it.
const POINTS: u64 = 100_000;
/// Number of random power cuts for each moment of a life.
const CUTS: u64 = 12;

/// The numbers of messages sent and acknowledged, packed into one number.
struct Progress(Arc<AtomicU64>);

impl Progress {
    fn sent(&self, count: u64) {
        self.0.fetch_add(count << 32, Ordering::SeqCst);
    }

    fn acknowledged(&self, count: u64) {
        self.0.fetch_add(count, Ordering::SeqCst);
    }

    /// Unpacks the numbers of messages sent and acknowledged.
    fn of(note: u64) -> (u64, u64) {
        (note >> 32, note & 0xFFFF_FFFF)
    }
}

/// Runs one life: opens the log, sends batches alone and together, perhaps closes it. Messages are
/// numbered from `first` on.
fn live(disk: &FaultyDisk, random: &mut Random, first: u64, progress: &Progress) {
    let log = open(disk).unwrap();
    let mut number = first;
    for _ in 0..1 + random.below(8) {
        let mut pending = Vec::new();
        for _ in 0..1 + random.below(3) {
            let count = 1 + random.below(3);
            let text_bytes = [0, 20, 300, 1500, 2500][random.below(5) as usize];
            progress.sent(count);
            pending.push((count, log.send(batch(number..number + count, text_bytes)).unwrap()));
            number += count;
        }
        for (count, pending) in pending {
            pending.wait().unwrap();
            progress.acknowledged(count);
        }
    }
    match random.below(3) {
        0 => log.close().unwrap(),
        _ => drop(log),
    }
}

/// Checks that a log found after a crash has the required messages, in order and no others.
fn check(contents: &Contents, note: u64, seed: u64) {
    let (sent, acknowledged) = Progress::of(note);
    let found = contents.messages.len() as u64;
    let expected: Vec<(u64, u64)> = (0..found).map(|number| (number, number + 1)).collect();
    assert_eq!(contents.messages, expected, "each once, in order: seed {seed}");
    assert!(
        (acknowledged..=sent).contains(&found),
        "{acknowledged} acknowledged, {found} found, {sent} sent: seed {seed}"
    );
    assert_eq!(contents.damages, [], "a crash is no damage: seed {seed}");
    assert_eq!(contents.unfinished, 0, "seed {seed}");
}

#[test]
fn acknowledged_messages_survive_a_power_cut_at_any_moment() {
    let points = std::env::var("LOG_CRASH_POINTS").ok().and_then(|n| n.parse().ok());
    let points = points.unwrap_or(POINTS);
    let (mut done, mut seed) = (0, 0);
    while done < points {
        seed += 1;
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let progress = Progress(Arc::default());
        disk.keep_history(Arc::clone(&progress.0));
        live(&disk, &mut random, 0, &progress);
        for moment in disk.history() {
            for _ in 0..CUTS {
                let crashed = moment.disk.after_crash(random.next());
                let contents = read(&crashed);
                check(&contents, moment.note, seed);
                done += 1;
                if random.below(40) == 0 {
                    live_on(&crashed, &contents, &mut random, seed);
                }
            }
        }
    }
}

/// Opens a log found after a crash, which must change nothing; sends more, and lets the machine
/// crash again.
fn live_on(crashed: &FaultyDisk, contents: &Contents, random: &mut Random, seed: u64) {
    drop(open(crashed).unwrap());
    let again = read(crashed);
    assert_eq!(again.messages, contents.messages, "recovered twice: seed {seed}");
    assert_eq!((&again.damages, again.next_mark), (&contents.damages, contents.next_mark));
    let progress = Progress(Arc::default());
    let first = contents.messages.len() as u64;
    progress.sent(first);
    progress.acknowledged(first);
    crashed.keep_history(Arc::clone(&progress.0));
    live(crashed, random, first, &progress);
    for moment in crashed.history() {
        let crashed = moment.disk.after_crash(random.next());
        check(&read(&crashed), moment.note, seed);
    }
}

/// After a kill, all written data is there, but no more durable than before. The next process reads
/// it, so it must make it durable first: a later power cut must not lose it.
#[test]
fn messages_read_after_a_kill_survive_a_power_cut() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let progress = Progress(Arc::default());
        disk.keep_history(Arc::clone(&progress.0));
        live(&disk, &mut random, 0, &progress);
        for moment in disk.history() {
            let killed = moment.disk.after_kill();
            let log = open(&killed).unwrap();
            let shown = log.recovered().messages;
            let after = read(&killed.after_crash(random.next()));
            check(&after, moment.note, seed);
            assert_eq!(after.messages.len() as u64, shown, "seed {seed}");
        }
    }
}
