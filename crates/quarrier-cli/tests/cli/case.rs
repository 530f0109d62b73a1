//! `case.json` of an output folder, and `quarrier verify`; known files, and the owners of carved ones.

use serde_json::Value;

use crate::carve::{carve, gif, tree};
use crate::carve_free::does;
use crate::harness::{Lab, Ran, run, skip};

fn quarrier(lab: &Lab, args: &[&str]) -> Ran {
    run(lab.command(args), b"")
}

/// A source with two pictures.
fn lab() -> Lab {
    let lab = Lab::new();
    let zeros = vec![0; 4096];
    lab.put("f", [&*zeros, &gif("first"), &zeros, &gif("second"), &zeros].concat());
    lab
}

fn case(lab: &Lab, folder: &str) -> Value {
    let text = std::fs::read_to_string(lab.path(format!("{folder}/case.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_case_file_has_the_hash_of_the_source_and_of_every_output() {
    let lab = lab();
    carve(&lab, &["f", "-o", "out"]).is_clean();
    let case = case(&lab, "out");
    use sha2::Digest;
    let hash = |bytes: &[u8]| {
        sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let source = std::fs::read(lab.path("f")).unwrap();
    assert_eq!(case["source"]["sha256"], hash(&source));
    assert_eq!(case["source"]["bytes"], source.len());
    let outputs = case["outputs"].as_array().unwrap();
    let files = tree(&lab.path("out"));
    assert_eq!(outputs.len(), files.len());
    for output in outputs {
        let bytes = &files[output["path"].as_str().unwrap()];
        assert_eq!(
            (&output["sha256"], &output["bytes"]),
            (&hash(bytes).into(), &bytes.len().into())
        );
    }
}

#[test]
fn two_runs_differ_in_the_clock_alone() {
    let lab = lab();
    carve(&lab, &["f", "-o", "one"]).is_clean();
    carve(&lab, &["f", "-o", "two"]).is_clean();
    let [mut one, mut two] = ["one", "two"].map(|folder| case(&lab, folder));
    for case in [&mut one, &mut two] {
        case["clock"] = Value::Null;
        // The command names the folder, and the seal covers the command.
        case["command"] = Value::Null;
        case["seal"] = Value::Null;
    }
    assert_eq!(one, two);
}

#[test]
fn a_changed_byte_anywhere_is_found() {
    let lab = lab();
    carve(&lab, &["f", "-o", "out"]).is_clean();
    assert_eq!(quarrier(&lab, &["verify", "out"]).is_clean().text(), "4 files: unchanged\n");
    let picture = "out/gif/000000001000.gif";
    for path in [picture, "out/report.jsonl", "out/report.dfxml", "out/case.json", "f"] {
        let before = std::fs::read(lab.path(path)).unwrap();
        let mut changed = before.clone();
        let at = match path {
            // Change a digit of the version, so that the file remains JSON.
            "out/case.json" => before.windows(2).position(|two| two == b"0.").unwrap(),
            _ => before.len() / 2,
        };
        changed[at] = if path.ends_with("case.json") { b'1' } else { changed[at] ^ 1 };
        std::fs::write(lab.path(path), changed).unwrap();
        let ran = quarrier(&lab, &["verify", "out"]);
        assert_eq!(ran.code, Some(1), "{path}: {ran:?}");
        assert!(ran.text().contains("was changed"), "{path}: {}", ran.text());
        std::fs::write(lab.path(path), before).unwrap();
    }
    std::fs::rename(lab.path(picture), lab.path("out/gif/other.gif")).unwrap();
    let ran = quarrier(&lab, &["verify", "out"]);
    assert_eq!((ran.code, ran.lines().len()), (Some(1), 2), "{ran:?}");
    std::fs::rename(lab.path("out/gif/other.gif"), lab.path(picture)).unwrap();
    std::fs::rename(lab.path("f"), lab.path("moved")).unwrap();
    assert_eq!(quarrier(&lab, &["verify", "out"]).code, Some(3));
    quarrier(&lab, &["verify", "out", "--source", "moved"]).is_clean();
}

#[test]
fn known_files_are_marked_or_left_out() {
    let lab = lab();
    use md5::Digest;
    let md5: String = md5::Md5::digest(gif("first")).iter().map(|b| format!("{b:02x}")).collect();
    lab.put("known", format!("{md5}  first.gif\n"));
    let ran = carve(&lab, &["f", "--dry-run", "--known", "known", "--format", "json"]);
    let known: Vec<Value> = ran
        .is_clean()
        .lines()
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["known"].clone())
        .collect();
    assert_eq!(known, [true, false]);
    carve(&lab, &["f", "-o", "out", "--known", "known", "--skip-known"]).is_clean();
    let pictures = tree(&lab.path("out"));
    let pictures: Vec<_> = pictures.keys().filter(|name| name.starts_with("gif/")).collect();
    assert_eq!(pictures.len(), 1);
    lab.put("none", "no hash\n");
    carve(&lab, &["f", "-o", "no", "--known", "none"]).refuses(&["none: has no MD5"]);
}

#[test]
fn carved_files_have_the_file_that_they_were() {
    let lab = Lab::new();
    lab.put_sparse("v", 16 << 20, &[]);
    std::fs::create_dir_all(lab.path("files/docs")).unwrap();
    lab.put("files/live.gif", gif(&"live".repeat(3000)));
    lab.put("files/docs/gone picture.gif", gif(&"gone".repeat(3000)));
    let mut made = does(&lab, "mkfs.vfat", &["-F", "16", "v"]);
    for name in ["files/live.gif", "files/docs"] {
        made = made && does(&lab, "mcopy", &["-s", "-i", "v", name, "::"]);
    }
    if !made || !does(&lab, "mdel", &["-i", "v", "::docs/gone picture.gif"]) {
        return skip("mkfs.vfat or mtools do not run");
    }
    let ran = carve(&lab, &["v", "--dry-run", "--where", "--format", "json"]);
    let rows: Vec<Value> =
        ran.is_clean().lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let file_and_state = |row: &Value| (row["file"].clone(), row["state"].clone());
    let expected = [("/live.gif", "allocated"), ("/docs/gone picture.gif", "deleted")];
    let expected = expected.map(|(file, state)| (Value::from(file), Value::from(state)));
    assert_eq!(rows.iter().map(file_and_state).collect::<Vec<_>>(), expected);
    assert!(rows.iter().all(|row| row["inode"].is_u64() && row["modified"].is_string()));
    let ran =
        quarrier(&lab, &["search", "gonegone", "v", "--where", "--format", "json", "-m", "1"]);
    let row: Value = serde_json::from_str(ran.is_clean().text()).unwrap();
    assert_eq!(file_and_state(&row), expected[1]);
    let ran = quarrier(&lab, &["search", "livelive", "v", "--where", "-m", "1"]);
    assert!(ran.is_clean().text().contains("livelive in /live.gif (allocated): "), "{ran:?}");
    carve(&lab, &["v", "-o", "out", "--where"]).is_clean();
    let report = &tree(&lab.path("out"))["report.jsonl"];
    let text = String::from_utf8(report.clone()).unwrap();
    assert!(text.contains("\"file\":\"/docs/gone picture.gif\""), "{text}");
}

#[test]
fn the_hashes_that_are_wanted_are_in_rows_and_verified() {
    let lab = lab();
    use md5::Digest;
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let md5 = |bytes: &[u8]| hex(&md5::Md5::digest(bytes));
    carve(&lab, &["f", "-o", "out", "--hash", "md5,sha1,sha256,blake3"]).is_clean();
    let report = &tree(&lab.path("out"))["report.jsonl"];
    let row: Value = serde_json::from_slice(report.split(|b| *b == b'\n').next().unwrap()).unwrap();
    let first = gif("first");
    assert_eq!(row["md5"], md5(&first));
    assert_eq!(
        (row["sha1"].as_str().unwrap().len(), row["blake3"].as_str().unwrap().len()),
        (40, 64)
    );
    let folder = case(&lab, "out");
    let source = std::fs::read(lab.path("f")).unwrap();
    assert_eq!(folder["source"]["md5"], md5(&source));
    for output in folder["outputs"].as_array().unwrap() {
        let bytes = std::fs::read(lab.path("out").join(output["path"].as_str().unwrap())).unwrap();
        assert_eq!(output["md5"], md5(&bytes));
        assert!(output["sha1"].is_string() && output["blake3"].is_string());
    }
    assert!(
        String::from_utf8_lossy(&tree(&lab.path("out"))["report.dfxml"])
            .contains(&format!("<hashdigest type=\"md5\">{}</hashdigest>", md5(&first)))
    );
    quarrier(&lab, &["verify", "out"]).is_clean();
    // A wrong hash is found although SHA-256 is right; the seal is computed again.
    let text = std::fs::read_to_string(lab.path("out/case.json")).unwrap();
    let blake3 = row["blake3"].as_str().unwrap();
    let wrong = text.replace(blake3, &"0".repeat(64));
    let end = wrong.rfind("\n\"seal\": ").unwrap() + 1;
    let seal = hex(&sha2::Sha256::digest(&wrong.as_bytes()[..end]));
    let wrong = format!("{}\"seal\": \"{seal}\"{}", &wrong[..end], &wrong[end + 8 + 66..]);
    std::fs::write(lab.path("out/case.json"), wrong).unwrap();
    let ran = quarrier(&lab, &["verify", "out"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.text().contains("was changed: its BLAKE3 is "), "{}", ran.text());
    assert_eq!(ran.lines().len(), 1, "{}", ran.text());
    carve(&lab, &["f", "--dry-run", "--hash", "sha512"]).refuses(&["sha512"]);
}
