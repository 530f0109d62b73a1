//! Tables of a data folder, queried by name, as files, and by clients of a server.

use quarrier::{DataFolder, Environment, KeptLoad, OpenOptions, Opener, Sources};

use crate::harness::{Folder, orders, text};
use crate::serve::serve;

/// Creates a data folder `d` with the orders as a table. Returns the name of its segment.
fn kept() -> (Folder, String) {
    let folder = Folder::new();
    let file = folder.file("orders.ndjson", &orders());
    let kept = DataFolder::open(&folder.path("d")).unwrap();
    let stop = Default::default();
    let opener = Opener::new(OpenOptions::default(), &Environment::default(), &stop);
    let load = KeptLoad::new("orders");
    load.run(&kept, &Sources::of([&file]), &opener, &stop, &mut ()).unwrap();
    kept.close().unwrap();
    (folder, "d/log/0000000000000001.qlog".to_string())
}

#[test]
fn stored_tables_answer_like_their_files() {
    let (folder, segment) = kept();
    let ask = |arguments: &[&str]| {
        let output = folder.run(arguments);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
        text(&output.stdout)
    };
    for select in ["SELECT count(*)", "SELECT symbol, sum(qty)", "SELECT *"] {
        let rest = if select.contains("sum") { " GROUP BY symbol ORDER BY symbol" } else { "" };
        let of = |table: &str| format!("{select} FROM {table}{rest}");
        let expected = ask(&["--format", "csv", "-q", &of("'orders.ndjson'")]);
        assert!(expected.lines().count() > 1, "{expected}");
        for table in ["orders", "ORDERS"] {
            let answer = ask(&["--format", "csv", "-q", "--data", "d", &of(table)]);
            assert_eq!(answer, expected, "{select} {table}");
        }
        let answer = ask(&["--format", "csv", "-q", &of(&format!("'{segment}'"))]);
        assert_eq!(answer, expected, "{select} of the segment");
    }
    let joined = "SELECT count(*) FROM orders AS a JOIN 'orders.ndjson' AS b ON a.id = b.id";
    let rows = text(
        &folder.run(&["--format", "csv", "-q", "SELECT count(*) FROM 'orders.ndjson'"]).stdout,
    );
    assert_eq!(ask(&["--format", "csv", "-q", "--data", "d", joined]), rows);
}

#[test]
fn unknown_tables_are_refused() {
    let (folder, _) = kept();
    for (arguments, words) in [
        (["--data", "nowhere", "SELECT 1"], "nowhere"),
        (["--data", "d", "SELECT * FROM fills"], "fills"),
    ] {
        let output = folder.run(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn damage_is_listed_and_other_messages_are_read() {
    let (folder, segment) = kept();
    let path = folder.path(&segment);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(9).position(|bytes| bytes == b"\"symbol\":").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let output =
        folder.run(&["-q", "--format", "csv", "--data", "d", "SELECT count(*) FROM orders"]);
    let said = text(&output.stderr);
    assert!(said.contains("damaged at bytes"), "{said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
}

#[test]
fn a_server_serves_stored_tables() {
    let (folder, _) = kept();
    let served = serve(&folder, &["--data", "d", "--segment", "4M"]);
    let lines = orders().lines().count();
    assert_eq!(served.ask("SELECT count(*) FROM orders"), format!("{lines}\n"));
    assert_eq!(text(&served.psql(&["-c", "\\dt"]).stdout), "public|orders|table|quarrier\n");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_server_removes_the_oldest_rows_of_a_bounded_table() {
    let folder = Folder::new();
    let served = serve(&folder, &["--data", "d", "--segment", "4M"]);
    let with = |bounds: &str| format!("CREATE TABLE t (id bigint) WITH (retention = {bounds})");
    for wrong in ["'a while'", "7", "''"] {
        let said = served.refused(&with(wrong));
        assert!(said.contains("'7 days, 10 GB'"), "{said}");
    }
    served.ask(&with("'7 days, 1KB'"));
    served.ask(
        "CREATE TABLE k (id bigint PRIMARY KEY) WITH (retention='1KB', on_conflict='replace')",
    );
    for id in 0..60 {
        for table in ["t", "k"] {
            served.ask(&format!("INSERT INTO {table} VALUES ({id}), ({})", id + 1_000));
        }
    }
    let count = |table: &str| -> u64 {
        served.ask(&format!("SELECT count(*) FROM {table}")).trim().parse().unwrap()
    };
    let started = std::time::Instant::now();
    while count("t") > 110 || count("k") > 110 {
        assert!(started.elapsed().as_secs() < 60, "{} and {} rows", count("t"), count("k"));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    for table in ["t", "k"] {
        let newest = served.ask(&format!("SELECT max(id), min(id) > 0 FROM {table}"));
        assert_eq!(newest, "1059|t\n", "{table}");
    }
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_server_that_stops_stores_the_columns_of_tables_that_have_grown() {
    let folder = Folder::new();
    let served = serve(&folder, &["--data", "d"]);
    served.ask("CREATE TABLE t (id bigint, note text)");
    for id in 0..40 {
        served.ask(&format!("INSERT INTO t VALUES ({id}, '{}')", "note ".repeat(10_000)));
    }
    assert_eq!(served.ask("SELECT count(*) FROM t"), "40\n");
    let columns = folder.path("d").join("table1.columns");
    assert!(!columns.exists());
    assert_eq!(served.end(), Some(0));
    assert!(columns.exists());
    let served = serve(&folder, &["--data", "d"]);
    assert_eq!(served.ask("SELECT count(*), sum(id) FROM t"), "40|780\n");
    assert_eq!(served.end(), Some(0));
}
