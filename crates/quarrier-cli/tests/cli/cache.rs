//! `quarrier cache`, and sources without a network.

use serde_json::Value;

use crate::carve::{gif, image, tree};
use crate::harness::{Lab, Ran, noise, places, run};
use crate::remote::Server;

fn cache(lab: &Lab, args: &[&str]) -> Ran {
    run(lab.command([&["cache"], args].concat()), b"")
}

fn rows(ran: &Ran) -> Vec<Value> {
    ran.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn object() -> Vec<u8> {
    let mut object = noise(700_000, 3);
    [0, 1000, 699_994].iter().for_each(|&at| object[at..at + 6].copy_from_slice(b"needle"));
    object
}

#[test]
fn a_source_that_was_filled_in_is_read_without_its_server() {
    let object = object();
    let expected = places(&object, b"needle");
    let server = Server::well(object);
    let lab = Lab::new();
    let ran = cache(&lab, &["fill", &server.url, "--cache", "c", "--format", "json"]);
    let filled = &rows(ran.is_clean())[0];
    assert_eq!((&filled["length"], &filled["fetched"]), (&700_000.into(), &700_000.into()));
    let before = server.requests();
    let found = lab.offsets(["needle", "--offline", "--cache", "c", &server.url]);
    assert_eq!((found, server.requests()), (expected.clone(), before));
    // The environment turns it on for every command.
    let mut command = lab.search_command(["needle", &server.url, "--format", "json"]);
    command.env("QUARRIER_CACHE", lab.path("c")).env("QUARRIER_OFFLINE", "1");
    let found: Vec<u64> = run(command, b"").rows().iter().map(|row| row.offset).collect();
    assert_eq!((found, server.requests()), (expected, before));
    // Cached bytes are not fetched again.
    let ran = cache(&lab, &["fill", &server.url, "--cache", "c", "--format", "json"]);
    assert!(rows(ran.is_clean())[0]["fetched"].as_u64().unwrap() < 100_000);
}

#[test]
fn all_files_of_an_image_are_filled_in() {
    let disk = image(65_536, &[(512, &gif("one")), (40_000, &gif("two"))]);
    let text = "# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\n\
                createType=\"monolithicFlat\"\nRW 128 FLAT \"d-flat.vmdk\" 0\n";
    let objects = vec![("d.vmdk", text.into()), ("d-flat.vmdk", disk.clone())];
    let server = Server::with(objects);
    let lab = Lab::with(disk);
    cache(&lab, &["fill", &server.url, "--cache", "c"]).is_clean();
    let listed = cache(&lab, &["list", "--cache", "c", "--format", "json"]);
    let listed = rows(listed.is_clean());
    assert_eq!(listed.len(), 2);
    for row in &listed {
        assert_eq!(row["held"], row["length"], "{row}");
    }
    let before = server.requests();
    for (source, folder) in [(&*server.url, "far"), ("f", "near")] {
        let args = ["carve", source, "-o", folder, "--offline", "--cache", "c"];
        run(lab.command(args), b"").is_clean();
    }
    assert_eq!(server.requests(), before);
    let names = |folder| tree(&lab.path(folder)).into_keys().collect::<Vec<_>>();
    assert_eq!(names("far"), names("near"));
}

#[test]
fn uncached_data_is_reported_offline() {
    let server = Server::well(object());
    let lab = Lab::new();
    let offline = |args: &[&str]| {
        lab.search([&["needle", "--offline", "--cache", "c", &server.url], args].concat())
    };
    offline(&[]).refuses(&["not in the cache", "cache fill"]);
    lab.search(["needle", "--cache", "c", &server.url, "--range", "0..2K"]);
    let before = server.requests();
    let ran = offline(&["--format", "csv"]);
    assert_eq!((ran.code, server.requests()), (Some(3), before), "{ran:?}");
    assert!(ran.stderr.contains("could not be read"), "{ran:?}");
    assert_eq!(ran.lines().len(), 3, "two of the three words lie in what was fetched");
}

#[test]
fn objects_are_listed_verified_and_cleared() {
    let (one, two) = (Server::well(object()), Server::well(object()));
    let lab = Lab::new();
    assert_eq!(cache(&lab, &["list", "--cache", "c"]).code, Some(1));
    cache(&lab, &["fill", &one.url, &two.url, "--cache", "c"]).is_clean();
    let ran = cache(&lab, &["list", "--cache", "c"]);
    assert!(ran.is_clean().lines()[0].contains("of "), "{}", ran.text());
    assert_eq!(cache(&lab, &["verify", "--cache", "c"]).is_clean().lines().len(), 2);
    let ran = cache(&lab, &["verify", &one.url, "--cache", "c", "--format", "json"]);
    assert_eq!(
        rows(ran.is_clean()),
        [serde_json::json!({
            "source": one.url, "length": 700_000, "verified": 700_000, "damaged": []
        })]
    );
    for entry in std::fs::read_dir(lab.path("c")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "data") {
            use std::os::unix::fs::FileExt;
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.write_all_at(b"damage", 300_000).unwrap();
        }
    }
    let ran = cache(&lab, &["verify", &one.url, "--cache", "c"]);
    ran.says(3, &[&one.url, "damaged"]);
    // The object is fetched again.
    cache(&lab, &["fill", &one.url, "--cache", "c"]).is_clean();
    assert_eq!(cache(&lab, &["clear", &one.url, "--cache", "c"]).is_clean().lines().len(), 1);
    assert_eq!(cache(&lab, &["clear", &one.url, "--cache", "c"]).code, Some(1));
    assert_eq!(cache(&lab, &["clear", "--cache", "c"]).is_clean().lines().len(), 1);
    assert_eq!(cache(&lab, &["list", "--cache", "c"]).code, Some(1));
    cache(&lab, &["fill", "f", "--cache", "c"]).says(2, &["f", "not remote"]);
}
