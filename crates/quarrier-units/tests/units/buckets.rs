//! Objects of units in buckets, compared with a plain search and with objects in a folder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use quarrier::{Environment, OpenOptions, Opener, Search};
use quarrier_search::Pattern;
use quarrier_units::{Results, Stored};

use super::bucket::{Act, Buckets};
use super::joined::{Work, check_in};
use super::lab::{Lab, planning};

/// A lab that keeps objects in a bucket of the server.
fn lab(server: &Buckets, scheme: &str, bytes: &[u8]) -> Lab {
    let environment = Environment::of_variables(server.settings());
    let opener = Opener::new(OpenOptions::default(), &environment, &Arc::default());
    let to = format!("{scheme}://lab/found");
    let mut lab = Lab::with(bytes);
    lab.bucket = Some(Results::at(to.as_ref(), &opener).unwrap());
    lab
}

fn search() -> Search {
    let patterns = vec![Pattern::literal("ab").unwrap(), Pattern::regex("[ab]{1,4}").unwrap()];
    Search::new(patterns).planning(planning(7))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..Default::default() })]

    #[test]
    fn rows_are_those_of_a_plain_search_even_if_responses_are_lost(
        text in prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b' ')], 1..90),
        unit_bytes in 7u64..60,
        order in prop::collection::vec(0u64..2, 0..4),
        removed in any::<u32>(),
        scheme in prop_oneof![Just("s3"), Just("gs"), Just("az")],
        loses in any::<bool>(),
    ) {
        let server = Buckets::new(3);
        let count = AtomicU64::new(0);
        server.plan(move |_| match count.fetch_add(1, Ordering::SeqCst) % 3 {
            1 if loses => Act::ServeAndCut,
            _ => Act::Serve,
        });
        let lab = lab(&server, scheme, &text);
        let work = Work { unit_bytes, buffer_bytes: 7, shards: vec![0, 1], order, removed };
        check_in(&lab, &search(), &work);
        let (folder, bucket) = (Lab::with(&text), &lab);
        let in_folder = folder.joined(&search(), unit_bytes).0;
        prop_assert_eq!(bucket.joined(&search(), unit_bytes).0, in_folder);
    }
}

/// A search whose units are never searched again.
fn literal() -> Search {
    Search::new(vec![Pattern::literal("ab").unwrap()])
}

#[test]
fn a_unit_with_an_object_is_not_run_again_and_a_damaged_object_is_replaced() {
    let server = Buckets::new(2);
    let lab = lab(&server, "s3", b"ab ab ab ab ab ab");
    let (expected, joined) = lab.joined(&literal(), 4);
    assert_eq!((joined.run, joined.there), (5, 0));
    let keys = server.keys("lab");
    assert_eq!(keys.len(), 5);
    assert!(keys.iter().all(|key| key.starts_with("found/") && key.ends_with(".arrow")));
    let puts = |server: &Buckets| server.log().iter().filter(|asked| asked.method == "PUT").count();
    let before = puts(&server);
    let (again, joined) = lab.joined(&literal(), 4);
    assert_eq!((again, joined.run, puts(&server)), (expected.clone(), 0, before));
    let whole = server.get("lab", &keys[1]).unwrap();
    server.put("lab", &keys[1], &whole[..whole.len() / 2]);
    server.remove("lab", &keys[3]);
    let (again, joined) = lab.joined(&literal(), 4);
    assert_eq!((again, joined.run, joined.there), (expected, 2, 3));
    assert_eq!(server.get("lab", &keys[1]), Some(whole));
    assert_eq!(server.keys("lab"), keys);
}

#[test]
fn a_bucket_that_cannot_be_written_is_an_error_that_names_the_object() {
    let server = Buckets::new(2);
    let lab = lab(&server, "s3", b"ab ab");
    server.plan(|asked| match asked.method.as_str() {
        "PUT" => Act::Status(403),
        _ => Act::Serve,
    });
    let mut source = lab.units(100);
    let unit = source.unit(0);
    let search = search();
    let error = lab.search_units(&search).store(&mut source, &unit).unwrap_err().to_string();
    assert!(error.starts_with("s3://lab/found/") && error.contains("denies access"), "{error}");
    server.plan(|_| Act::Serve);
    let mut units = lab.search_units(&search);
    assert!(!units.has(&unit).unwrap());
    assert_eq!(units.store(&mut source, &unit).unwrap().0, Stored::Now);
    assert!(units.has(&unit).unwrap());
}
