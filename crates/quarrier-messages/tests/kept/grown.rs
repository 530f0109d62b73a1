//! A table that grew step by step equals the table built from the same messages at once.

use quarrier_core::source::Source;
use quarrier_messages::Format;
use quarrier_messages::kept::Store;
use quarrier_messages::log::disk::FaultyDisk;

use crate::kit::{Random, assert_same, at_once, load, open, orders, small, table};

/// Makes messages whose columns change their types.
pub(crate) fn lines(random: &mut Random) -> Vec<u8> {
    let values = [
        "1",
        "-7",
        "2.50",
        "1e300",
        "12345678901234567890123",
        "true",
        "null",
        "\"text\"",
        "\"\"",
        "\"2024-01-31\"",
        "\"20240131-10:00:00.000\"",
        "\"2024-01-31T10:00:00Z\"",
        "\"007\"",
        "[1,2]",
        "{\"x\":\"2024-02-30\"}",
        "{\"x\":3}",
    ];
    let mut text = String::new();
    for _ in 0..random.below(12) {
        // Runs of values of one type, so that columns often keep theirs.
        let kind = random.below(values.len() as u64);
        let mut field = |name: &str| {
            let nth = if random.below(4) == 0 { random.below(values.len() as u64) } else { kind };
            format!("\"{name}\":{}", values[nth as usize])
        };
        text += &match field("a").len() % 3 {
            0 => format!("{{{}}}\n", field("a")),
            1 => format!("{{{},{}}}\n", field("b"), field("a")),
            _ => format!("{{{},{},{}}}\n", field("a"), field("c"), field("b")),
        };
    }
    text.into_bytes()
}

#[test]
fn a_grown_table_equals_one_of_all_messages_at_once() {
    for seed in 0..150 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let mut store = open(&disk).unwrap();
        let mut all = Vec::new();
        for step in 0..1 + random.below(12) {
            let more = lines(&mut random);
            load(&store, &format!("f{step}"), &more, &small(Format::Json)).unwrap();
            all.extend_from_slice(&more);
            if random.below(3) > 0 && !all.is_empty() {
                let what = format!("seed {seed}, step {step}");
                let (grown, naive) = (table(&store), at_once(&[&all], Format::Json));
                assert_same(&grown, &naive, &what);
            }
            if random.below(4) == 0 {
                drop(store);
                store = open(&disk).unwrap();
            }
        }
    }
}

#[test]
fn a_table_grown_by_single_messages_is_repacked() {
    let disk = FaultyDisk::new(1);
    let store = open(&disk).unwrap();
    for number in 0..200 {
        let line = orders(number..number + 1);
        load(&store, &format!("f{number}"), &line, &small(Format::Json)).unwrap();
        assert_eq!(table(&store).rows(), number + 1);
    }
    let grown = table(&store);
    assert!(grown.segments() <= 64, "{} segments", grown.segments());
    assert_same(&grown, &at_once(&[&orders(0..200)], Format::Json), "200 appends");
}

/// A reader of a folder that is being written sees a prefix of the log, and no damage.
#[test]
fn a_folder_can_be_read_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = quarrier_messages::log::Options::default();
    options.segment_bytes = 1 << 20;
    let store = Store::open_with(folder.path(), options).unwrap();
    let all = orders(0..40_000);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut how = small(Format::Json);
            how.batch_bytes = 20_000;
            load(&store, "f", &all, &how).unwrap();
            is_done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut seen = 0;
        while !is_done.load(std::sync::atomic::Ordering::SeqCst) {
            let reader = Store::read(folder.path()).unwrap();
            assert!(reader.found().damages.is_empty(), "{:?}", reader.found());
            let Some(run) = reader.all_runs().unwrap().pop() else { continue };
            let mut bytes = vec![0; run.length() as usize];
            quarrier_core::source::read_full_at(&run, 0, &mut bytes).unwrap();
            assert!(all.starts_with(&bytes) && bytes.len() >= seen, "{} bytes", bytes.len());
            seen = bytes.len();
        }
    });
    assert_same(&table(&store), &at_once(&[&all], Format::Json), "in the end");
}
