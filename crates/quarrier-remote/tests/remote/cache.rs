//! The cache on disk.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use quarrier_core::source::Source;
use quarrier_remote::{Cache, CacheOptions, Error, Options, RemoteSource, journal};

use crate::server::{Act, Server};
use crate::{exact, noise, remote};

fn cached(folder: &Path) -> Options {
    let mut options = exact();
    options.cache = Some(CacheOptions::new(folder));
    options
}

/// The files in the folder with this extension.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|e| e == ending)).collect();
    files.sort();
    files
}

/// Reads 1000 bytes and compares them.
#[track_caller]
fn read(source: &RemoteSource, object: &[u8], offset: u64) {
    let mut bytes = [0; 1000];
    assert_eq!(source.read_at(offset, &mut bytes).unwrap(), 1000);
    assert_eq!(bytes, object[offset as usize..][..1000]);
}

#[test]
fn the_next_run_reads_fetched_bytes_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(5_000_000, 1), |_| Act::Serve);
    for run in 0..2 {
        let remote = remote(cached(folder.path()));
        let source = remote.open(&server.url()).unwrap();
        for offset in [0, 100_000, 4_999_000] {
            read(&source, server.object(), offset);
        }
        let counters = source.counters();
        assert_eq!(counters.requests, if run == 0 { 4 } else { 1 });
        assert_eq!(remote.cache_warning(), None);
    }
}

#[test]
fn a_signature_in_the_url_does_not_make_it_another_object() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(100_000, 2), |_| Act::Serve);
    for (url, requests) in [
        ("/a?X-Amz-Signature=1&part=1", 2),
        ("/a?X-Amz-Signature=2&part=1", 1),
        ("/a?X-Amz-Signature=2&part=2", 2),
    ] {
        let remote = remote(cached(folder.path()));
        let source = remote.open(&server.url_of(url)).unwrap();
        read(&source, server.object(), 50_000);
        assert_eq!(source.counters().requests, requests, "{url}");
    }
    // No secret is on disk, not even in a file name.
    for path in files(folder.path(), "journal") {
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(9).any(|window| window == b"Signature"));
    }
}

#[test]
fn another_version_of_an_object_is_another_entry() {
    let folder = tempfile::tempdir().unwrap();
    let old = Server::new(noise(100_000, 3), |_| Act::Serve);
    let url = old.url();
    {
        let remote = remote(cached(folder.path()));
        read(&remote.open(&url).unwrap(), old.object(), 50_000);
    }
    let tells_another = |_: &crate::server::Ask| Act::Version("ETag: \"two\"\r\n".to_string());
    let new = Server::new(noise(100_000, 4), tells_another);
    let remote = remote(cached(folder.path()));
    let source = remote.open(&new.url()).unwrap();
    read(&source, new.object(), 50_000);
    assert_eq!(source.counters().bytes_from_disk, 0);
    assert_eq!(files(folder.path(), "data").len(), 2);
}

#[test]
fn an_object_without_a_validator_is_not_cached() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_fields(noise(100_000, 5), "", |_| Act::Serve);
    let remote = remote(cached(folder.path()));
    read(&remote.open(&server.url()).unwrap(), server.object(), 50_000);
    assert!(files(folder.path(), "data").is_empty());
}

#[test]
fn bytes_changed_on_disk_are_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(100_000, 6), |_| Act::Serve);
    let open = || {
        let remote = remote(cached(folder.path()));
        let source = remote.open(&server.url()).unwrap();
        read(&source, server.object(), 50_000);
        source.counters().requests
    };
    assert_eq!((open(), open()), (2, 1));
    let data = OpenOptions::new().write(true).open(&files(folder.path(), "data")[0]).unwrap();
    data.write_all_at(&[!server.object()[50_500]], 50_500).unwrap();
    assert_eq!((open(), open()), (2, 1));
    // Truncated, as after a power failure that lost the bytes but kept the claim.
    data.set_len(50_700).unwrap();
    assert_eq!((open(), open()), (2, 1));
}

#[test]
fn a_journal_that_was_cut_or_damaged_anywhere_costs_fetches_only() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(100_000, 7), |_| Act::Serve);
    let read_all = || {
        let remote = remote(cached(folder.path()));
        let source = remote.open(&server.url()).unwrap();
        for offset in [20_000, 50_000, 90_000] {
            read(&source, server.object(), offset);
        }
    };
    read_all();
    let path = files(folder.path(), "journal")[0].clone();
    let whole = fs::read(&path).unwrap();
    assert_eq!(whole.len(), journal::HEADER_BYTES + 4 * journal::RECORD_BYTES);
    for at in (0..whole.len()).step_by(5) {
        fs::write(&path, &whole[..at]).unwrap();
        read_all();
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        fs::write(&path, &damaged).unwrap();
        read_all();
        // Records appended after the damage are readable again.
        let (_, claims) = journal::read(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(claims.iter().count(), 4, "byte {at}");
    }
}

