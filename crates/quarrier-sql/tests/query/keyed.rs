//! Tables with a key, through the server: upserts, UPDATE, DELETE and what subscribers receive.

use crate::harness::Folder;
use crate::serve::{Served, serve};

const QUOTES: &str = "CREATE TABLE quotes (symbol text PRIMARY KEY, bid numeric(12, 4), lot bigint) \
                      WITH (on_conflict = 'replace')";

fn served() -> (Folder, Served) {
    let folder = Folder::new();
    let served = serve(&folder, &["--data", "d", "--segment", "4M"]);
    assert_eq!(served.ask(QUOTES), "CREATE TABLE\n");
    (folder, served)
}

fn copied(served: &Served, subscription: &str) -> Vec<Vec<String>> {
    let rows = served.ask(&format!("COPY (SUBSCRIBE {subscription}) TO STDOUT"));
    rows.lines().map(|line| line.split('\t').map(str::to_string).collect()).collect()
}

#[test]
fn a_row_replaces_the_one_with_its_key_until_it_is_deleted() {
    let (folder, served) = served();
    served.ask("INSERT INTO quotes VALUES ('WQY', 771.05, 1), ('VGI', 719.13, 2), ('WQY', 772, 3)");
    let all = "SELECT * FROM quotes ORDER BY symbol";
    assert_eq!(served.ask(all), "VGI|719.1300|2\nWQY|772.0000|3\n");
    assert_eq!(served.ask("SELECT count(*), max(bid), min(lot) FROM quotes"), "2|772.0000|2\n");
    let upsert = "INSERT INTO quotes VALUES ('VGI', 700, 4) ON CONFLICT (symbol) DO UPDATE SET bid = \
                  EXCLUDED.bid, lot = EXCLUDED.lot";
    assert_eq!(served.ask(upsert), "INSERT 0 1\n");
    assert_eq!(
        served.ask("UPDATE quotes SET bid = bid * 2, lot = DEFAULT WHERE lot > 3"),
        "UPDATE 1\n"
    );
    assert_eq!(served.ask(all), "VGI|1400.0000|\nWQY|772.0000|3\n");
    assert_eq!(
        served.ask("UPDATE quotes AS q SET lot = q.lot + 1 WHERE symbol = 'none'"),
        "UPDATE 0\n"
    );
    assert_eq!(served.ask("DELETE FROM quotes WHERE bid < 1000"), "DELETE 1\n");
    assert_eq!(served.ask("DELETE FROM quotes WHERE bid < 1000"), "DELETE 0\n");
    assert_eq!(served.ask(all), "VGI|1400.0000|\n");
    assert_eq!(served.end(), Some(0));
    let served = serve(&folder, &["--data", "d", "--segment", "4M"]);
    assert_eq!(served.ask(all), "VGI|1400.0000|\n");
    assert_eq!(served.ask("DELETE FROM quotes"), "DELETE 1\n");
    assert_eq!(served.ask("SELECT count(*) FROM quotes"), "0\n");
    served.ask("INSERT INTO quotes VALUES ('VGI', 1, 1)");
    assert_eq!(served.ask("SELECT count(*) FROM quotes"), "1\n");
}

#[test]
fn composite_keys_work_and_invalid_keys_are_refused() {
    let (_folder, served) = served();
    let made = served.ask(
        "CREATE TABLE fills (venue text, id bigint, qty bigint, PRIMARY KEY (venue, id)) \
         WITH (on_conflict = replace)",
    );
    assert_eq!(made, "CREATE TABLE\n");
    served.ask("INSERT INTO fills VALUES ('X', 1, 10), ('Y', 1, 20), ('X', 1, 30)");
    assert_eq!(served.ask("SELECT * FROM fills ORDER BY venue"), "X|1|30\nY|1|20\n");
    served.ask("CREATE TABLE plain (a bigint)");
    for (sql, code) in [
        ("CREATE TABLE t (a bigint PRIMARY KEY)", "0A000"),
        ("CREATE TABLE t (a bigint) WITH (on_conflict = 'replace')", "22023"),
        ("CREATE TABLE t (a bigint PRIMARY KEY) WITH (on_conflict = 'refuse')", "22023"),
        (
            "CREATE TABLE t (a bigint PRIMARY KEY, PRIMARY KEY (a)) WITH (on_conflict = 'replace')",
            "42P16",
        ),
        ("CREATE TABLE t (a bigint, PRIMARY KEY (b)) WITH (on_conflict = 'replace')", "42611"),
        ("CREATE TABLE t (a real PRIMARY KEY) WITH (on_conflict = 'replace')", "42611"),
        ("CREATE TABLE t (a bigint UNIQUE)", "0A000"),
        ("INSERT INTO quotes (bid) VALUES (1)", "23502"),
        ("INSERT INTO quotes VALUES ('a', 1, 1) ON CONFLICT (bid) DO UPDATE SET bid = 1", "42P10"),
        ("INSERT INTO plain VALUES (1) ON CONFLICT (a) DO UPDATE SET a = EXCLUDED.a", "42P10"),
        ("INSERT INTO quotes VALUES ('a', 1, 1) ON CONFLICT DO NOTHING", "0A000"),
        (
            "INSERT INTO quotes VALUES ('a', 1, 1) ON CONFLICT (symbol) DO UPDATE SET bid = EXCLUDED.bid",
            "0A000",
        ),
        ("UPDATE quotes SET symbol = 'x'", "0A000"),
        ("UPDATE quotes SET bid = 1, bid = 2", "42601"),
        ("UPDATE quotes SET none = 1", "42703"),
        ("UPDATE plain SET a = 1", "0A000"),
        ("DELETE FROM plain", "0A000"),
        ("DELETE FROM quotes RETURNING bid", "0A000"),
        ("DELETE FROM nowhere", "42P01"),
    ] {
        let said = served.refused(sql);
        assert!(said.contains(&format!("ERROR:  {code}:")), "{sql}: {said}");
    }
}

#[test]
fn subscribers_get_the_deletion_before_the_replacement() {
    let (_folder, served) = served();
    served.ask("INSERT INTO quotes VALUES ('WQY', 771.05, 1), ('VGI', 719.13, 2)");
    served.ask("INSERT INTO quotes VALUES ('VGI', 400, 3), ('WQY', 772, 4)");
    served.ask("DELETE FROM quotes WHERE symbol = 'WQY'");
    let query = "(SELECT symbol, bid FROM quotes WHERE bid > 500)";
    let found = copied(&served, &format!("{query} WITH (snapshot) AS OF 2 UP TO 5"));
    let expected = [
        ["1", "=", "WQY", "771.0500"],
        ["2", "=", "VGI", "719.1300"],
        ["3", "-", "VGI", "719.1300"],
        ["4", "-", "WQY", "771.0500"],
        ["4", "+", "WQY", "772.0000"],
        ["5", "-", "WQY", "772.0000"],
        ["5", ">", "\\N", "\\N"],
    ];
    assert_eq!(found, expected);
}
