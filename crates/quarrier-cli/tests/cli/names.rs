//! Names of sources that are not UTF-8: different ones stay different, and lead back to their files.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::carve::gif;
use crate::carve_free::does;
use crate::ewf::ewf;
use crate::harness::{Lab, Ran, noise, run, skip};

/// Runs `quarrier ARGS…`, with arguments in bytes.
fn quarrier(lab: &Lab, args: &[&[u8]]) -> Ran {
    run(lab.command(args.iter().map(|arg| OsStr::from_bytes(arg))), b"")
}

fn put(lab: &Lab, name: &[u8], bytes: impl AsRef<[u8]>) {
    let path = lab.path(OsStr::from_bytes(name));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// The members `key` of rows in JSON.
#[track_caller]
fn members(ran: &Ran, key: &str) -> Vec<String> {
    let member = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row[key].as_str().unwrap().to_string()
    };
    ran.is_clean().lines().into_iter().map(member).collect()
}

#[test]
fn rows_have_a_name_of_their_own_that_finds_the_file() {
    let lab = Lab::new();
    let odd: [(&[u8], &str); 3] =
        [(b"d/a\xfe", r"d/a\xfe"), (b"d/a\xff", r"d/a\xff"), (b"d/\xe9t\xe9/b", r"d/\xe9t\xe9/b")];
    for (name, _) in odd {
        put(&lab, name, "a needle");
    }
    put(&lab, "d/é".as_bytes(), "a needle");
    let below = [r"d/a\xfe", r"d/a\xff", "d/é", r"d/\xe9t\xe9/b"];
    for place in [&b"d"[..], b"d/**/*", b"d/a?"] {
        let ran = quarrier(&lab, &[b"search", b"needle", place, b"--format", b"json"]);
        let expected = if place == b"d/a?" { &below[..2] } else { &below[..] };
        let mut found = members(&ran, "source");
        found.sort();
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(found, expected, "{}", place.escape_ascii());
    }
    let text = quarrier(&lab, &[b"search", b"needle", b"d", b"-l"]);
    let mut lines = text.is_clean().lines();
    lines.sort();
    let mut sorted = below.to_vec();
    sorted.sort();
    assert_eq!(lines, sorted);
    for (name, shown) in odd {
        // By its bytes, as it is printed, and from a list.
        for given in [name, shown.as_bytes()] {
            let csv = quarrier(&lab, &[b"search", b"needle", given, b"--format", b"csv"]);
            assert!(csv.is_clean().text().contains(&format!("\n{shown},2,6,needle,")), "{csv:?}");
            let rows = lab.search_input(given, ["needle", "--files-from", "-", "--format", "json"]);
            assert_eq!(members(&rows, "source"), [shown]);
        }
    }
    let missing = quarrier(&lab, &[b"search", b"needle", b"d/\xfd", br"d/\xfc"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains(r"d/\xfd: ") && missing.stderr.contains(r"d/\xfc: "));
}

#[test]
fn a_file_that_is_literally_called_so_comes_first() {
    let lab = Lab::new();
    put(&lab, br"dev-disk\x2dby\xff", "one needle");
    put(&lab, b"dev-disk\\x2dby\xff", "needle");
    let offsets = || lab.offsets(["needle", r"dev-disk\x2dby\xff"]);
    assert_eq!(offsets(), [4]);
    fs::remove_file(lab.path(r"dev-disk\x2dby\xff")).unwrap();
    assert_eq!(offsets(), [0]);
    assert_eq!(lab.search(["needle", "dev-disk-by"]).code, Some(2));
}

#[test]
fn a_case_is_verified_against_sources_with_such_names() {
    let lab = Lab::new();
    let names: [&[u8]; 2] = [b"d/a\xfe.img", b"d/a\xff.img"];
    for (name, words) in names.iter().zip(["first", "second"]) {
        put(&lab, name, [&gif(words)[..], &[0; 4096]].concat());
    }
    quarrier(&lab, &[b"carve", names[0], b"-o", b"one"]).is_clean();
    quarrier(&lab, &[b"carve", b"d", b"-o", b"all"]).is_clean();
    let case = |folder: &str| -> Value {
        serde_json::from_slice(&fs::read(lab.path(folder).join("case.json")).unwrap()).unwrap()
    };
    assert_eq!(case("one")["source"]["name"], r"d/a\xfe.img");
    assert!(case("one")["command"].as_str().unwrap().ends_with(r"carve d/a\xfe.img -o one"));
    let sources = case("all")["sources"].clone();
    let sources: Vec<&str> =
        sources.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(sources, [r"d/a\xfe.img", r"d/a\xff.img"]);
    for folder in ["one", "all"] {
        quarrier(&lab, &[b"verify", folder.as_bytes()]).is_clean();
    }
    let path = lab.path(OsStr::from_bytes(names[0]));
    let mut bytes = fs::read(&path).unwrap();
    bytes[3000] ^= 1;
    fs::write(&path, bytes).unwrap();
    for folder in ["one", "all"] {
        let ran = quarrier(&lab, &[b"verify", folder.as_bytes()]);
        assert_eq!((ran.code, ran.lines().len()), (Some(1), 1), "{ran:?}");
        assert!(ran.text().starts_with(r"d/a\xfe.img: was changed: its SHA-256 is"), "{ran:?}");
    }
    let inside = quarrier(&lab, &[b"carve", b"d", b"-o", b"d/\xfd"]);
    inside.refuses(&[r"d/\xfd: is in d"]);
}

#[test]
fn parts_of_images_are_found_beside_the_first() {
    let lab = Lab::new();
    let mut media = noise(20 * 32768, 5);
    media[300_000..300_006].copy_from_slice(b"needle");
    for (index, segment) in ewf(&media, 4).iter().enumerate() {
        let name = [b"e\xff.E", format!("{:02}", index + 1).as_bytes()].concat();
        put(&lab, &name, segment);
    }
    put(&lab, b"s\xff.001", &media[..300_003]);
    put(&lab, b"s\xff.002", &media[300_003..]);
    for name in [&b"e\xff.E01"[..], br"e\xff.E01", b"s\xff.001", br"s\xff.001", b"e\xff.E*"] {
        let ran = quarrier(&lab, &[b"search", b"needle", name, b"--format", b"json"]);
        let rows = ran.rows();
        assert_eq!(rows.iter().map(|row| row.offset).collect::<Vec<_>>(), [300_000]);
        assert!(matches!(&*rows[0].source, r"e\xff.E01" | r"s\xff.001"), "{rows:?}");
    }
    let mut disk = vec![0; 2048];
    disk[446..462].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0]);
    disk[510..512].copy_from_slice(&[0x55, 0xAA]);
    disk[1000..1006].copy_from_slice(b"needle");
    put(&lab, b"p\xff", disk);
    for name in [&b"p\xff#1"[..], br"p\xff#1"] {
        let rows = quarrier(&lab, &[b"search", b"needle", name, b"--format", b"json"]).rows();
        assert_eq!((rows[0].offset, &*rows[0].source), (488, r"p\xff#1"));
    }
    quarrier(&lab, &[b"carve", b"e\xff.E01", b"--verify", b"-o", b"out"]);
    quarrier(&lab, &[b"verify", b"out"]).is_clean();
    fs::remove_file(lab.path(OsStr::from_bytes(b"e\xff.E03"))).unwrap();
    let ran = quarrier(&lab, &[b"search", b"needle", b"e\xff.E01"]);
    assert!(ran.stderr.contains(r"e\xff.E01: "), "{ran:?}");
}

