//! Shared memory: zeroed, aligned, visible to all holders, gone with the last one, without SIGBUS.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::Ordering;

use quarrier_core::Error;
use quarrier_core::region::{Backing, HUGE_PAGE_BYTES, PAGE_BYTES, SharedRegion};

/// Maps the region's memory a second time.
fn again(region: &SharedRegion, bytes: usize) -> Result<SharedRegion, Error> {
    let file: OwnedFd = region.as_fd().try_clone_to_owned().unwrap();
    // SAFETY: no holder makes the file shorter.
    unsafe { SharedRegion::try_from_fd(file, bytes) }
}

fn bytes(region: &SharedRegion) -> Vec<u8> {
    let mut bytes = vec![0xA5; region.len()];
    assert_eq!(region.bytes().copy_to(0, &mut bytes), region.len());
    bytes
}

fn bytes_mut(region: &mut SharedRegion) -> &mut [u8] {
    // SAFETY: the tests access a region through nothing else while they fill it.
    unsafe { region.as_mut_slice() }
}

fn message(made: Result<SharedRegion, Error>) -> String {
    made.expect_err("must be refused").to_string()
}

#[test]
fn regions_of_any_size_are_zero_and_page_aligned() {
    for length in [0, 1, 4_096, 4_097, HUGE_PAGE_BYTES - 1, HUGE_PAGE_BYTES, (5 << 20) + 3] {
        let mut region = SharedRegion::new(length).unwrap();
        assert_eq!(region.len(), length);
        assert_eq!(region.as_ptr().addr().get() % region.page_bytes(), 0);
        assert!(bytes(&region).iter().all(|&byte| byte == 0));
        bytes_mut(&mut region).fill(7);
        assert!(bytes(&region).iter().all(|&byte| byte == 7));
    }
}

#[test]
fn large_regions_have_huge_pages_or_it_can_be_asked_why_not() {
    let large = SharedRegion::new(HUGE_PAGE_BYTES).unwrap();
    match SharedRegion::huge_pages_refused() {
        None => {
            assert_eq!(large.backing(), Backing::HugeTmpfs);
            assert_eq!(large.page_bytes(), HUGE_PAGE_BYTES);
        }
        Some(reason) => {
            assert_eq!(large.backing(), Backing::Memfd);
            assert!(!reason.is_empty());
        }
    }
    assert_eq!(SharedRegion::new(HUGE_PAGE_BYTES - 1).unwrap().backing(), Backing::Memfd);
}

#[test]
fn large_regions_side_by_side_do_not_lie_in_the_same_place_of_the_cache() {
    const SPREAD: usize = 256 << 20;
    let all: Vec<_> = (0..4).map(|_| SharedRegion::new(SPREAD).unwrap()).collect();
    let mut places: Vec<_> =
        all.iter().map(|region| region.as_ptr().addr().get() % SPREAD).collect();
    places.sort_unstable();
    places.dedup();
    assert!(places.len() > 1, "{places:x?}");
}

#[test]
fn mappings_share_bytes_and_outlive_the_first_holder() {
    for length in [10_000, 4 << 20] {
        let mut first = SharedRegion::new(length).unwrap();
        let second = again(&first, length).unwrap();
        assert_eq!(second.backing(), first.backing());
        assert_eq!(second.page_bytes(), first.page_bytes());
        bytes_mut(&mut first)[length - 1] = 9;
        drop(first);
        assert_eq!(bytes(&second)[length - 1], 9);
    }
}

#[test]
fn a_memfd_cannot_be_made_shorter_or_longer() {
    let region = SharedRegion::new(8_192).unwrap();
    for bytes in [0, 4_096, 16_384] {
        assert!(rustix::fs::ftruncate(region.as_fd(), bytes).is_err());
    }
    assert!(bytes(&region).iter().all(|&byte| byte == 0));
}

#[test]
fn a_descriptor_is_refused_where_a_store_could_kill_the_process() {
    let region = SharedRegion::new(8_192).unwrap();
    assert!(message(again(&region, 8_193)).contains("8192 bytes"));
    let null = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    // SAFETY: the call must refuse this descriptor, so it makes no region.
    let made = unsafe { SharedRegion::try_from_fd(null, 1) };
    assert!(matches!(made, Err(Error::NotReadable { .. })));
    let Ok(file) = tempfile::tempfile_in("/dev/shm") else { return };
    file.set_len(4_096).unwrap();
    // SAFETY: the call must refuse this descriptor, so it makes no region.
    assert!(message(unsafe { SharedRegion::try_from_fd(file.into(), 4_096) }).contains("full"));
}

