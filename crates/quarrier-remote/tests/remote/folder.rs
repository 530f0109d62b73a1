//! Folders of buckets: listings in pages, and objects that are written once.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;
use quarrier_core::source::Source;
use quarrier_remote::{Counters, Error, Remote};

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

/// The error of a listing, which must begin with its name and hold no secret.
#[track_caller]
fn refused(client: &Remote, url: &str) -> Error {
    let error = keys(client, url, false).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(&format!("{url}: ")) && !text.contains(SECRET), "{text}");
    error
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
    assert_eq!(server.log().len(), 6, "three attempts for each of two pages");
    for url in ["s3://lab/a/", "gs://lab/a/", "az://lab/a/"] {
        let error = |act: Act| {
            server.plan(move |_| act.clone());
            refused(&client, url)
        };
        assert!(matches!(error(Act::Status(403)), Error::NotListed { status: 403, .. }));
        assert!(matches!(error(Act::Status(401)), Error::NotListed { status: 401, .. }));
        assert!(matches!(error(Act::Status(404)), Error::NoBucket { .. }));
        for status in [301, 400, 409, 412] {
            let error = error(Act::Status(status));
            let (words, setting) = (format!("status {status}; check"), "AWS_REGION");
            assert!(error.to_string().contains(&words), "{error}");
            assert_eq!(error.to_string().contains(setting), url.starts_with("s3"), "{error}");
        }
        let page = format!("<html><Token>{SECRET}</Token></html>");
        for body in
            ["", SECRET, page.as_str(), "<ListBucketResult>", "<ListBucketResult><hidden a='"]
        {
            let error = error(Act::Body(body.to_string()));
            assert!(matches!(error, Error::Unusable { .. }), "{body}: {error}");
        }
        let before = server.log().len();
        assert!(matches!(error(Act::Status(500)), Error::Gone { .. }));
        assert_eq!(server.log().len() - before, 12, "as often as reads");
    }
    for url in ["s3://", "s3:///a", "https://lab/a", "lab", "s3://a b/", "gs://\u{e9}/", "az://a%/"]
    {
        assert!(matches!(client.folder(url), Err(Error::BadUrl { .. })), "{url}");
    }
    let long = format!("s3://lab/{}", "a".repeat(5000));
    assert!(matches!(client.folder(&long), Err(Error::BadUrl { .. })));
}

#[test]
fn the_counters_of_a_client_have_all_requests() {
    let server = Buckets::new(2);
    for key in ["a/1", "a/2", "a/3", "a/4", "a/5"] {
        server.put("lab", key, vec![7; 1000]);
    }
    let client = client(&server);
    server.plan(|asked| if asked.number == 1 { Act::Status(503) } else { Act::Serve });
    let counted = |pages: u64, retries: u64| {
        let counters = client.counters();
        assert_eq!((counters.requests, counters.retries), (server.log().len() as u64, retries));
        assert_eq!(counters.requests, pages);
        counters
    };
    assert_eq!(counted(0, 0), Counters::default());
    assert_eq!(keys(&client, "s3://lab/a/", false).unwrap().len(), 5);
    let listed = counted(4, 1).bytes_fetched;
    assert!(listed > 500);
    let object = client.open("s3://lab/a/1").unwrap();
    object.read_at(500, &mut [0; 10]).unwrap();
    let own = object.counters();
    let read = counted(4 + own.requests, 1);
    assert_eq!(read.bytes_fetched, listed + own.bytes_fetched);
    assert!(own.requests > 0 && own.bytes_asked == 10 && read.bytes_asked == 0);
    drop(object);
    client.open("s3://lab/missing").map(drop).unwrap_err();
    let folder = client.folder("s3://lab/a/").unwrap();
    folder.put_new("6", b"x".to_vec()).unwrap();
    folder.remove("6").unwrap();
    assert_eq!(counted(4 + own.requests + 3, 1).bytes_fetched, read.bytes_fetched);
}

