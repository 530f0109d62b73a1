//! Runs kernels in a simulator that reports races and accesses outside buffers.
//!
//! The simulator replaces the drivers in a separate process, which runs this program again with the
//! two tests below by name. There is only one slot, because the simulator runs one kernel at a
//! time.

use std::path::Path;
use std::process::Command;

use quarrier_gpu::{Job, Parameter, Program, Signature};

use super::engines::noise;
use super::gpu::{Cut, READ, device, found_by, searcher};
use super::oracle::{OraclePattern, all};

const SIMULATOR: &str = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";

/// All classes, needles that extend past the end, and more findings than fit at first.
#[test]
fn a_small_corpus_on_one_slot() {
    let Some(device) = device() else { return };
    let literals: [&[u8]; 6] = [b"needle", b"abc", b"ab", b"\0\0\0\0", b"needles and pins", b"x"];
    let mut patterns: Vec<OraclePattern> =
        literals.into_iter().map(OraclePattern::literal).collect();
    patterns.push(OraclePattern { bytes: vec![(b'a', 0xDF), (0, 0), (b'b', 0xFF), (b'c', 0xFF)] });
    let mut text: Vec<u8> = noise(17).take(3_001).collect();
    for (at, pattern) in (100..).step_by(233).zip(&literals) {
        text[at..at + pattern.len()].copy_from_slice(pattern);
    }
    text.extend_from_slice(&[0; 1_500]);
    text.extend_from_slice(b"abcab a.bc needles and pin");
    let (searcher, expected) = (searcher(&patterns), all(&patterns, &text));
    for buffer_bytes in [1_000, 4_096] {
        let cut = Cut { slots: 1, buffer_bytes, ..READ };
        assert_eq!(found_by(device, &searcher, &text, cut), expected, "{cut:?}");
    }
}

/// All work items of a group write the same word, which the simulator must report.
const RACING: Program = Program {
    name: "racing",
    text: "KERNEL(race) { out[0] = LID; }",
    kernels: &[Signature { name: "race", parameters: &[Parameter::Out("out", "u32")] }],
};

#[test]
fn a_kernel_that_races() {
    let Some(device) = device() else { return };
    let kernels = device.compile(&RACING, &[]).unwrap();
    let (mut queue, out) = (device.queue().unwrap(), device.buffer(4).unwrap());
    let mut last = [0; 4];
    let mut job = Job::new();
    let bound = kernels[0].bind().buffer("out", &out).unwrap();
    // SAFETY: the kernel writes only the one word that `out` has, and reads nothing.
    unsafe { job.launch(&kernels[0], bound, 1, 4) };
    job.read(&out, &mut last);
    queue.run(job).unwrap();
    assert!(u32::from_ne_bytes(last) < 4);
}

/// The simulator's report while it runs a test of this program.
fn watched(test: &str) -> String {
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env("OCL_ICD_VENDORS", SIMULATOR)
        .env("OCLGRIND_DATA_RACES", "1")
        .output()
        .unwrap();
    let output = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let output = output.join("\n");
    assert!(ran.status.success() && output.contains("1 passed"), "{output}");
    output
}

#[test]
fn the_search_kernel_neither_races_nor_reads_outside_of_its_buffers() {
    if !Path::new(SIMULATOR).exists() {
        return;
    }
    let complaints = ["race", "Invalid", "Uninitialized", "divergence"];
    // The test's own name contains the word: look only at the rest.
    let race = watched("gpu_watched::a_kernel_that_races").replace("a_kernel_that_races", "");
    assert!(race.contains("race"), "the simulator does not watch: {race}");
    let search = watched("gpu_watched::a_small_corpus_on_one_slot");
    for complaint in complaints {
        assert!(!search.contains(complaint), "{search}");
    }
}
