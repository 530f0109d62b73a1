//! Sources of a search: files, standard input, parts of an image, several at once.

use std::fs::File;

use crate::harness::{Lab, Ran, noise, run, skip, works};
use crate::remote::Server;

#[test]
fn standard_input_gives_what_the_file_gives() {
    let mut bytes = noise(300_000, 1);
    for at in [0, 4095, 65_535, 131_070, 299_993] {
        bytes[at..at + 7].copy_from_slice(b"<token>");
    }
    let lab = Lab::with(&bytes);
    let patterns = ["-e", "<token>", "-x", "0? ?0", "-E", "[a-f]{2,9}", "--format", "json"];
    let from_file = lab.search(patterns.iter().chain(&["f"])).rows();
    assert!(from_file.len() > 100);
    for sized in [&[][..], &["--buffer-size", "64", "--workers", "3"], &["--buffers", "1"]] {
        let mut rows = lab.search_input(&bytes, patterns.iter().chain(sized).chain(&["-"])).rows();
        assert!(rows.iter().all(|row| row.source == "-"));
        rows.iter_mut().for_each(|row| row.source = "f".to_string());
        assert_eq!(rows, from_file, "{sized:?}");
    }
    // A file as standard input is a stream as well.
    let mut command = lab.search_command(["<token>", "-"]);
    command.stdin(File::open(lab.path("f")).unwrap());
    assert_eq!(run(command, b"").is_clean().lines().len(), 5);
}

#[test]
fn an_empty_source_holds_nothing() {
    let lab = Lab::with("");
    for access in ["auto", "window", "read", "queue", "uring"] {
        let ran = lab.search(["a", "f", "--access", access, "--stats", "s", "--report", "r.html"]);
        assert_eq!((ran.code, ran.text(), ran.stderr.as_str()), (Some(1), "", ""), "{access}");
    }
    assert_eq!(lab.search_input(b"", ["a", "-"]).is_clean().code, Some(1));
    let count = lab.search(["a", "f", "-c"]);
    assert_eq!((count.code, count.text().trim()), (Some(1), "0  a"));
    assert_eq!(lab.search(["-E", "$a|a", "f", "/dev/null/../null"]).code, Some(2));
}

#[test]
fn several_sources_come_one_after_the_other_and_are_counted_together() {
    let lab = Lab::with("abc");
    lab.put("g", "-");
    lab.put("h", "--abc");
    let ran = lab.search(["abc", "h", "f", "g"]);
    assert_eq!(ran.is_clean().text(), "h:2: abc: abc\nf:0: abc: abc\n");
    let count = lab.search(["abc", "h", "f", "g", "-c"]);
    assert_eq!(count.is_clean().text().split_whitespace().collect::<Vec<_>>(), ["2", "abc"]);
    let mixed = lab.search_input(b"abc", ["abc", "f", "-", "h"]);
    assert_eq!(mixed.is_clean().text(), "f:0: abc: abc\n-:0: abc: abc\nh:2: abc: abc\n");
}

#[test]
fn a_glob_that_the_shell_has_not_expanded_names_its_files() {
    let lab = Lab::new();
    for name in ["b.bin", "a.bin", "c.txt"] {
        lab.put(name, "abc");
    }
    let sources: Vec<_> = lab.find(["abc", "*.bin"]).into_iter().map(|row| row.source).collect();
    assert_eq!(sources, ["a.bin", "b.bin"]);
    // A file with exactly that name takes precedence over a glob.
    lab.put("[ab].bin", "-abc");
    assert_eq!(lab.offsets(["abc", "[ab].bin"]), [1]);
}

/// An image in three parts, with findings within parts and over their borders.
fn split(lab: &Lab) {
    let mut image = noise(30_000, 3);
    for at in [100, 9_997, 15_000, 19_996, 29_994] {
        image[at..at + 6].copy_from_slice(b"needle");
    }
    lab.put("joined", &image);
    lab.put("image.001", &image[..10_000]);
    lab.put("image.002", &image[10_000..20_000]);
    lab.put("image.003", &image[20_000..]);
}

#[test]
fn parts_of_an_image_at_a_url_are_searched_as_the_image() {
    let lab = Lab::new();
    split(&lab);
    let expected = lab.offsets(["needle", "joined"]);
    let names = ["an%20image.001", "an%20image.002", "an%20image.003"];
    let parts = names.map(|name| (name, std::fs::read(lab.path(&name[5..])).unwrap()));
    let server = Server::with(parts.to_vec());
    assert_eq!(lab.offsets(["needle", &server.url]), expected);
    assert_eq!(
        lab.offsets(["needle", &server.url, "--range", "9997..20002"]),
        [9_997, 15_000, 19_996]
    );
    // Without a second part, the first is the source; a later part is no first one.
    let server = Server::with(parts[..1].to_vec());
    assert_eq!(lab.offsets(["needle", &server.url]), [100]);
    let server = Server::with(parts[1..].to_vec());
    assert_eq!(lab.offsets(["needle", &server.url]), [5_000]);
}

