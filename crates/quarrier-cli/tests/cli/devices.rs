//! Block devices, and reads that bypass the page cache.

use std::process::Command;

use crate::harness::{Lab, noise, skip, works};

/// A file as a block device, until it is dropped.
struct LoopDevice(String);

impl LoopDevice {
    fn of(lab: &Lab, name: &str) -> Option<Self> {
        let mut command = Command::new("losetup");
        let out = command.args(["--find", "--show"]).arg(lab.path(name)).output().ok()?;
        let device = String::from_utf8(out.stdout).ok()?.trim().to_string();
        (out.status.success() && !device.is_empty()).then_some(LoopDevice(device))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        works("losetup", &["--detach".as_ref(), self.0.as_ref()]);
    }
}

/// Bytes with `<needle>` at critical places: first, across pages, last.
fn image() -> (Vec<u8>, Vec<u64>) {
    let mut bytes = noise(2 << 20, 5);
    let places = [0, 4090, 512 * 777, 1 << 20, (2 << 20) - 8];
    for at in places {
        bytes[at..at + 8].copy_from_slice(b"<needle>");
    }
    (bytes, places.map(|at| at as u64).to_vec())
}

#[test]
fn a_block_device_is_searched_as_its_bytes() {
    let (bytes, places) = image();
    let lab = Lab::with(&bytes);
    let Some(device) = LoopDevice::of(&lab, "f") else {
        return skip("no loop device can be set up here");
    };
    let path = device.0.as_str();
    for access in ["auto", "window", "read", "queue", "uring"] {
        let args = ["<needle>", path, "--access", access];
        let mut ran = lab.search(args.iter().chain(&["--format", "json"]));
        if access == "window" && ran.code == Some(2) {
            // Pages of a device cannot always be mapped.
            ran.says(2, &[path]);
            ran = lab.search(["<needle>", path, "--format", "json"]);
        }
        let rows = ran.rows();
        assert!(rows.iter().all(|row| row.source == path), "{access}");
        assert_eq!(rows.iter().map(|row| row.offset).collect::<Vec<_>>(), places, "{access}");
    }
    assert_eq!(lab.offsets(["<needle>", path, "--direct"]), places);
    assert_eq!(lab.offsets(["<needle>", path, "--range", "1M.."]), places[3..]);
    assert_eq!(lab.offsets(["<needle>", path, "--aligned", "512"]), [0, 512 * 777, 1 << 20]);
    assert_eq!(lab.search(["<needle>", path, "--stats", "s"]).is_clean().code, Some(0));
    let stats = std::fs::read(lab.path("s")).unwrap();
    let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
    assert_eq!(stats["bytes"], bytes.len());
}

#[test]
fn reading_past_the_page_cache_finds_the_same() {
    let (bytes, places) = image();
    let lab = Lab::with(&bytes);
    // Lengths that no device has: an odd number of bytes, less than a page.
    lab.put("odd", &bytes[..1_000_001]);
    lab.put("small", b"--<needle>");
    let ran = lab.search(["<needle>", "f", "--direct"]);
    if ran.code == Some(2) {
        ran.refuses(&["f: cannot open without the page cache"]);
        return skip("the file system of the temporary folder has no O_DIRECT");
    }
    let direct = |args: &[&str]| lab.offsets(["--direct", "<needle>"].iter().chain(args));
    for access in ["auto", "window", "read", "queue", "uring"] {
        for size in ["auto", "1000", "4096", "100K"] {
            let sized = ["--access", access, "--buffer-size", size];
            if lab.search([&["<needle>", "small", "--direct"][..], &sized].concat()).code == Some(2)
            {
                assert_eq!(access, "window", "only windows show pages of the cache");
                continue;
            }
            let check = |source: &str, expected: &[u64]| {
                let args = [&[source][..], &sized].concat();
                assert_eq!(direct(&args), expected, "{source} {access} {size}");
            };
            check("f", &places);
            check("odd", &places[..3]);
            check("small", &[2]);
        }
    }
    assert_eq!(direct(&["f", "--range", "4090..398000"]), places[1..3]);
}

#[test]
fn all_parts_of_an_image_are_read_past_the_page_cache() {
    let (bytes, places) = image();
    let lab = Lab::new();
    lab.put("i.001", &bytes[..4093]);
    lab.put("i.002", &bytes[4093..1_000_003]);
    lab.put("i.003", &bytes[1_000_003..]);
    let ran = lab.search(["<needle>", "i.001", "--direct"]);
    if ran.code == Some(2) {
        return skip("the file system of the temporary folder has no O_DIRECT");
    }
    assert_eq!(lab.offsets(["<needle>", "--direct", "i.001"]), places);
    assert_eq!(lab.offsets(["<needle>", "--direct", "i.001", "i.002", "i.003"]), places);
    assert_eq!(lab.offsets(["<needle>", "--direct", "i.*"]), places);
}
