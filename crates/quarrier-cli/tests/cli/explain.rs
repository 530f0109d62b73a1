//! `quarrier explain`.

use serde_json::Value;

use crate::harness::{Lab, run};

fn orders() -> String {
    let line = |id: u32| {
        let status = ["NEW", "FILLED", "REJECTED"][id as usize % 3];
        format!("{{\"id\":{id},\"status\":\"{status}\",\"qty\":{}}}\n", id % 1000)
    };
    (0..20_000).map(line).collect()
}

#[test]
fn an_explanation_says_the_order_what_was_skipped_and_what_is_shared() {
    let lab = Lab::with(orders());
    std::fs::write(
        lab.path("many.sql"),
        "id < 10 AND status = 'NEW'\nstatus = 'NEW' AND qty > 5\n",
    )
    .unwrap();
    let ran = run(lab.command(["explain", "--many", "many.sql", "--format", "json", "f"]), b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<Value> =
        ran.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["count"], 4);
    assert_eq!(lines[1]["count"], 6_627);
    // All ids below 10 are in the first of five blocks.
    assert_eq!(lines[0]["blocks_skipped"], 4);
    let shared = lines[0]["steps"].as_array().unwrap().iter().any(|step| step["uses"] == 2);
    assert!(shared, "{}", lines[0]);
    assert_eq!(lines[2]["rows"], 20_000);
    assert!(lines[2]["bytes_touched"].as_u64().unwrap() > 0);
}

#[test]
fn an_explanation_for_people_shows_each_part() {
    let lab = Lab::with(orders());
    let ran = run(lab.command(["explain", "qty > 990 AND status = 'NEW'", "f"]), b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = ran.lines().join("\n");
    for part in
        ["20000 messages in 5 blocks", "60 messages", "AND", "qty > 990", "bytes of columns"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_explanation_has_an_account_and_can_be_quiet() {
    let orders = orders();
    let lab = Lab::with(orders.clone() + "{\"id\":\n");
    let args = ["explain", "qty > 990 AND status = 'NEW'", "f", "--quiet", "--stats", "s"];
    let ran = run(lab.command(args), b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let stats: Value = serde_json::from_slice(&std::fs::read(lab.path("s")).unwrap()).unwrap();
    assert_eq!((&stats["command"], &stats["findings"]), (&"explain".into(), &60.into()));
    assert_eq!(stats["bytes"], orders.len() + 7);
    assert!(stats["seconds"].as_f64().unwrap() > 0.0);
    assert!(crate::account::has_every_key(&stats), "{stats}");
    let ran = run(lab.command(["explain", "qty > 990", "f"]), b"");
    assert!(ran.stderr.contains("1 message was left out"), "{ran:?}");
}

#[test]
fn errors_of_explain_are_one_line() {
    let lab = Lab::with(orders());
    for wrong in [
        &["explain", "price > 1", "f"][..],
        &["explain", "qty > 1", "missing"],
        &["explain", "qty > 1", "f", "--format", "arrow"],
        &["explain", "qty >", "f"],
    ] {
        let ran = run(lab.command(wrong.iter().copied()), b"");
        assert_eq!(ran.code, Some(2), "{wrong:?}: {ran:?}");
    }
}

#[test]
fn parquet_is_left_to_the_second_binary() {
    let lab = Lab::with("PAR1 and whatever follows");
    // The binary alone: no second binary beside it, or on the path.
    let alone = lab.path("quarrier");
    // By another process: a file that this one has open for writing cannot be run, and a child that another
    // test starts at this moment would have it open, too.
    let mut copy = std::process::Command::new("cp");
    assert!(copy.arg(env!("CARGO_BIN_EXE_quarrier")).arg(&alone).status().unwrap().success());
    let mut command = std::process::Command::new(alone);
    command.args(["explain", "a > 1", "f"]).current_dir(lab.path("")).env("PATH", "");
    let ran = run(command, b"");
    ran.refuses(&["explain over Parquet needs quarrier-sql", "make install"]);
}
