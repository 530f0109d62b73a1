//! kill -9 of processes that fill the cache on disk.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use quarrier_core::source::Source;
use quarrier_remote::{CacheOptions, Options, journal};

use crate::cache::files;
use crate::server::{Act, Server};
use crate::{Random, exact, noise, remote};

const LENGTH: u64 = 20_000_000;
const ROUNDS: u64 = 50;

fn cached(folder: &Path) -> Options {
    let mut options = exact();
    options.memory_bytes_max = 1 << 20;
    options.cache = Some(CacheOptions::new(folder));
    options
}

/// The child process: this same test, with an environment variable that names folder and URL.
/// Without the variable the test does nothing.
#[test]
fn child_that_fills_the_cache_until_it_is_killed() {
    let Ok(word) = std::env::var("QUARRIER_FILL") else { return };
    let [folder, url, seed]: [&str; 3] = word.split('\n').collect::<Vec<_>>().try_into().unwrap();
    let remote = remote(cached(folder.as_ref()));
    let source = remote.open(url).unwrap();
    let mut random = Random::new(seed.parse().unwrap());
    let mut bytes = vec![0; 1 << 20];
    loop {
        let length = 1 + random.below(600_000) as usize;
        source.read_at(random.below(LENGTH), &mut bytes[..length]).unwrap();
    }
}

fn child(folder: &Path, url: &str, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child_that_fills_the_cache_until_it_is_killed"])
        .env("QUARRIER_FILL", format!("{}\n{url}\n{seed}", folder.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Compares all claims with the object, ignoring checksums. Returns their number.
fn check_claims(folder: &Path, object: &[u8]) -> usize {
    let mut count = 0;
    for path in files(folder, "journal") {
        let bytes = fs::read(&path).unwrap();
        // Killed before the header was written: no claims.
        let Some((_, claims)) = journal::read(&bytes) else { continue };
        let data = File::open(path.with_extension("data")).unwrap();
        for claim in claims.iter() {
            let mut block = vec![0; claim.length as usize];
            data.read_exact_at(&mut block, claim.offset).unwrap();
            assert_eq!(block, object[claim.offset as usize..][..block.len()]);
            assert_eq!(journal::block_checksum(&block), claim.checksum);
            count += 1;
        }
    }
    count
}

/// Repeatedly kills two children that fill the same cache; their claims are right.
#[test]
fn claims_of_killed_processes_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(LENGTH as usize, 1), |_| Act::Serve);
    let mut random = Random::new(3);
    let mut most = 0;
    for round in 0..ROUNDS {
        let asked = server.log().len();
        let mut children: Vec<_> =
            (0..2).map(|n| child(folder.path(), &server.url(), 1 + 2 * round + n)).collect();
        // Kill after the first request, so that most children are at work.
        while server.log().len() == asked {
            thread::sleep(Duration::from_millis(1));
            assert!(children[0].try_wait().unwrap().is_none(), "the child ended");
        }
        thread::sleep(Duration::from_micros(random.below(40_000)));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        most = most.max(check_claims(folder.path(), server.object()));
        if round % 10 == 9 {
            // Then start with an empty cache again, because a full one is not written to.
            reopen(folder.path(), &server);
            files(folder.path(), "journal").iter().for_each(|path| fs::remove_file(path).unwrap());
            files(folder.path(), "data").iter().for_each(|path| fs::remove_file(path).unwrap());
        }
    }
    assert!(most > 50, "they were killed before they could do anything: {most} claims");
}

/// Checks that a cache left by killed processes can be used and filled further.
fn reopen(folder: &Path, server: &Server) {
    let remote = remote(cached(folder));
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = vec![0; 1 << 20];
    for offset in (0..LENGTH).step_by(1 << 20) {
        let count = source.read_at(offset, &mut bytes).unwrap();
        assert_eq!(bytes[..count], server.object()[offset as usize..][..count]);
    }
    assert!(source.counters().bytes_from_disk > 0);
    assert_eq!(remote.cache_warning(), None);
    check_claims(folder, server.object());
}