#[test]
fn parts_of_an_image_are_searched_as_the_image() {
    let lab = Lab::new();
    split(&lab);
    let patterns = ["-e", "needle", "-x", "00 ?? 0?", "-E", "[a-z]{4,6}", "--format", "json"];
    let check = |ran: Ran, how: &str| {
        let mut rows = ran.rows();
        assert!(rows.iter().all(|row| row.source == "image.001"), "{how}");
        rows.iter_mut().for_each(|row| row.source = "joined".to_string());
        assert_eq!(rows, lab.search(patterns.iter().chain(&["joined"])).rows(), "{how}");
    };
    for sources in
        [&["image.001"][..], &["image.001", "image.002", "image.003"], &["image.*"], &["image.00?"]]
    {
        check(lab.search(patterns.iter().chain(sources)), &sources.join(" "));
    }
    for access in ["window", "read", "queue", "uring"] {
        for size in ["100", "4096", "16K"] {
            let sized = ["--access", access, "--buffer-size", size, "image.001"];
            check(lab.search(patterns.iter().chain(&sized)), &format!("{access} {size}"));
        }
    }
}

#[test]
fn a_range_of_an_image_may_cross_its_parts() {
    let lab = Lab::new();
    split(&lab);
    assert_eq!(
        lab.offsets(["needle", "image.001", "--range", "9997..20002"]),
        [9_997, 15_000, 19_996]
    );
    assert_eq!(lab.offsets(["needle", "image.001", "--range", "9998..20001"]), [15_000]);
}

#[test]
fn parts_end_at_the_first_gap_and_the_others_are_files_of_their_own() {
    let lab = Lab::new();
    for (name, bytes) in [("i.000", "ab"), ("i.001", "c"), ("i.003", "abc"), ("i.0001", "abc")] {
        lab.put(name, bytes);
    }
    let found = |args: &[&str]| -> Vec<_> {
        let rows = lab.find(args.iter());
        rows.into_iter().map(|row| (row.source, row.offset)).collect()
    };
    assert_eq!(found(&["abc", "i.000"]), [("i.000".to_string(), 0)]);
    assert_eq!(found(&["abc", "i.003"]), [("i.003".to_string(), 0)]);
    assert_eq!(found(&["abc", "i.000", "i.001", "i.003"]).len(), 2);
    // "abc" of 000 and 001, of 003 and of 0001, and nothing twice.
    let of_glob = [("i.000", 0), ("i.0001", 0), ("i.003", 0)];
    assert_eq!(found(&["abc", "i.*"]), of_glob.map(|(name, at)| (name.to_string(), at)));
}

#[test]
fn many_parts_are_searched_in_the_order_of_their_numbers() {
    let lab = Lab::new();
    let letters: Vec<u8> = (0..26).map(|n| b'a' + n).collect();
    for (number, letter) in letters.iter().enumerate() {
        lab.put(format!("i.{number:03}"), [*letter]);
    }
    assert_eq!(lab.offsets(["-e", "ij", "-e", "yz", "-e", "klmnopqrst", "i.000"]), [8, 10, 24]);
}

#[test]
fn an_empty_part_is_skipped() {
    let lab = Lab::new();
    for (name, bytes) in [("i.001", "ab"), ("i.002", ""), ("i.003", "cd")] {
        lab.put(name, bytes);
    }
    for access in ["auto", "window", "read", "queue", "uring"] {
        assert_eq!(lab.offsets(["-e", "bc", "-e", "d", "i.001", "--access", access]), [1, 3]);
    }
}

#[test]
fn a_file_without_a_length_does_not_count_as_empty() {
    let ran = Lab::new().search(["Name", "/proc/self/status"]);
    assert_ne!(ran.code, Some(1), "it says that nothing is there");
}

#[test]
fn a_named_pipe_is_read_in_order() {
    let lab = Lab::new();
    let pipe = lab.path("pipe");
    if !works("mkfifo", &[pipe.as_os_str()]) {
        return skip("there is no mkfifo");
    }
    let writer = std::thread::spawn(move || std::fs::write(pipe, "xxneedle").unwrap());
    let ran = lab.search(["needle", "pipe", "--format", "csv"]);
    writer.join().unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.text().contains("pipe,2,6,needle,"), "{ran:?}");
}