#[test]
fn a_listing_that_fails_in_the_middle_is_an_error_after_its_first_pages() {
    let server = Buckets::new(2);
    for number in 0..9 {
        server.put("lab", &format!("a/{number}"), "x");
    }
    let client = client(&server);
    server.plan(|asked| match asked.number {
        0..2 => Act::Serve,
        _ => Act::Status(503),
    });
    let mut count = 0;
    let listed =
        client.folder("s3://lab/a/").unwrap().list(false, &AtomicBool::new(false), &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
    assert!(matches!(listed, Err(Error::Gone { .. })), "{listed:?}");
    assert_eq!((count, server.log().len()), (4, 2 + 12));
}

#[test]
fn keys_of_any_characters_are_listed_and_those_that_cannot_be_requested_are_refused() {
    let server = Buckets::new(3);
    let odd = ["a//b", "a/../b", "a/./b", "/a", "a/", "a/\u{1}", "a/\r\n", "a/b/"];
    let fine = ["a/ b ", "a/%41", "a/<&>\u{1F980}", "a/b", "a/*?"];
    for key in odd.into_iter().chain(fine) {
        server.put("lab", key, "x");
    }
    let client = client(&server);
    for scheme in ["s3", "gs", "az"] {
        let mut listed = keys(&client, &format!("{scheme}://lab/"), false).unwrap();
        listed.sort();
        let mut all: Vec<_> = odd.into_iter().chain(fine).map(|key| format!("{key} 1")).collect();
        all.sort();
        assert_eq!(listed, all, "{scheme}");
        for key in odd {
            let url = format!("{scheme}://lab/{key}");
            let error = client.open(&url).map(drop).unwrap_err();
            assert!(matches!(error, Error::BadUrl { .. }), "{url:?}: {error}");
            let folder = client.folder(&format!("{scheme}://lab/")).unwrap();
            assert!(matches!(folder.put_new(key, Vec::new()), Err(Error::BadUrl { .. })));
            assert!(matches!(folder.remove(key), Err(Error::BadUrl { .. })));
        }
        for key in fine {
            assert_eq!(client.open(&format!("{scheme}://lab/{key}")).unwrap().length(), 1, "{key}");
        }
    }
}

/// A page with this many objects, named after `number`, and the mark of the next page.
fn page(number: u64, objects: u64, next: &str) -> Act {
    let objects: String = (0..objects)
        .map(|at| format!("<Contents><Key>k/{number}-{at}</Key><Size>1</Size></Contents>"))
        .collect();
    let next = format!("<NextContinuationToken>{next}</NextContinuationToken>");
    Act::Body(format!("<ListBucketResult>{objects}{next}</ListBucketResult>"))
}

#[test]
fn a_listing_that_never_ends_is_given_up() {
    let server = Buckets::new(1);
    let client = client(&server);
    for cycle in [1, 3] {
        server.plan(move |asked| page(asked.number, 2, &format!("m{}", asked.number % cycle)));
        assert!(refused(&client, "s3://lab/k/").to_string().contains("same pages"));
    }
    let before = server.log().len();
    server.plan(|asked| page(asked.number, 0, &asked.number.to_string()));
    assert!(refused(&client, "s3://lab/k/").to_string().contains("without objects"));
    assert_eq!(server.log().len() - before, 10_001);
    // One that always has new objects ends when the receiver, or the user, wants no more.
    server.plan(|asked| page(asked.number, 2, &asked.number.to_string()));
    let folder = client.folder("s3://lab/k/").unwrap();
    let (stop, mut count) = (AtomicBool::new(false), 0);
    let listed = folder.list(false, &stop, &mut |_| {
        count += 1;
        stop.store(count == 200, Ordering::SeqCst);
        ControlFlow::Continue(())
    });
    assert!(matches!(listed, Err(Error::Closed { .. })), "{listed:?}");
    assert_eq!(count, 200);
}

#[test]
fn a_million_keys_are_passed_on_page_by_page() {
    let server = Buckets::new(1);
    let client = client(&server);
    server.plan(|asked| match asked.query.get("continuation-token").map_or("0", |m| m.as_str()) {
        "199" => page(199, 5_000, ""),
        mark => {
            let number: u64 = mark.parse().unwrap();
            page(number, 5_000, &(number + 1).to_string())
        }
    });
    let mut count = 0;
    let folder = client.folder("s3://lab/k/").unwrap();
    folder
        .list(false, &AtomicBool::new(false), &mut |object| {
            assert!(object.key.starts_with("k/"));
            count += object.length;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((count, server.log().len()), (1_000_000, 200));
}

#[test]
fn an_object_is_written_whole_and_once_even_if_responses_are_lost() {
    let server = Buckets::new(10);
    let client = client(&server);
    let cut = AtomicU64::new(0);
    server.plan(move |asked| match asked.method.as_str() {
        "PUT" if cut.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) => Act::ServeAndCut,
        _ => Act::Serve,
    });
    for scheme in ["s3", "gs", "az"] {
        let folder = client.folder(&format!("{scheme}://{scheme}/found/")).unwrap();
        // The first attempt succeeds, but its response is lost, so the second finds the object.
        assert!(!folder.put_new("a b.arrow", b"first".to_vec()).unwrap());
        assert!(!folder.put_new("a b.arrow", b"second".to_vec()).unwrap());
        assert_eq!(server.get(scheme, "found/a b.arrow").unwrap(), b"first");
    }
    for asked in server.log() {
        let is_signed = asked.fields.contains_key("authorization");
        assert_eq!(is_signed, asked.bucket != "gs", "{asked:?}");
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
    for scheme in ["s3", "gs", "az"] {
        let folder = client.folder(&format!("{scheme}://{scheme}/found/")).unwrap();
        let url = format!("{scheme}://{scheme}/found/denied: ");
        for status in [401, 403, 404, 400, 500] {
            server.plan(move |_| Act::Status(status));
            let put = folder.put_new("denied", b"x".to_vec()).map(drop);
            let removed = if status == 404 { put.clone() } else { folder.remove("denied") };
            for error in [put.unwrap_err(), removed.unwrap_err()] {
                let text = error.to_string();
                let has_status = text.contains(&status.to_string());
                assert!(text.starts_with(&url) && has_status && !text.contains(SECRET), "{text}");
                let is_denied = matches!(error, Error::Denied { .. });
                assert_eq!(is_denied, matches!(status, 401 | 403), "{text}");
            }
        }
        // A redirected write may arrive as a read, and its success would mean nothing.
        let elsewhere = format!("{}/elsewhere/x", server.url());
        server.plan(move |asked| match asked.bucket.as_str() {
            "elsewhere" => Act::Body("fine".to_string()),
            _ => Act::Redirect(elsewhere.clone()),
        });
        assert!(matches!(folder.put_new("x", b"x".to_vec()), Err(Error::Unusable { .. })));
        assert!(matches!(folder.remove("x"), Err(Error::Unusable { .. })));
    }
}

#[test]
fn errors_of_credentials_name_the_server_and_show_none_of_its_response() {
    let server = Buckets::new(1);
    let mut options = hasty();
    options.s3 = server.settings();
    options.s3.retain(|(name, _)| !name.contains("ACCESS_KEY"));
    let metadata = ("AWS_METADATA_ENDPOINT".to_string(), server.url());
    options.s3.push(metadata);
    let client = remote(options);
    for act in [Act::Status(404), Act::Status(401), Act::Body(format!("{{\"{SECRET}\":1}}"))] {
        let has_body = matches!(act, Act::Body(_));
        server.plan(move |asked| match &act {
            // The name of the role comes before its credentials.
            Act::Body(_) if !asked.key.ends_with("/role") => Act::Body("role".to_string()),
            act => act.clone(),
        });
        let folder = client.folder("s3://lab/a/").unwrap();
        let stop = AtomicBool::new(false);
        let listed = folder.list(false, &stop, &mut |_| ControlFlow::Continue(()));
        let opened = client.open("s3://lab/a").map(drop);
        for error in [listed, folder.put_new("x", Vec::new()).map(drop), folder.remove("x"), opened]
        {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("no credentials") && !text.contains(SECRET), "{text}");
            assert!(text.contains("AWS_ACCESS_KEY_ID"), "{text}");
            assert_eq!(text.contains(&server.url()), !has_body, "{text}");
        }
    }
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
