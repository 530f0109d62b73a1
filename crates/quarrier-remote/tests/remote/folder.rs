//! Folders of buckets: listings in pages, and objects that are written once.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;
use quarrier_core::source::Source;
use quarrier_remote::{Error, Remote};

use super::bucket::{Act, Buckets, SECRET};
use super::{hasty, remote};

fn client(server: &Buckets) -> Remote {
    let mut options = hasty();
    options.s3 = server.settings();
    remote(options)
}

fn keys(remote: &Remote, url: &str, is_flat: bool) -> Result<Vec<String>, Error> {
    let mut keys = Vec::new();
    remote.folder(url)?.list(is_flat, &AtomicBool::new(false), &mut |object| {
        keys.push(format!("{} {}", object.key, object.length));
        ControlFlow::Continue(())
    })?;
    Ok(keys)
}

/// The keys that a listing must have: a naive twin.
fn expected(objects: &BTreeMap<String, u64>, prefix: &str, is_flat: bool) -> Vec<String> {
    let has = |key: &&String| {
        key.strip_prefix(prefix).is_some_and(|rest| !is_flat || !rest.contains('/'))
    };
    objects.iter().filter(|(key, _)| has(key)).map(|(key, size)| format!("{key} {size}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn all_pages_of_a_listing_arrive_once(
        names in prop::collection::btree_set("[ab&é]( ?[ab&é])?x(/[ab-]{1,2}){0,2}", 0..25),
        prefix in "([ab]|a/|b/|ax/|x)?",
        page in 1u64..6,
        is_flat in any::<bool>(),
    ) {
        let server = Buckets::new(page);
        let objects: BTreeMap<String, u64> =
            names.iter().map(|name| (name.clone(), name.len() as u64)).collect();
        for (name, &length) in &objects {
            server.put("lab", name, vec![0; length as usize]);
            server.put("other", name, "x");
        }
        let client = client(&server);
        for scheme in ["s3", "gs", "az"] {
            let mut found = keys(&client, &format!("{scheme}://lab/{prefix}"), is_flat).unwrap();
            found.sort();
            prop_assert_eq!(&found, &expected(&objects, &prefix, is_flat), "{}", scheme);
        }
    }
}

#[test]
fn a_listing_is_retried_and_refused_in_words_without_secrets() {
    let server = Buckets::new(2);
    for key in ["a/1", "a/2", "a/3"] {
        server.put("lab", key, "x");
    }
    let client = client(&server);
    server.plan(|asked| match asked.number % 3 {
        0 => Act::Status(503),
        1 => Act::ServeAndCut,
        _ => Act::Serve,
    });
    assert_eq!(keys(&client, "s3://lab/a/", false).unwrap().len(), 3);
    let error = |act: Act| {
        server.plan(move |_| act);
        let error = keys(&client, "s3://lab/a/", false).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("s3://lab/a/: ") && !text.contains(SECRET), "{text}");
        error
    };
    assert!(matches!(error(Act::Status(403)), Error::NotListed { status: 403, .. }));
    assert!(matches!(error(Act::Status(401)), Error::NotListed { status: 401, .. }));
    assert!(matches!(error(Act::Status(404)), Error::NoBucket { .. }));
    assert!(matches!(error(Act::Status(400)), Error::Status { status: 400, .. }));
    assert!(matches!(error(Act::Status(301)), Error::Unusable { .. }));
    assert!(matches!(error(Act::Nonsense), Error::Unusable { .. }));
    let before = server.log().len();
    assert!(matches!(error(Act::Status(500)), Error::Gone { .. }));
    assert_eq!(server.log().len() - before, 12, "as often as reads");
    for url in ["s3://", "s3:///a", "https://lab/a", "lab"] {
        assert!(matches!(client.folder(url), Err(Error::BadUrl { .. })), "{url}");
    }
}

#[test]
fn an_object_is_written_whole_and_once_even_if_responses_are_lost() {
    let server = Buckets::new(10);
    let client = client(&server);
    let cut = AtomicU64::new(0);
    server.plan(move |asked| match asked.method.as_str() {
        "PUT" if cut.fetch_add(1, Ordering::SeqCst) % 2 == 0 => Act::ServeAndCut,
        _ => Act::Serve,
    });
    for scheme in ["s3", "gs", "az"] {
        let folder = client.folder(&format!("{scheme}://{scheme}/found/")).unwrap();
        // The first attempt succeeds, but its response is lost, so the second finds the object.
        assert!(!folder.put_new("a b.arrow", b"first".to_vec()).unwrap());
        assert!(!folder.put_new("a b.arrow", b"second".to_vec()).unwrap());
        assert_eq!(server.get(scheme, "found/a b.arrow").unwrap(), b"first");
        assert!(matches!(folder.put_new("a//b", Vec::new()), Err(Error::BadUrl { .. })));
    }
    server.plan(|_| Act::Serve);
    let folder = client.folder("s3://s3/found/").unwrap();
    assert!(folder.put_new("large", vec![7; 3_000_000]).unwrap());
    let object = client.open("s3://s3/found/large").unwrap();
    assert_eq!(object.length(), 3_000_000);
    for _ in 0..2 {
        folder.remove("large").unwrap();
        assert!(server.get("s3", "found/large").is_none());
    }
    let conflicts = AtomicU64::new(0);
    server.plan(move |_| match conflicts.fetch_add(1, Ordering::SeqCst) {
        0 => Act::Status(409),
        _ => Act::Serve,
    });
    assert!(folder.put_new("conflict", b"x".to_vec()).unwrap(), "409 is temporary for S3");
    server.plan(|_| Act::Status(403));
    let error = folder.put_new("denied", b"x".to_vec()).unwrap_err();
    assert!(matches!(error, Error::Denied { status: 403, .. }), "{error}");
}

#[test]
fn nothing_is_listed_or_written_offline_or_after_a_stop() {
    let server = Buckets::new(1);
    server.put("lab", "a", "x");
    let mut options = hasty();
    options.s3 = server.settings();
    let stopped = AtomicBool::new(true);
    let folder = remote(options.clone());
    let folder = folder.folder("s3://lab/").unwrap();
    server.plan(|_| {
        std::thread::sleep(std::time::Duration::from_secs(1));
        Act::Serve
    });
    let listed = folder.list(false, &stopped, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(listed, Err(Error::Closed { .. })), "{listed:?}");
    options.offline = true;
    assert!(matches!(remote(options).folder("s3://lab/"), Err(Error::Unusable { .. })));
    assert!(server.log().len() <= 1);
}