#[test]
fn two_clients_that_fill_one_cache_at_once_see_each_others_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(2_000_000, 8), |_| Act::Serve);
    let url = server.url();
    std::thread::scope(|scope| {
        for n in 0..4u64 {
            let (folder, url, object) = (folder.path(), &url, server.object());
            scope.spawn(move || {
                let remote = remote(cached(folder));
                let source = remote.open(url).unwrap();
                for step in 0..200 {
                    read(&source, object, (step * 7919 + n * 104_729) * 10 % 1_999_000);
                }
            });
        }
    });
    let (_, claims) =
        journal::read(&fs::read(&files(folder.path(), "journal")[0]).unwrap()).unwrap();
    assert!(claims.iter().count() > 100);

    let (first, second) = (remote(cached(folder.path())), remote(cached(folder.path())));
    let (first, second) = (first.open(&url).unwrap(), second.open(&url).unwrap());
    let free = (0..1_999_000).step_by(1000).find(|&offset| {
        let span = quarrier_sparse::Span { offset, length: 1000 };
        claims.overlapping(span).next().is_none()
    });
    let free = free.unwrap();
    read(&first, server.object(), free);
    // A reader does not wait until the block is on disk.
    let span = quarrier_sparse::Span { offset: free, length: 1000 };
    let is_claimed = || {
        let journal = fs::read(&files(folder.path(), "journal")[0]).unwrap();
        journal::read(&journal).is_some_and(|(_, claims)| claims.overlapping(span).next().is_some())
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !is_claimed() && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    read(&second, server.object(), free);
    assert_eq!((first.counters().requests, second.counters().requests), (2, 1));
}

#[test]
fn the_objects_not_used_for_longest_make_room_and_those_in_use_stay() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(400_000, 9), |_| Act::Serve);
    let mut options = cached(folder.path());
    options.cache.as_mut().unwrap().bytes_max = 1_000_000;
    let fill = |path: &str| {
        let remote = remote(options.clone());
        let source = remote.open(&server.url_of(path)).unwrap();
        source.fetch_many(&[0..200_000, 200_000..400_000]).unwrap();
        (remote, source)
    };
    let in_use = fill("/0");
    for n in 1..8 {
        fill(&format!("/{n}"));
        // File times may be no finer than this.
        std::thread::sleep(std::time::Duration::from_millis(12));
    }
    let bytes =
        |path: &PathBuf| std::os::unix::fs::MetadataExt::blocks(&fs::metadata(path).unwrap()) * 512;
    let sum: u64 = files(folder.path(), "data").iter().map(bytes).sum();
    assert!(sum <= 1_500_000, "{sum}");
    drop(in_use);
    let requests = |path: &str| fill(path).1.counters().requests;
    assert_eq!(requests("/0"), 1, "it was in use");
    assert!(requests("/2") > 1, "it made room");
}

#[test]
fn a_folder_that_cannot_be_written_turns_the_cache_off_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(100_000, 10), |_| Act::Serve);
    let in_the_way = folder.path().join("file");
    fs::write(&in_the_way, "").unwrap();
    let remote = remote(cached(&in_the_way.join("cache")));
    read(&remote.open(&server.url()).unwrap(), server.object(), 50_000);
    let warning = remote.cache_warning().unwrap();
    assert!(
        warning.contains("file/cache") && warning.contains("continuing without it"),
        "{warning}"
    );
}

#[test]
fn a_full_disk_turns_the_cache_off_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(100_000, 11), |_| Act::Serve);
    let remote = remote(cached(folder.path()));
    drop(remote.open(&server.url()).unwrap());
    let path = files(folder.path(), "data")[0].clone();
    // /dev/full reports a full disk.
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let source = remote.open(&server.url()).unwrap();
    for offset in [20_000, 50_000] {
        read(&source, server.object(), offset);
    }
    let warning = remote.cache_warning().unwrap();
    assert!(warning.contains("No space left"), "{warning}");
}

#[test]
fn only_the_owner_may_read_cached_files() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("a/b");
    let server = Server::new(noise(1000, 12), |_| Act::Serve);
    let remote = remote(cached(&folder));
    remote.open(&server.url()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let all: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|path| mode(path) == 0o600));
}

fn open_cache(folder: &Path) -> Cache {
    Cache::open(CacheOptions::new(folder)).unwrap()
}