#[test]
fn files_beside_a_disk_are_found_by_the_bytes_in_it() {
    let lab = Lab::new();
    put(&lab, b"disk\xff-flat.vmdk", [&[0; 1000][..], b"needle", &[0; 18]].concat());
    let descriptor = b"# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\n\
        createType=\"monolithicFlat\"\nRW 2 FLAT \"disk\xff-flat.vmdk\" 0\n";
    put(&lab, b"disk\xff.vmdk", descriptor);
    let ran = quarrier(&lab, &[b"search", b"needle", b"disk\xff.vmdk", b"--format", b"json"]);
    assert_eq!(ran.rows().iter().map(|row| row.offset).collect::<Vec<_>>(), [1000]);
    fs::remove_file(lab.path(OsStr::from_bytes(b"disk\xff-flat.vmdk"))).unwrap();
    let ran = quarrier(&lab, &[b"search", b"needle", b"disk\xff.vmdk"]);
    ran.refuses(&[r"disk\xff.vmdk: needs its extent 'disk\xff-flat.vmdk'"]);
}

#[test]
fn messages_and_files_are_read_from_sources_with_such_names() {
    let lab = Lab::new();
    for (name, n) in [(b"m/\xfe", 1), (b"m/\xff", 2)] {
        put(&lab, name, format!("{{\"n\":{n}}}\n{{\"n\":\n"));
    }
    let ran = quarrier(&lab, &[b"filter", b"n > 0", b"m"]);
    assert_eq!(ran.lines(), ["{\"n\":1}", "{\"n\":2}"]);
    assert!(ran.stderr.contains(r"m/\xfe: ") && ran.stderr.contains(r"m/\xff: "), "{ran:?}");
    assert_eq!(quarrier(&lab, &[b"filter", b"n > 1", b"m/\xff"]).lines(), ["{\"n\":2}"]);
    lab.put_sparse("f", 16 << 20, &[]);
    lab.put("a.txt", "needle");
    if !does(&lab, "mkfs.vfat", &["-F", "16", "f"])
        || !does(&lab, "mcopy", &["-i", "f", "a.txt", "::"])
    {
        return skip("mkfs.vfat or mtools do not run");
    }
    fs::rename(lab.path("f"), lab.path(OsStr::from_bytes(b"f\xff"))).unwrap();
    for name in [&b"f\xff"[..], br"f\xff"] {
        let ran = quarrier(&lab, &[b"files", name, b"*.txt", b"--format", b"json"]);
        assert_eq!(members(&ran, "path"), ["/a.txt"]);
    }
    let ran = quarrier(
        &lab,
        &[b"files", b"f\xff", b"--extract", b"-o", b"out", b"--hash", b"md5", b"--format", b"json"],
    );
    assert!(ran.text().contains("4bf84babe76dabda6c4da4d25354704d"), "{ran:?}");
    quarrier(&lab, &[b"verify", b"out"]).is_clean();
}
