//! `--rules`: matches of YARA rules.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::carve_free::does;
use crate::harness::{Lab, Ran, drain, run, send, skip, until_it_handles_interrupts, wait};

const RULES: &str = r#"
    rule invoice : money paper { strings: $a = "invoice" nocase $w = "total" wide condition: any of them }
    rule small { condition: filesize < 100 }
    private rule secret { strings: $s = "secret" condition: $s }
    rule hidden { condition: secret }
"#;

/// A lab with `f`, and with rules in `r.yar`.
fn lab(rules: &str, bytes: impl AsRef<[u8]>) -> Lab {
    let lab = Lab::with(bytes);
    lab.put("r.yar", rules);
    lab
}

fn rows(ran: &Ran) -> Vec<Value> {
    ran.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn rows_have_the_columns_that_people_script_against() {
    let lab = lab(RULES, "an Invoice, t\0o\0t\0a\0l\0, secret");
    let ran = lab.search(["--rules", "r.yar", "f", "--format", "json"]);
    let row = |rule: &str,
               tags: &[&str],
               string: Option<&str>,
               place: [Option<u64>; 2],
               found: Option<&str>| {
        json!({"source": "f", "scope": "source", "rule": rule, "tags": tags, "string": string,
               "offset": place[0], "length": place[1], "match": found})
    };
    let money = ["money", "paper"];
    let expected = [
        row("invoice", &money, Some("$a"), [Some(3), Some(7)], Some("Invoice")),
        row("invoice", &money, Some("$w"), [Some(12), Some(10)], Some("total")),
        row("small", &[], None, [None, None], None),
        row("hidden", &[], None, [None, None], None),
    ];
    assert_eq!(rows(ran.is_clean()), expected);
    let ran = lab.search(["--rules", "r.yar", "f", "--format", "csv", "--max-count", "1"]);
    assert_eq!(
        ran.is_clean().text(),
        "source,scope,rule,tags,string,offset,length,match\n\
         f,source,invoice,money paper,$a,3,7,Invoice\n"
    );
    let ran = lab.search(["--rules", "r.yar", "f"]);
    assert_eq!(
        ran.is_clean().lines(),
        ["f:3: invoice $a: Invoice", "f:12: invoice $w: t.o.t.a.l.", "f: small", "f: hidden"],
    );
}

#[test]
fn counts_are_those_of_scopes_and_nothing_found_is_1() {
    let lab = lab(RULES, "an invoice, an invoice");
    lab.put("g", "x".repeat(100));
    let ran = lab.search(["--rules", "r.yar", "-c", "f", "g", "--format", "csv"]);
    assert_eq!(ran.is_clean().text(), "rule,count\ninvoice,1\nsmall,1\nhidden,0\n");
    let ran = lab.search(["--rules", "r.yar", "-l", "g", "f"]);
    assert_eq!(ran.is_clean().lines(), ["f"]);
    let ran = lab.search(["--rules", "r.yar", "g", "--format", "json"]);
    assert_eq!((ran.is_clean().code, ran.text()), (Some(1), ""));
    let stats = lab.search(["--rules", "r.yar", "f", "-q", "--stats", "-"]);
    let stats: Value = serde_json::from_str(&stats.stderr).unwrap();
    assert_eq!((&stats["findings"], &stats["patterns"]), (&json!(3), &json!(4)));
}

#[test]
fn a_number_that_cannot_be_negated_is_one_line_or_none() {
    let judged = "rule a { condition: -(-9223372036854775807 - 1) < 0 }";
    let ran = lab(judged, "x").search(["--rules", "r.yar", "f"]);
    assert_eq!(ran.is_clean().lines(), ["f: a"]);
    let ran = lab("rule a { condition: -(-9223372036854775808) < 0 }", "x");
    let ran = ran.search(["--rules", "r.yar", "f"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(2), 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("r.yar: line 1, column"), "{}", ran.stderr);
}

#[test]
fn rules_that_are_wrong_are_named_with_their_place() {
    let lab = lab("rule a {\n  condition: $b\n}", "x");
    lab.search(["--rules", "r.yar", "f"])
        .refuses(&["r.yar: line 2, column 14: unknown variable $b"]);
    lab.put("r.yar", "rule a { condition: true }\nrule a { condition: true }");
    lab.search(["--rules", "r.yar", "f"]).refuses(&["r.yar: line 2, column 6", "already declared"]);
    lab.put("r.yar", "// nothing");
    lab.search(["--rules", "r.yar", "f"]).refuses(&["r.yar: has no rules"]);
    lab.put("r.yar", "import \"cuckoo\"\nrule a { condition: true }");
    lab.search(["--rules", "r.yar", "f"]).refuses(&[
        "line 1",
        "unknown import",
        "there are pe, elf",
    ]);
    lab.put("r.yar", "include \"../r.yar\"");
    lab.search(["--rules", "r.yar", "f"]).refuses(&["line 1, column 1: cannot include", "beside"]);
    lab.search(["--rules", "none.yar", "f"]).refuses(&["none.yar", "No such file"]);
}

#[test]
fn options_that_rules_cannot_support_are_refused() {
    let lab = lab(RULES, "x");
    for (option, words) in [
        (&["-e", "x"][..], "search for patterns in a separate run"),
        (&["-i"], "--ignore-case cannot be used with --rules"),
        (&["--features", "email"], "--features cannot be used with --rules"),
        (&["--range", "0..4"], "--range cannot be used with --rules"),
        (&["--where"], "the file in the column scope"),
        (&["--histogram"], "--histogram cannot be used with --rules"),
        (&["--unallocated"], "--scopes deleted,carved"),
        (&["--shard", "0/2"], "--shard cannot be used with --rules"),
        (&["--plan"], "--plan cannot be used with --rules"),
        (&["--to", "d"], "--to cannot be used with --rules"),
    ] {
        lab.search([&["--rules", "r.yar", "f"], option].concat()).refuses(&[words]);
    }
    lab.search(["--rules", "r.yar"]).refuses(&["no source was given"]);
    lab.search(["--rules-timeout", "1", "x", "f"]).refuses(&["--rules"]);
}

#[test]
fn sources_of_all_kinds_are_scopes() {
    let lab = lab("rule a { strings: $a = \"needle\" condition: $a and filesize == 10 }", "");
    std::fs::create_dir(lab.path("d")).unwrap();
    lab.put("d/1", "a  needle ");
    lab.put("d/2", "a needle");
    // Long enough for a pipeline.
    let mut long = vec![0; 3 << 20];
    long[2_000_000..2_000_006].copy_from_slice(b"needle");
    lab.put("d/3", &long);
    let found = |ran: &Ran| {
        let pair =
            |row: &Value| (row["source"].as_str().unwrap().to_string(), row["offset"].clone());
        rows(ran.is_clean()).iter().map(pair).collect::<Vec<_>>()
    };
    let ran = lab.search(["--rules", "r.yar", "d", "--format", "json"]);
    assert_eq!(found(&ran), [("d/1".to_string(), json!(3))]);
    let ran = lab.search_input(b"needle1234", ["--rules", "r.yar", "-", "--format", "json"]);
    assert_eq!(found(&ran), [("-".to_string(), json!(0))]);
    lab.put("r.yar", "rule a { strings: $a = \"needle\" condition: $a and filesize > 3000000 }");
    for access in ["window", "read", "uring"] {
        let ran = lab.search(["--rules", "r.yar", "d", "--format", "json", "--access", access]);
        assert_eq!(found(&ran), [("d/3".to_string(), json!(2_000_000))]);
    }
    let ran = lab.search_input(&long, ["--rules", "r.yar", "-", "--rules-max-size", "1M"]);
    ran.refuses(&["-: has more than 1 MiB", "--rules-max-size"]);
}

#[test]
fn many_small_files_are_listed_in_order() {
    let lab = lab("rule a { strings: $a = \"needle\" condition: $a and filename != \"100\" }", "");
    std::fs::create_dir(lab.path("d")).unwrap();
    for number in 100..400 {
        lab.put(format!("d/{number}"), format!("{number} needle"));
    }
    let expected: Vec<String> = (101..400).map(|number| format!("d/{number}")).collect();
    for workers in ["1", "2", "5"] {
        let ran = lab.search(["--rules", "r.yar", "d", "-l", "--workers", workers]);
        assert_eq!(ran.is_clean().lines(), expected);
    }
    let ran = lab.search(["--rules", "r.yar", "d", "--format", "csv", "--max-count", "20"]);
    let rows = ran.is_clean().lines();
    assert_eq!((rows.len(), rows[20]), (21, "d/120,source,a,,$a,4,6,needle"));
    let ran = lab.search(["--rules", "r.yar", "d", "-c", "--stats", "-"]);
    assert!(ran.text().contains("299"), "{}", ran.text());
    let stats: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!((&stats["bytes"], &stats["findings"]), (&json!(3000), &json!(299)));
    // An unreadable name does not end the search.
    std::fs::remove_file(lab.path("d/250")).unwrap();
    std::fs::write(lab.path("list"), "d/249\nd/250\nd/251\n").unwrap();
    let ran = lab.search(["--rules", "r.yar", "--files-from", "list", "-l"]);
    ran.says(2, &["d/250: "]);
    assert_eq!(ran.lines(), ["d/249", "d/251"]);
}

/// A FAT volume of 16 MiB in `f` with two files, one of which is deleted afterwards.
fn volume(rules: &str) -> Option<Lab> {
    let lab = lab(rules, "");
    lab.put_sparse("f", 16 << 20, &[]);
    std::fs::create_dir_all(lab.path("files/docs")).unwrap();
    lab.put("files/docs/a.txt", format!("MZ{}needle", "a".repeat(5000)));
    lab.put("files/b.txt", "needle".repeat(3));
    lab.put("files/gone.txt", "a needle that is gone");
    let mut made = does(&lab, "mkfs.vfat", &["-F", "16", "f"]);
    for name in ["files/docs", "files/b.txt", "files/gone.txt"] {
        made = made && does(&lab, "mcopy", &["-s", "-i", "f", name, "::"]);
    }
    (made && does(&lab, "mdel", &["-i", "f", "::gone.txt"])).then_some(lab)
}

#[test]
fn files_of_an_image_are_scopes_and_offsets_are_those_of_the_image() {
    let rules = r#"
        rule program { strings: $a = "needle" condition: uint16(0) == 0x5A4D and $a and filename == "a.txt" }
        rule many { strings: $a = "needle" condition: #a == 3 and filesize < 1KB }
        rule disk { strings: $a = "needle" condition: #a == 5 and $a in (0..filesize) }
    "#;
    let Some(lab) = volume(rules) else { return skip("mkfs.vfat or mtools do not run") };
    let image = std::fs::read(lab.path("f")).unwrap();
    let places: Vec<usize> =
        (0..image.len() - 6).filter(|&at| &image[at..at + 6] == b"needle").collect();
    let ran = lab.search(["--rules", "r.yar", "f", "--format", "json"]);
    let found: BTreeSet<(String, String, u64)> = rows(ran.is_clean())
        .iter()
        .map(|row| {
            assert_eq!(row["match"], "needle");
            let text = |key: &str| row[key].as_str().unwrap().to_string();
            (text("scope"), text("rule"), row["offset"].as_u64().unwrap())
        })
        .collect();
    let within = |name: &str| {
        let bytes = std::fs::read(lab.path(format!("files/{name}"))).unwrap();
        let start = (0..image.len()).find(|&at| image[at..].starts_with(&bytes)).unwrap();
        start..start + bytes.len()
    };
    let (a, b) = (within("docs/a.txt"), within("b.txt"));
    let mut expected = BTreeSet::new();
    for place in places {
        let row = |scope: &str, rule: &str| (scope.to_string(), rule.to_string(), place as u64);
        expected.insert(row("source", "disk"));
        if a.contains(&place) {
            expected.insert(row("/docs/a.txt", "program"));
        }
        if b.contains(&place) {
            expected.insert(row("/b.txt", "many"));
        }
    }
    assert_eq!(found, expected);
    let text = lab.search(["--rules", "r.yar", "f"]);
    assert!(text.text().contains(": program $a in /docs/a.txt: needle\n"), "{}", text.text());
    // If the image is too large for memory, its files are still evaluated.
    let ran = lab.search(["--rules", "r.yar", "f", "--rules-max-size", "1M", "--format", "json"]);
    ran.says(0, &["f: rules are not evaluated over all of the source", "those of its files are"]);
    assert_eq!(rows(&ran).len(), 4);
}

#[test]
fn scopes_that_are_too_long_or_too_slow_are_reported() {
    let lab = lab("rule a { strings: $a = \"needle\" condition: $a }", "needle".repeat(1000));
    let ran = lab.search(["--rules", "r.yar", "f", "--rules-max-size", "1K"]);
    ran.says(3, &["f: rules are not evaluated over all of the source", "--rules-max-size"]);
    assert_eq!(ran.text(), "");
    lab.put("r.yar", "rule a { condition: for all i in (0..1000000000000) : ( i >= 0 ) }");
    let ran = lab.search(["--rules", "r.yar", "f", "--rules-timeout", "1"]);
    ran.says(3, &["f: source: rules take more than 1 s here", "--rules-timeout"]);
}

#[test]
fn ctrl_c_ends_a_rule_without_an_end() {
    let lab = lab("rule a { condition: for all i in (0..1000000000000) : ( i >= 0 ) }", "x");
    let mut command = lab.search_command(["--rules", "r.yar", "f"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_it_handles_interrupts(&child);
    std::thread::sleep(Duration::from_millis(300));
    send("INT", &child);
    let started = Instant::now();
    let status = wait(&mut child);
    assert!(started.elapsed() < Duration::from_secs(30), "it waits for the rule");
    let (out, err) = (drain(child.stdout.take().unwrap()), drain(child.stderr.take().unwrap()));
    Ran::new(status, out, &err).says(130, &["interrupted"]);
}

#[test]
fn explain_lists_the_rules_evaluated_in_every_scope() {
    let lab = lab(RULES, "x".repeat(200));
    let ran = lab.search(["--rules", "r.yar", "f", "--explain"]);
    let said = &ran.stderr;
    assert!(said.contains("4 rules: 3 of 3 strings gated by 3 patterns"), "{said}");
    assert!(said.contains("small: has no strings; it is evaluated in every scope"), "{said}");
    assert!(!said.contains("hidden:"), "{said}");
}

#[test]
fn the_same_rules_hold_for_the_same_files_as_by_yara() {
    let rules = r#"
        import "hash"
        rule word { strings: $a = "needle" fullword condition: $a }
        rule twice { strings: $a = { 6E 65 [1-2] 64 } condition: #a == 2 }
        rule regex { strings: $a = /need[a-z]+s\b/ nocase condition: $a in (5..1000) }
        rule digest { condition: hash.md5(0, filesize) == "d41d8cd98f00b204e9800998ecf8427e" }
        rule absent { strings: $a = "needle" condition: not $a }
    "#;
    let lab = lab(rules, "");
    std::fs::create_dir_all(lab.path("d/e")).unwrap();
    for (name, text) in [
        ("1", "a needle"),
        ("2", "needles and needles"),
        ("e/3", "NEEDLES, and more NEEDLES"),
        ("e/4", ""),
        ("5", "nothing"),
    ] {
        lab.put(format!("d/{name}"), text);
    }
    let mut command = Command::new("yara");
    command.args(["-r", "r.yar", "d"]).current_dir(lab.path("")).stdin(Stdio::null());
    if command.output().is_err() {
        return skip("yara does not run");
    }
    let ran = run(command, b"");
    assert!(ran.is_clean().code == Some(0), "{ran:?}");
    let expected: BTreeSet<String> = ran.lines().into_iter().map(str::to_string).collect();
    let ran = lab.search(["--rules", "r.yar", "d", "--format", "json"]);
    let found: BTreeSet<String> = rows(ran.is_clean())
        .iter()
        .map(|row| format!("{} {}", row["rule"].as_str().unwrap(), row["source"].as_str().unwrap()))
        .collect();
    assert_eq!(found, expected);
    assert!(found.len() > 5, "{found:?}");
}
