//! `quarrier filter` over sparse files: holes are skipped, and the answer is that of the same bytes
//! without holes.

use std::fs;

use crate::harness::{Lab, run};

/// Longer than the maximum message, and than a chunk.
const HOLE_BYTES: u64 = 40 << 20;

fn fix(quantity: u32) -> String {
    let body = format!("35=D\u{1}38={quantity}\u{1}");
    let message = format!("8=FIX.4.4\u{1}9={}\u{1}{body}", body.len());
    let sum = message.bytes().map(u32::from).sum::<u32>() % 256;
    format!("{message}10={sum:03}\u{1}\n")
}

/// Messages of a format: at the start, after a hole, and after another one, which begins inside a
/// message and ends after the end of a line.
fn islands(format: &str) -> [String; 3] {
    let (first, message): (&str, fn(u32) -> String) = match format {
        "json" => ("", |a| format!("{{\"a\":{a}}}\n")),
        "csv" => ("a,b\n", |a| format!("{a},\"x\ny\"\n")),
        "xml" => ("<all>\n", |a| format!("<m><a>{a}</a></m>\n")),
        _ => ("", fix),
    };
    let some = |from: u32| (from..from + 2_000).map(message).collect::<String>();
    [
        format!("{first}{}{{\"a\": ", some(0)),
        format!("\n{}x,\"", some(2_000)),
        format!("\"\n{}", some(4_000)),
    ]
}

#[test]
fn holes_are_skipped_and_read_as_zeros() {
    for format in ["json", "csv", "fix", "xml"] {
        let lab = Lab::new();
        let islands = islands(format);
        let at = [0, HOLE_BYTES, 2 * HOLE_BYTES + 4096];
        let length = at[2] + islands[2].len() as u64;
        let placed: Vec<(u64, &[u8])> =
            at.into_iter().zip(&islands).map(|(at, island)| (at, island.as_bytes())).collect();
        fs::create_dir(lab.path("sparse")).unwrap();
        lab.put_sparse("sparse/m", length, &placed);
        let mut bytes = vec![0; length as usize];
        for (at, island) in placed {
            bytes[at as usize..][..island.len()].copy_from_slice(island);
        }
        fs::create_dir(lab.path("dense")).unwrap();
        lab.put("dense/m", bytes);
        let column = if format == "fix" { "OrderQty" } else { "a" };
        let condition = format!("{column} > 1000");
        for options in [&["-c"][..], &["--format", "json"], &["--columns", column]] {
            let answers = ["sparse", "dense"].map(|folder| {
                let mut command =
                    lab.command(["filter", &condition, "m", "--input-format", format]);
                command.args(options).args(["--workers", "3", "--rejects", "rejects"]);
                command.current_dir(lab.path(folder));
                let ran = run(command, b"");
                let rejects = fs::read(lab.path(folder).join("rejects")).unwrap();
                (ran.code, ran.stdout, ran.stderr, rejects)
            });
            assert_eq!(answers[0].0, Some(0), "{format} {options:?}: {}", answers[0].2);
            assert!(
                answers[0] == answers[1],
                "{format} {options:?}: {:?}",
                answers.map(|answer| answer.2)
            );
        }
    }
}
