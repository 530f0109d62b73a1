//! Listings of buckets, compared with globs and folders on a disk.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use quarrier::filter::{Conditions, Rows};
use quarrier::{Environment, Error, Filter, Named, OpenOptions, Opener, Sources, Tables};

use super::bucket::{Act, Buckets, SECRET};

fn opener(server: &Buckets) -> Opener {
    let environment = Environment::of_variables(server.settings());
    Opener::new(OpenOptions::default(), &environment, &Arc::default())
}

/// The names that a listing resolves to, without the bucket.
fn listed(opener: &Opener, name: &str) -> Vec<String> {
    let sources = Sources::of([name]);
    assert!(sources.are_found());
    let all = sources.listed(opener);
    let names = all.iter().map(|named| match named {
        Named::Url(url) => url.strip_prefix("s3://lab/").unwrap().to_string(),
        Named::Missing(_) => String::new(),
        other => panic!("{other:?}"),
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// The names that the same glob or folder resolves to on a disk.
fn on_disk(folder: &std::path::Path, name: &str) -> Vec<String> {
    let name = folder.join(name);
    let all = Sources::of([name.clone()]);
    let names = all.iter().filter_map(|named| match named {
        Named::Path(path) if path.is_file() => {
            Some(path.strip_prefix(folder).unwrap().to_str().unwrap().to_string())
        }
        Named::Path(_) | Named::Missing(_) => None,
        other => panic!("{other:?}"),
    });
    names.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_listing_selects_and_orders_objects_as_a_disk_does_files(
        names in prop::collection::btree_set("([ab-]{1,2}/){0,2}[ab.]?[ab-]{1,2}[.](dd|E01|E02)", 1..25),
        glob in "([ab*?-]{1,2}/|[*][*]/|\\[a-b\\]/){0,2}([*]|[ab?*]{1,2}[*]|[*].dd|\\[!a\\][*])",
        folder in "(a|b|-)/",
        page in 1u64..6,
    ) {
        // A local glob that ends with ** has folders only.
        prop_assume!(glob::Pattern::new(&glob).is_ok() && !glob.ends_with("**"));
        let (server, disk) = (Buckets::new(page), tempfile::tempdir().unwrap());
        for name in &names {
            let path = disk.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
            server.put("lab", name, "x");
        }
        // Most tools mark folders by empty objects.
        let folders: BTreeSet<&str> = names.iter().filter_map(|n| Some(n.rsplit_once('/')?.0)).collect();
        folders.iter().for_each(|folder| server.put("lab", &format!("{folder}/"), ""));
        let opener = opener(&server);
        for name in [glob.as_str(), folder.as_str(), ""] {
            let mut found = listed(&opener, &format!("s3://lab/{name}"));
            let mut expected = on_disk(disk.path(), name);
            // A local ** takes folders in an order of its own.
            if name.contains("**") {
                found.sort();
                expected.sort();
            }
            prop_assert_eq!(found, expected, "{}", name);
        }
    }
}

#[test]
fn an_object_with_the_name_of_a_glob_is_that_object() {
    let server = Buckets::new(2);
    for key in ["a?", "ab", "ac", "a[1", "x/*"] {
        server.put("lab", key, "x");
    }
    let opener = opener(&server);
    assert_eq!(listed(&opener, "s3://lab/a?"), ["a?"]);
    assert_eq!(listed(&opener, "s3://lab/x/*"), ["x/*"]);
    assert_eq!(listed(&opener, "s3://lab/a[b]"), ["ab"]);
    let literal = Sources::of(["s3://lab/a[1"]);
    assert_eq!(literal.as_slice(), [Named::Url("s3://lab/a[1".to_string())]);
    assert_eq!(
        opener.open(&Sources::only("s3://lab/a[c]").unwrap()).unwrap().name(),
        "s3://lab/ac"
    );
    let several = opener.open(&Sources::only("s3://lab/*").unwrap());
    let error = several.err().map(|error| error.to_string()).unwrap();
    assert_eq!(error, "s3://lab/*: names 4 objects; use them one at a time");
}

#[test]
fn errors_of_listings_say_what_and_where_without_secrets() {
    let server = Buckets::new(2);
    server.put("lab", "a", "x");
    server.put("lab", "empty/", "");
    let error = |name: &str| {
        let opener = opener(&server);
        let error = Sources::of([name]).open(&opener).next().unwrap().err().unwrap();
        let text = error.to_string();
        assert!(text.starts_with(name) && !text.contains(SECRET), "{text}");
        error
    };
    for name in ["s3://lab/*.dd", "s3://lab/b/", "s3://lab/empty/", "s3://other/"] {
        assert!(matches!(error(name), Error::NotFound { .. }), "{name}");
    }
    assert!(error("s3://lab/*.dd").to_string().contains("no object"));
    server.plan(|_| Act::Status(403));
    let denied = error("s3://lab/*");
    assert!(denied.to_string().contains("permission to list"), "{denied}");
    server.plan(|_| Act::Status(404));
    assert!(error("s3://lab/*").to_string().contains("no such bucket"));
}

#[test]
fn messages_of_all_objects_are_filtered_and_loaded_as_one_table() {
    let server = Buckets::new(2);
    for (key, count) in [("log/1.jsonl", 3), ("log/2.jsonl", 4), ("log/x/3.jsonl", 5), ("log/x", 1)]
    {
        let lines: String = (0..count).map(|n| format!("{{\"n\":{n}}}\n")).collect();
        server.put("lab", key, lines);
    }
    let (opener, stop) = (opener(&server), Arc::default());
    let mut requests = 0;
    for (name, count) in [("s3://lab/log/*.jsonl", 7), ("s3://lab/log/**/*.jsonl", 12)] {
        let loaded = Tables::new().load_all(&Sources::of([name]), &opener, &stop).unwrap();
        assert_eq!(loaded.table.rows(), count);
        requests += loaded.remote.unwrap().requests;
        let filter = Filter::new(Conditions::one("n >= 0"));
        let filtered = filter.run(&Sources::of([name]), &opener, &stop, &mut |_: &Rows<'_>| Ok(()));
        let filtered = filtered.unwrap();
        assert_eq!(filtered.counts, [count]);
        requests += filtered.remote.unwrap().requests;
        // Those of the listings, too.
        assert_eq!(requests, server.log().len() as u64);
        assert_eq!(opener.remote_cost().unwrap().requests, requests);
    }
}
