//! Sparse files: holes are zeros that need no reads.

use crate::harness::{Lab, run};

fn stats(lab: &Lab) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(lab.path("stats")).unwrap()).unwrap()
}

#[test]
fn a_huge_file_of_holes_is_skipped_in_seconds_and_little_memory() {
    const LENGTH: u64 = 100 << 30;
    let lab = Lab::new();
    let (near, far) = (12_345_678_901, (99 << 30) + 4093);
    lab.put_sparse("f", LENGTH, &[(near, b"<needle>"), (far, b"<needle>"), (LENGTH - 3, b"end")]);
    for access in ["auto", "window", "read", "queue", "uring"] {
        let quarrier = env!("CARGO_BIN_EXE_quarrier");
        // The shell's limit proves that memory is bounded: 1 GiB of addresses, 1 % of the file.
        let script = format!(
            "ulimit -v 1048576 && exec '{quarrier}' search -e '<needle>' -e end f --workers 2 \
             --format json --stats stats --access {access}"
        );
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).current_dir(lab.path(""));
        let rows = run(command, b"").rows();
        let offsets: Vec<_> = rows.iter().map(|row| row.offset).collect();
        assert_eq!(offsets, [near, far, LENGTH - 3], "{access}");
        let stats = stats(&lab);
        assert_eq!(stats["bytes"], LENGTH, "{access}");
        assert!(stats["hole_bytes"].as_u64().unwrap() > 99 << 30, "{access}");
    }
}

#[test]
fn zeros_in_holes_are_found_where_a_pattern_asks_for_them() {
    let lab = Lab::new();
    lab.put_sparse("f", 1 << 20, &[]);
    for access in ["window", "read", "queue", "uring"] {
        for (pattern, found) in
            [("00 00 00 00", (1 << 20) - 3), ("00", 1 << 20), ("0? ??", (1 << 20) - 1)]
        {
            let ran = lab.search(["-c", "-x", pattern, "f", "--access", access]);
            let count: u64 =
                ran.is_clean().text().split_whitespace().next().unwrap().parse().unwrap();
            assert_eq!(count, found, "{pattern} {access}");
        }
    }
}

#[test]
fn matches_that_reach_into_a_hole_are_found_on_both_sides() {
    let lab = Lab::new();
    let islands: [(u64, &[u8]); 3] = [(0, b"\x01"), (150_000, b"\x02\x03"), (299_999, b"\x04")];
    lab.put_sparse("sparse", 300_000, &islands);
    let mut bytes = vec![0; 300_000];
    for (offset, island) in islands {
        bytes[offset as usize..][..island.len()].copy_from_slice(island);
    }
    // Written in full, so that there are no holes.
    lab.put("dense", &bytes);
    let args = [
        ["-x", "01 00 00 00"],
        ["-x", "00 00 02"],
        ["-x", "03 00 00 00 00 00"],
        ["-x", "00 00 04"],
        ["-E", r"\x03\x00{3000}"],
        ["-E", r"\x00{3000}\x04"],
        ["-E", r"(?s)\x01.{2000}"],
        ["-E", r"[\x01-\x04]+\x00"],
    ]
    .concat();
    let dense = lab.find(args.iter().chain(&["dense"]));
    assert_eq!(dense.len(), 9);
    for access in ["window", "read", "queue", "uring"] {
        for size in ["4096", "auto"] {
            let sized = ["--access", access, "--buffer-size", size, "sparse"];
            let mut rows = lab.find(args.iter().chain(&sized));
            rows.iter_mut().for_each(|row| row.source = "dense".to_string());
            assert_eq!(rows, dense, "{access} {size}");
        }
    }
}

#[test]
fn context_around_a_finding_in_holes_is_zeros() {
    let lab = Lab::new();
    lab.put_sparse("f", 1 << 30, &[(500_000_000, b"x")]);
    let row = &lab.find(["x", "f", "--context", "10000"])[0];
    let zeros = "00".repeat(10_000);
    assert_eq!(row.before_hex.as_deref(), Some(zeros.as_str()));
    assert_eq!(row.after_hex.as_deref(), Some(zeros.as_str()));
}

#[test]
fn a_range_within_a_hole_is_searched_as_zeros() {
    let lab = Lab::new();
    lab.put_sparse("f", 1 << 40, &[(1 << 39, b"x")]);
    let range = ["--range", "256G..0x4000000010"];
    assert_eq!(lab.offsets(["-x", "00 00 00", "f"].iter().chain(&range)).len(), 14);
    assert_eq!(lab.search(["x", "f", "--range", "600G.."]).is_clean().code, Some(1));
    assert_eq!(lab.offsets(["x", "f"]), [1 << 39]);
}

#[test]
fn anchors_match_at_the_ends_of_a_file_that_are_holes() {
    let lab = Lab::new();
    lab.put_sparse("sparse", 10_000, &[(5000, b"x")]);
    assert_eq!(lab.offsets(["-E", r"^\x00", "-E", r"\x00$", "sparse"]), [0, 9999]);
}
