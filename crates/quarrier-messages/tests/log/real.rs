//! A folder of the operating system.

use std::path::Path;

use quarrier_messages::log::{Batch, Encoding, Error, Event, Log, Opener, Options, Reader};

fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 1 << 20;
    options
}

fn lines(number: u32, bytes: usize) -> Batch {
    let text = format!("{{\"n\":{number},\"text\":\"{}\"}}\n", "y".repeat(bytes));
    Batch::new(1, Encoding::Json, 1, text.into_bytes()).unwrap()
}

fn payloads(folder: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(folder, 1).unwrap();
    let mut found = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        let Event::Batch(entry) = event else { panic!("{event:?}") };
        found.push(entry.payload().unwrap().into_owned());
    }
    found
}

#[test]
fn another_process_reads_the_appended_messages() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("deep").join("data");
    let mut expected = Vec::new();
    for life in 0..3 {
        let log = Opener::new().options(options()).open(&data, |_| {}).unwrap();
        for number in 0..20 {
            let bytes = [0, 10, 5000, 300_000][number as usize % 4];
            let batch = lines(life * 100 + number, bytes);
            expected.push(format!(
                "{{\"n\":{},\"text\":\"{}\"}}\n",
                life * 100 + number,
                "y".repeat(bytes)
            ));
            log.append(batch).unwrap();
        }
        if life == 1 {
            log.close().unwrap();
        }
    }
    let found = payloads(&data);
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(&expected).all(|(found, expected)| found == expected.as_bytes()));
    let files = std::fs::read_dir(data.join("log")).unwrap().count();
    assert!(files >= 4, "{files} segments");
}

#[test]
fn a_closed_log_is_little_larger_than_its_messages() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path()).unwrap();
    let bytes = 20 * 100_000;
    for number in 0..20 {
        log.append(lines(number, 100_000)).unwrap();
    }
    log.close().unwrap();
    let files = std::fs::read_dir(folder.path().join("log")).unwrap();
    let taken: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(taken >= bytes && taken * 100 <= bytes * 102, "{taken} bytes for {bytes}");
}

#[test]
fn the_second_writer_learns_who_holds_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let log = Opener::new().options(options()).open(folder.path(), |_| {}).unwrap();
    let Err(error) = Log::open(folder.path()) else { panic!("two writers") };
    assert!(matches!(error, Error::Locked { pid: Some(pid), .. } if pid == std::process::id()));
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(log);
    Opener::new().options(options()).open(folder.path(), |_| {}).unwrap();
}

#[test]
fn many_senders_share_syncs_while_followers_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = Opener::new().options(options()).open(folder.path(), |_| {}).unwrap();
    let mut follower = log.follow(1).unwrap();
    std::thread::scope(|scope| {
        for sender in 0..8 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..25 {
                    log.append(lines(sender * 1000 + number, 200)).unwrap();
                }
            });
        }
        scope.spawn(move || {
            for mark in 1..=200 {
                match follower.next_event(std::time::Duration::from_secs(60)).unwrap() {
                    Some(Event::Batch(entry)) => assert_eq!(entry.marks(), mark..mark + 1),
                    other => panic!("{other:?}"),
                }
            }
        });
    });
    assert_eq!(log.next_mark(), 201);
    log.close().unwrap();
    assert_eq!(payloads(folder.path()).len(), 200);
}

#[test]
fn files_that_are_not_segments_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("log")).unwrap();
    let other = folder.path().join("log").join("notes.txt");
    std::fs::write(&other, "mine").unwrap();
    let log = Opener::new().options(options()).open(folder.path(), |_| {}).unwrap();
    log.append(lines(1, 10)).unwrap();
    log.close().unwrap();
    assert_eq!(std::fs::read(other).unwrap(), b"mine");
    assert_eq!(payloads(folder.path()).len(), 1);
}
