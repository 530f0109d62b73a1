//! `--device`: the same findings on any device.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Lab, noise, run};

/// Whether an OpenCL driver is installed: then a device must be found.
fn has_driver() -> bool {
    std::fs::read_dir("/etc/OpenCL/vendors").is_ok_and(|mut entries| entries.next().is_some())
}

/// A command that finds no loader: files that are not libraries replace all of them.
fn without_loader(lab: &Lab, mut command: Command) -> Command {
    for name in ["libOpenCL.so", "libOpenCL.so.1", "libcuda.so", "libcuda.so.1", "libnvrtc.so"] {
        lab.put(name, "not a library");
    }
    command.env("LD_LIBRARY_PATH", lab.path("."));
    command
}

#[test]
fn without_a_loader_a_device_is_refused_in_one_line_and_all_else_works() {
    let lab = Lab::with("a needle");
    for device in ["gpu", "gpu:0", "gpu:1", "all"] {
        let command = lab.search_command(["--device", device, "needle", "f"]);
        let ran = run(without_loader(&lab, command), b"");
        assert_eq!(ran.code, Some(2), "{device}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("no GPU") && ran.stderr.contains("--device cpu"));
        assert!(ran.stdout.is_empty());
    }
    for device in ["auto", "cpu"] {
        let command = lab.search_command(["--device", device, "needle", "f"]);
        let ran = run(without_loader(&lab, command), b"");
        assert_eq!((ran.code, ran.lines().len()), (Some(0), 1), "{}", ran.stderr);
    }
}

#[test]
fn without_a_loader_the_gauge_says_so_in_one_line() {
    let lab = Lab::new();
    let ran = run(without_loader(&lab, lab.command(["gauge", "gpu", "--quick", "--quiet"])), b"");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("no GPU device"), "{}", ran.stderr);
}

#[test]
fn without_a_platform_there_is_no_device() {
    let lab = Lab::with("a needle");
    let mut command = lab.search_command(["--device", "gpu", "needle", "f"]);
    command.env("OCL_ICD_VENDORS", lab.path("nowhere")).env("OPENCL_VENDOR_PATH", lab.path("."));
    let ran = run(without_cuda(command, &lab), b"");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("no GPU"), "{}", ran.stderr);
}

fn without_cuda(mut command: Command, lab: &Lab) -> Command {
    lab.put("libcuda.so", "not a library");
    lab.put("libcuda.so.1", "not a library");
    command.env("LD_LIBRARY_PATH", lab.path("."));
    command
}

/// Noise with needles, some of them across the borders of chunks.
fn bytes() -> Vec<u8> {
    let mut bytes = noise(700_000, 5);
    for border in [0, 65_536, 131_072, 300_000, 699_990] {
        for shift in [0i64, 3, 9] {
            let at = (border as i64 - shift).max(0) as usize;
            bytes[at..at + 10].copy_from_slice(b"<Needle42>");
        }
    }
    bytes[400_000..420_000].fill(0);
    bytes
}

const PATTERNS: [&str; 12] = [
    "-e",
    "<Needle42>",
    "-e",
    "4",
    "-x",
    "3C 4E ?? 65",
    "-x",
    "?0 00 41",
    "-x",
    "00 00 00 00 00 00 00 7?",
    "-E",
    "N[a-z]+[0-9]{1,3}",
];

#[test]
fn findings_do_not_depend_on_the_device() {
    if !has_driver() {
        let ran = Lab::with("abc").search(["--device", "gpu", "b", "f"]);
        return assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    }
    let lab = Lab::with(bytes());
    let find = |options: &str| {
        lab.find(PATTERNS.iter().copied().chain(options.split_whitespace()).chain(["f"]))
    };
    let expected = find("--device cpu");
    assert!(expected.len() > 1000);
    for options in [
        "--device gpu",
        "--device gpu:0 --buffers 1",
        "--device gpu --buffers 4 --buffer-size 64K",
        "--device gpu --access window",
        "--device gpu --readers 2",
        "--device all --workers 1 --buffer-size 20000",
    ] {
        assert!(find(options) == expected, "{options}");
    }
    let piped: Vec<&str> = PATTERNS.iter().copied().chain(["--device", "gpu", "-c", "-"]).collect();
    let counted = lab.search_input(&bytes(), piped);
    let from_file = lab.search(PATTERNS.iter().copied().chain(["-c", "f"]));
    assert_eq!(counted.text(), from_file.text());
}

#[test]
fn the_account_names_the_device_and_what_it_did() {
    if !has_driver() {
        return assert_eq!(quarrier_gpu::find().len(), 0);
    }
    let lab = Lab::with(bytes());
    let options =
        ["--device", "gpu", "--buffers", "3", "--stats", "stats", "--report", "report.html"];
    let ran = lab.search(options.into_iter().chain(["-e", "<Needle42>", "-c", "f"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = std::fs::read(lab.path("stats")).unwrap();
    let stats: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(stats["device"], "gpu:0");
    assert_eq!(stats["engine"], "gpu-gram");
    assert_eq!(stats["buffers"], 3);
    assert!(stats["device_names"][0].as_str().is_some_and(|name| !name.is_empty()));
    for stage in ["copy", "kernel", "collect"] {
        assert!(stats["stages"][stage]["busy_seconds"].is_number(), "{stats}");
    }
    let page = std::fs::read_to_string(lab.path("report.html")).unwrap();
    for word in ["slot 1", "slot 3", "kernel", "collect"] {
        assert!(page.contains(word), "no {word} in the report");
    }
}
