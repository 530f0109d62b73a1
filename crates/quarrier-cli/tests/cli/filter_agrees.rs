//! A filter without a table finds the same messages as a table.

use std::fmt::Write;

use quarrier_core::source::Memory;
use quarrier_filter::{Query, Scan, Select, sql};
use quarrier_messages::{Format, Load};

use crate::harness::{Lab, run};

/// Pseudorandom numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Fields in any order, some of them missing or NULL, some messages damaged.
fn messages(random: &mut Random, count: usize) -> String {
    let mut text = String::from(
        "{\"id\":0,\"qty\":1,\"price\":1.25,\"status\":\"NEW\",\"ok\":true,\"at\":\"2024-01-01T00:00:00Z\",\"leg\":[{\"n\":1},7]}\n",
    );
    for id in 1..count {
        let mut fields = vec![format!("\"id\":{id}")];
        let qty = random.of(&["1", "-5", "100", "null", "250"]);
        let price = random.of(&["0.5", "1", "99.99", "100.25", "null", "-1.125"]);
        let status =
            random.of(&["\"NEW\"", "\"REJECTED\"", "\"RE\\u004AECTED\"", "\"\"", "\"é\"", "null"]);
        let at = random.of(&["\"2024-01-01T00:00:00.5Z\"", "\"2023-12-31 23:59:59\"", "null"]);
        for (name, value) in [("qty", qty), ("price", price), ("status", status), ("at", at)] {
            if random.below(8) > 0 {
                fields.push(format!("\"{name}\":{value}"));
            }
        }
        if random.below(3) == 0 {
            fields.push(format!("\"leg\":[{{\"n\":{}}},7]", random.below(4)));
        }
        if random.below(4) == 0 {
            fields.push(format!("\"ok\":{}", random.of(&["true", "false"])));
        }
        if random.below(3) == 0 {
            let at = random.below(fields.len());
            fields.swap(0, at);
        }
        match random.below(60) {
            0 => text.push_str("damaged\n"),
            1 => text.push('\n'),
            2 => writeln!(text, " {{ {} }} ", fields.join(" , ")).unwrap(),
            _ => writeln!(text, "{{{}}}", fields.join(",")).unwrap(),
        }
    }
    text
}

const TESTS: &[&str] = &[
    "qty > 50",
    "qty BETWEEN 1 AND 100",
    "price >= 1",
    "price < 99.99",
    "price * qty > 100",
    "status = 'REJECTED'",
    "status LIKE 'RE%'",
    "status LIKE '%E_T%'",
    "status IN ('NEW', '')",
    "status IS NULL",
    "ok",
    "at > TIMESTAMP '2024-01-01 00:00:00'",
    "EXTRACT(YEAR FROM at) = 2024",
    "leg[0].n = 1",
    "leg[1] IS NOT NULL",
    "id % 3 = 0",
    "COALESCE(qty, 0) = 0",
    "CHARACTER_LENGTH(status) = 1",
    "(qty, price) = (1, 1)",
];

fn condition(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.of(TESTS).to_string();
    }
    let left = condition(random, depth - 1);
    match random.below(4) {
        0 => format!("NOT ({left})"),
        1 => format!("({left}) AND ({})", condition(random, depth - 1)),
        2 => format!("({left}) OR ({})", condition(random, depth - 1)),
        _ => format!("({left}) IS NOT TRUE"),
    }
}

#[test]
fn a_filter_without_a_table_agrees_with_a_table() {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    for count in [1, 50, 2_000, 70_000] {
        let text = messages(&mut random, count);
        let lab = Lab::with(&text);
        let loaded = Load::new(Format::Json).run(&[&Memory::new("f", text.as_bytes())]).unwrap();
        let mut conditions: Vec<String> = TESTS.iter().map(ToString::to_string).collect();
        conditions.extend((0..60).map(|n| condition(&mut random, 1 + n % 3)));
        lab.put("many.sql", conditions.join("\n"));
        let query = |text: &String| Query {
            select: Select::Count { name: "count".into() },
            condition: Some(sql::condition(text, loaded.table.schema()).unwrap()),
            order: Vec::new(),
            limit: None,
            offset: 0,
        };
        let queries: Vec<Query> = conditions.iter().map(query).collect();
        let answers = Scan::new(&loaded.table, &queries).run();
        let ran = run(lab.command(["filter", "--many", "many.sql", "f", "--format", "json"]), b"");
        let found: Vec<serde_json::Value> =
            ran.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(found.len(), conditions.len(), "{ran:?}");
        for ((condition, answer), found) in conditions.iter().zip(answers).zip(found) {
            assert_eq!(found["count"], answer.unwrap().count, "{condition}, {count} messages");
        }
    }
}
