//! ISO 9660.

use quarrier_files::{Entry, Kind};

use super::lab::{Lab, access_of, content, entries, named, noise, skip};

fn disc(options: &[&str]) -> Option<(Lab, Vec<Entry>)> {
    let lab = Lab::new(0);
    std::os::unix::fs::symlink("../docs/deep", lab.path("files/link")).unwrap();
    let deep = "files/1/2/3/4/5/6/7/8/9/10/leaf";
    lab.put(deep, b"deep");
    let args = [&["-quiet", "-o", "image"], options, &["files"]].concat();
    if !lab.does("genisoimage", &args) {
        skip("genisoimage does not run");
        return None;
    }
    let entries = entries(&lab.source());
    Some((lab, entries))
}

#[test]
fn names_of_rock_ridge_are_listed() {
    let Some((lab, entries)) = disc(&["-R", "-J", "-D"]) else { return };
    let source = lab.source();
    for (name, bytes) in [
        ("docs/A long name, with Ümläüten and spaces - and so on.dat", 5_000),
        ("docs/deep/deeper/leaf.txt", 700),
        ("random.bin", 100_000),
        ("empty", 0),
    ] {
        let entry = named(&entries, &format!("/{name}"));
        assert!(content(&source, entry) == noise(name, bytes), "{name}");
        let metadata = std::fs::metadata(lab.path("files").join(name)).unwrap();
        // By `-R` the disc keeps the owners.
        assert_eq!(entry.access, access_of(&metadata), "{name}");
        let modified = metadata.modified().unwrap();
        let seconds = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert_eq!(entry.times.modified.unwrap() / 1_000_000_000, seconds.cast_signed());
    }
    let link = named(&entries, "/link");
    assert_eq!((link.kind, content(&source, link)), (Kind::Link, b"../docs/deep".to_vec()));
    assert_eq!(content(&source, named(&entries, "/1/2/3/4/5/6/7/8/9/10/leaf")), b"deep");
}

#[test]
fn files_that_only_other_names_have_follow() {
    let hidden = ["-R", "-J", "-D", "-hide", "random.bin", "-hide-joliet", "empty"];
    let Some((lab, all)) = disc(&hidden) else { return };
    assert!(!all.iter().any(|entry| entry.path == "/random.bin"));
    let entry = named(&all, "/$OrphanFiles/random.bin");
    assert!(content(&lab.source(), entry) == noise("random.bin", 100_000));
    let orphans = all.iter().filter(|entry| entry.path.starts_with("/$OrphanFiles"));
    assert_eq!(orphans.count(), 1);
    named(&all, "/empty");
}

#[test]
fn folders_that_were_moved_are_where_they_belong() {
    let Some((lab, entries)) = disc(&["-R"]) else { return };
    let leaf = named(&entries, "/1/2/3/4/5/6/7/8/9/10/leaf");
    assert_eq!(content(&lab.source(), leaf), b"deep");
}

#[test]
fn names_of_joliet_are_listed() {
    let Some((lab, entries)) = disc(&["-J", "-joliet-long", "-D", "-input-charset", "utf-8"])
    else {
        return;
    };
    let name = "docs/A long name, with Ümläüten and spaces - and so on.dat";
    let entry = named(&entries, &format!("/{name}"));
    assert!(content(&lab.source(), entry) == noise(name, 5_000));
}

#[test]
fn plain_names_are_listed() {
    let Some((lab, entries)) = disc(&["-D"]) else { return };
    assert!(content(&lab.source(), named(&entries, "/RANDOM.BIN")) == noise("random.bin", 100_000));
    assert_eq!(content(&lab.source(), named(&entries, "/A.TXT")), noise("a.txt", 6));
}