#[test]
fn offline_reads_of_uncached_ranges_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(5_000_000, 9), |_| Act::Serve);
    {
        let remote = remote(cached(folder.path()));
        let source = remote.open(&server.url()).unwrap();
        read(&source, server.object(), 100_000);
        assert_eq!(source.cached_bytes(), Some(1001));
    }
    let mut options = Options::default();
    options.cache = Some(CacheOptions::new(folder.path()));
    options.offline = true;
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    assert_eq!((source.length(), source.etag().is_some()), (5_000_000, true));
    read(&source, server.object(), 100_000);
    // Sequential reads do not fetch ahead offline.
    for offset in [3_000_000, 101_000, 99_999] {
        let error = source.read_at(offset, &mut [0; 1000]).unwrap_err().to_string();
        let reason = format!("byte {offset} is not in the cache");
        assert!(error.contains(&reason), "{error}");
    }
    // Merged by cost, one request would span the cached bytes.
    let error = source.read_at(99_000, &mut [0; 3000]).unwrap_err().to_string();
    assert!(error.contains("byte 99000 is not in the cache"), "{error}");
    // The cached front of a range can be read, but a read of the whole range fails.
    let mut front = [0; 1000];
    assert_eq!(source.read_at(100_900, &mut front).unwrap(), 100);
    assert_eq!(front[..100], server.object()[100_900..101_000]);
    let whole = source.read_unless(100_900, &mut front, &false.into()).unwrap_err();
    assert!(matches!(whole, Error::NotCached { offset: Some(101_000), .. }), "{whole}");
    read(&source, server.object(), 100_000);
    assert_eq!(source.counters().requests, 0);
    let missing = remote.open(&server.url_of("/other")).unwrap_err();
    assert!(matches!(missing, Error::NotCached { offset: None, .. }), "{missing}");
}

#[test]
fn offline_the_version_used_last_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(100_000, 3), |ask| match ask.number {
        0 | 1 => Act::Serve,
        _ => Act::Version("ETag: \"two\"\r\n".to_string()),
    });
    let online = || {
        let remote = remote(cached(folder.path()));
        remote.open(&server.url()).unwrap().read_at(5000, &mut [0; 1000]).unwrap();
    };
    let offline = || {
        let mut options = cached(folder.path());
        options.offline = true;
        let source = remote(options).open(&server.url()).unwrap();
        source.etag().unwrap().to_string()
    };
    online();
    assert_eq!(offline(), "\"one\"");
    for path in files(folder.path(), "journal") {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    online();
    assert_eq!(files(folder.path(), "about").len(), 2);
    assert_eq!(offline(), "\"two\"");
}

#[test]
fn cached_objects_are_listed_verified_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let server = Server::new(noise(5_000_000, 10), |_| Act::Serve);
    let remote = remote(cached(folder.path()));
    let url = server.url_of("/a?X-Amz-Signature=secret&part=1");
    let source = remote.open(&url).unwrap();
    read(&source, server.object(), 0);
    read(&source, server.object(), 100_000);
    let objects = open_cache(folder.path()).objects();
    assert_eq!(objects.len(), 1);
    let object = &objects[0];
    assert_eq!(object.name.as_deref(), Some(&*server.url_of("/a?…")));
    assert_eq!((object.length, object.held_bytes), (5_000_000, 2000));
    assert_eq!(object.etag.as_deref(), source.etag());
    let checked = object.verify(&stop).unwrap();
    assert_eq!((checked.bytes, &checked.damaged[..]), (2000, &[][..]));
    for path in fs::read_dir(folder.path()).unwrap() {
        let bytes = fs::read(path.unwrap().path()).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"secret"));
    }
    assert!(!object.remove(), "it is in use");
    drop((source, remote));
    let data = OpenOptions::new().write(true).open(&files(folder.path(), "data")[0]).unwrap();
    data.write_all_at(b"x", 100_500).unwrap();
    data.write_all_at(b"y", 100_501).unwrap();
    let checked = object.verify(&stop).unwrap();
    assert_eq!((checked.damaged.len(), &checked.damaged[0]), (1, &(100_000..101_000)));
    assert!(object.remove());
    assert!(open_cache(folder.path()).objects().is_empty());
    assert!(files(folder.path(), "about").is_empty());
}

#[test]
fn an_object_without_a_description_is_listed_without_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(noise(100_000, 6), |_| Act::Serve);
    read(&remote(cached(folder.path())).open(&server.url()).unwrap(), server.object(), 5000);
    let about = files(folder.path(), "about").remove(0);
    for text in ["", "quarrier cached object 1\nlength: 7\n", "\u{0}"] {
        fs::write(&about, text).unwrap();
        let objects = open_cache(folder.path()).objects();
        assert_eq!((objects[0].name.as_deref(), objects[0].held_bytes), (None, 1001), "{text:?}");
    }
    let mut options = cached(folder.path());
    options.offline = true;
    assert!(remote(options).open(&server.url()).is_err());
}
