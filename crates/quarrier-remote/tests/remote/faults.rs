//! 10,000 reads from a server that fails at random: no wrong byte, no hang.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use quarrier_core::source::Source;
use quarrier_remote::{Error, Options, RemoteSource, Unnamed};

use crate::server::{Act, Ask, Server};
use crate::{Random, exact, hasty, impatient, noise, remote};

const LENGTH: usize = 3_000_000;
const READS: usize = 10_000;
const THREADS: usize = 8;

/// One request in four fails, in one of many ways.
fn faulty(seed: u64) -> impl Fn(&Ask) -> Act + Send + Sync {
    let random = Mutex::new(Random::new(seed));
    move |ask| {
        let mut random = random.lock().unwrap();
        if random.below(4) != 0 {
            return Act::Serve;
        }
        let length = ask.range.as_ref().map_or(1, |range| range.end - range.start).max(1);
        let some = random.below(length) as usize;
        match random.below(200) {
            0 => Act::Stall,
            1 => Act::Silence,
            2 => Act::Loris(Duration::from_millis(3)),
            3..=6 => Act::Version("ETag: \"two\"\r\n".to_string()),
            7..=10 => Act::Status(412, String::new()),
            11..=40 => Act::Status(500, String::new()),
            41..=50 => Act::Status(429, String::new()),
            51..=80 => Act::Cut(some),
            81..=110 => Act::Short(some),
            111..=130 => Act::Chunked(some.max(1)),
            131..=140 => Act::Chunked(0),
            141..=150 => Act::Overlong(1 + some),
            151..=170 => Act::Moved(1),
            171..=180 => Act::Moved(-1),
            181..=190 => Act::Version(String::new()),
            _ => Act::Whole,
        }
    }
}

/// Reads at random, sometimes sequentially; opens the object again after a change. Returns the
/// number of failed reads.
fn read_at_random(
    open: &(dyn Fn() -> RemoteSource + Sync),
    object: &[u8],
    seed: u64,
    left: &AtomicUsize,
) -> usize {
    let mut random = Random::new(seed);
    let mut source = open();
    let (mut offset, mut failed) = (0u64, 0);
    let take = || left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    while take().is_ok() {
        if random.below(3) > 0 {
            offset = random.below(LENGTH as u64);
        }
        let most = if random.below(20) == 0 { 300_000 } else { 3000 };
        let length = 1 + random.below(most);
        let mut bytes = vec![0xEE; length as usize];
        match source.read_at(offset, &mut bytes) {
            Ok(count) => {
                assert_eq!(bytes[..count], object[offset as usize..][..count], "at {offset}");
                offset += count as u64;
            }
            Err(error) => {
                failed += 1;
                let error = error.into_inner().unwrap().downcast::<Unnamed>().unwrap().0;
                match error {
                    Error::Changed { .. } => source = open(),
                    Error::Failed { .. } | Error::Gone { .. } => {}
                    other => panic!("{other}"),
                }
            }
        }
        if offset >= LENGTH as u64 {
            offset = 0;
        }
    }
    failed
}

fn check(seed: u64, mut options: Options) {
    // Tighter than the defaults, but a busy machine alone must not exceed them.
    options.timeouts = impatient();
    let server = Server::new(noise(LENGTH, seed), faulty(seed));
    let remote = remote(options);
    let open = || {
        // Even the first response may be of another version; that one then counts as the known
        // version, and the next response differs.
        (0..100).find_map(|_| remote.open(&server.url()).ok()).unwrap()
    };
    let left = AtomicUsize::new(READS);
    let failed: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS as u64)
            .map(|n| {
                let (open, left, object) = (&open, &left, server.object());
                scope.spawn(move || read_at_random(open, object, seed * 100 + n, left))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    // Version changes are errors; all other failures are recovered from.
    assert!(failed < READS / 10, "{failed} reads failed");
    // Each thread opens its own source; the rest depends on whether a response happens to bring the
    // whole object.
    assert!(server.log().len() >= THREADS);
}

#[test]
fn no_byte_is_wrong_with_a_faulty_server() {
    let mut options = hasty();
    options.memory_bytes_max = 1 << 20;
    check(1, options);
}

#[test]
fn no_byte_is_wrong_with_a_cache_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = exact();
    options.memory_bytes_max = 100_000;
    options.cache = Some(quarrier_remote::CacheOptions::new(folder.path()));
    check(2, options);
}
