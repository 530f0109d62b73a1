//! `rules(…)`: matches of YARA rules as a table.

use crate::harness::{Folder, text};

const RULES: &str = r#"
    rule invoice : money paper { strings: $a = "invoice" nocase condition: #a > 1 }
    rule small { condition: filesize < 100 }
"#;

#[test]
fn rule_matches_are_a_table() {
    let folder = Folder::new();
    folder.file("r.yar", RULES);
    folder.file("note", "an Invoice, an invoice");
    let run = |sql: &str| {
        let output = folder.run(&[sql, "--format", "csv"]);
        (text(&output.stdout), text(&output.stderr))
    };
    let (rows, said) = run("SELECT * FROM rules('note', 'r.yar')");
    assert_eq!(
        rows,
        "source,scope,rule,tags,string,offset,length,match\n\
         note,source,invoice,money paper,$a,3,7,Invoice\n\
         note,source,invoice,money paper,$a,15,7,invoice\n\
         note,source,small,,,,,\n",
        "{said}"
    );
    let counted =
        "SELECT rule, count(*) AS n FROM rules('note', 'r.yar') GROUP BY rule ORDER BY rule";
    assert_eq!(run(counted).0, "rule,n\ninvoice,2\nsmall,1\n");
    let first = "SELECT \"offset\" FROM rules('note', 'r.yar') LIMIT 1";
    assert_eq!(run(first).0, "offset\n3\n");
    // The source is not an archive, so it has no members.
    let members = "SELECT count(*) AS n FROM rules('note', 'r.yar', 'members')";
    assert_eq!(run(members).0, "n\n0\n");
    for (wrong, words) in [
        ("rules('note')", "write rules('disk.img'"),
        ("rules('note', 'r.yar', 'slack')", "no scope 'slack'"),
        ("rules('note', 'none.yar')", "none.yar"),
        ("rules('none', 'r.yar')", "none"),
    ] {
        let said = run(&format!("SELECT * FROM {wrong}")).1;
        assert!(said.contains(words), "{wrong}: {said}");
    }
    folder.file("wrong.yar", "rule a {\n  condition: $b\n}");
    let said = run("SELECT * FROM rules('note', 'wrong.yar')").1;
    assert!(said.contains("line 2, column 14: unknown variable $b"), "{said}");
}
