//! Buckets as sources.

use std::process::Command;

use crate::bucket::{Act, Buckets, SECRET};
use crate::harness::{Lab, Ran, noise, run};

fn ran(server: &Buckets, mut command: Command) -> Ran {
    command.envs(server.settings());
    run(command, b"")
}

fn search(server: &Buckets, lab: &Lab, args: &[&str]) -> Ran {
    ran(server, lab.search_command(args))
}

/// Noise with a word in it.
fn image(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = noise(length, seed);
    for at in (0..length - 6).step_by(1_009) {
        bytes[at..at + 6].copy_from_slice(b"needle");
    }
    bytes
}

/// A server with three images, and a lab with copies of them.
fn server_and_lab() -> (Buckets, Lab) {
    let (server, lab) = (Buckets::new(2), Lab::new());
    std::fs::create_dir_all(lab.path("case/more")).unwrap();
    for (seed, name) in ["case/a.dd", "case/b.dd", "case/more/c.dd"].iter().enumerate() {
        let bytes = image(30_000 + seed * 7, seed as u64);
        lab.put(name, &bytes);
        server.put("lab", name, bytes);
    }
    server.put("lab", "case/", "");
    (server, lab)
}

#[test]
fn a_listing_is_searched_like_a_folder() {
    let (server, lab) = server_and_lab();
    for name in ["case/", "case/*.dd", "case/**/*.dd"] {
        let local = lab.search(["needle", name]);
        let far = search(&server, &lab, &["needle", &format!("s3://lab/{name}")]);
        assert_eq!(
            far.is_clean().text(),
            local.is_clean().text().replace("case/", "s3://lab/case/")
        );
    }
    let one = search(&server, &lab, &["needle", "s3://lab/case/[b].dd", "-c"]);
    assert_eq!(one.is_clean().text(), lab.search(["needle", "case/b.dd", "-c"]).text());
    search(&server, &lab, &["needle", "s3://lab/*.E01"]).refuses(&["s3://lab/*.E01", "no object"]);
    server.plan(|_| Act::Status(403));
    let denied = search(&server, &lab, &["needle", "s3://lab/"]);
    denied.refuses(&["s3://lab/: ", "permission to list"]);
    assert!(!denied.stderr.contains(SECRET), "{denied:?}");
}