#[test]
fn more_than_the_machine_has_is_refused_at_once() {
    for bytes in [1 << 50, usize::MAX / 2, usize::MAX] {
        let Err(Error::NoRoom { asked_bytes, left_bytes, .. }) = SharedRegion::new(bytes) else {
            panic!("{bytes} bytes were promised");
        };
        assert_eq!(asked_bytes, bytes as u64);
        assert!(left_bytes < asked_bytes);
    }
}

#[test]
fn a_counter_counts_for_all_holders_and_lies_within_the_region() {
    const EACH: u64 = 10_000;
    let region = SharedRegion::new(24).unwrap();
    let other = again(&region, 24).unwrap();
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for holder in [&region, &other, &region, &other] {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                // SAFETY: this test makes no slice of these regions.
                let counter = unsafe { holder.counter(16) }.unwrap();
                for _ in 0..EACH {
                    counter.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    // SAFETY: this test makes no slice of these regions.
    unsafe {
        assert_eq!(other.counter(16).unwrap().load(Ordering::SeqCst), 4 * EACH);
        for offset in [4, 17, 24, 1 << 40, usize::MAX - 7] {
            assert!(matches!(region.counter(offset), Err(Error::BadPlan(_))), "{offset}");
        }
    }
}

#[test]
fn populating_any_range_leaves_the_bytes_as_they_are() {
    for all in [10_000, 6 << 20] {
        let mut region = SharedRegion::new(all).unwrap();
        bytes_mut(&mut region)[5_000] = 1;
        for (offset, length) in [(0, all), (4_097, 1), (all, 1), (1, usize::MAX), (9, 0)] {
            region.populate(offset, length);
        }
        assert_eq!(bytes(&region).iter().map(|&byte| usize::from(byte)).sum::<usize>(), 1);
    }
}

#[test]
fn a_thousand_regions_leave_no_descriptor_and_no_mapping() {
    // Other tests of this process make regions too, so a separate process counts.
    let found = run_alone("shared_region::alone_leaks", &[]);
    assert!(found.contains("1 passed"), "{found}");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test must not look like a passed one")]
fn a_shm_folder_of_a_megabyte_does_not_matter() {
    let script = "mount -t tmpfs -o size=1m none /dev/shm && exec \"$0\" \"$@\"";
    let can = Command::new("unshare").args(["-mr", "sh", "-c", script, "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this process may not mount anything, not even in a namespace");
        return;
    }
    let around = ["unshare", "-mr", "sh", "-c", script];
    let found = run_alone("shared_region::alone_fills", &around);
    assert!(found.contains("1 passed"), "{found}");
}

/// Runs one of the tests below in a separate process, started through another command.
fn run_alone(test: &str, around: &[&str]) -> String {
    let me = std::env::current_exe().unwrap();
    let mut words: Vec<&std::ffi::OsStr> = around.iter().map(AsRef::as_ref).collect();
    words.push(me.as_os_str());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["--exact", test]).env("QUARRIER_TEST_ALONE", "1");
    let output = command.output().unwrap();
    format!(
        "{}{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn is_alone() -> bool {
    std::env::var_os("QUARRIER_TEST_ALONE").is_some()
}

#[test]
fn alone_leaks() {
    if !is_alone() {
        return;
    }
    let count = || {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        (descriptors, maps.lines().filter(|line| line.contains("(deleted)")).count())
    };
    drop(SharedRegion::new(4 << 20));
    let before = count();
    for bytes in [1, 10_000, 3 << 20, 0].into_iter().cycle().take(1_000) {
        bytes_mut(&mut SharedRegion::new(bytes).unwrap()).fill(1);
    }
    assert_eq!(count(), before);
}

#[test]
fn alone_fills() {
    if !is_alone() {
        return;
    }
    let mut region = SharedRegion::new(16 << 20).unwrap();
    bytes_mut(&mut region).fill(1);
    let mut small = SharedRegion::new(HUGE_PAGE_BYTES - PAGE_BYTES).unwrap();
    bytes_mut(&mut small).fill(1);
    assert!(region.as_fd().as_raw_fd() != small.as_fd().as_raw_fd());
}
