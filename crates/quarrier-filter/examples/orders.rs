//! Evaluates twenty conditions on orders in one pass: `cargo run --release --example orders
//! [FILE]`.
//!
//! Without a file it uses a few lines in this program; it detects the format of a file by its
//! content.

#![allow(clippy::print_stdout, reason = "an example of a command")]

use std::error::Error;
use std::fs::File;
use std::io::Read;

use quarrier_filter::{Query, Scan, sql};
use quarrier_messages::{Format, Load, Loaded};

const ORDERS: &str = r#"
{"symbol":"AAPL","side":"B","price":187.25,"qty":100,"status":"NEW","ts":"2024-03-01T09:30:00Z"}
{"symbol":"MSFT","side":"S","price":411.5,"qty":40,"status":"FILLED","ts":"2024-03-01T09:30:01Z"}
{"symbol":"AMZN","side":"B","price":176,"qty":2500,"status":"NEW","ts":"2024-03-01T10:00:00Z"}
{"symbol":"AAPL","side":"S","qty":7,"status":"CANCELLED","ts":"2024-03-02T15:59:59Z"}
{"symbol":"IBM","side":"B","price":
"#;

const CONDITIONS: [&str; 20] = [
    "symbol = 'AAPL'",
    "symbol <> 'AAPL'",
    "symbol LIKE 'A%'",
    "symbol IN ('MSFT', 'AMZN', 'IBM')",
    "symbol < 'B' AND side = 'B'",
    "side = 'S' OR qty > 1000",
    "NOT side = 'S'",
    "price > 180",
    "price BETWEEN 170 AND 190",
    "price IS NULL",
    "price > 180 IS UNKNOWN",
    "price * qty > 20000",
    "COALESCE(price, 0) < 1",
    "qty BETWEEN SYMMETRIC 100 AND 10",
    "MOD(qty, 2) = 1",
    "status = 'NEW' AND price IS NOT NULL",
    "CASE status WHEN 'NEW' THEN qty ELSE 0 END >= 100",
    "CHAR_LENGTH(status) > 3",
    "ts < TIMESTAMP '2024-03-01 10:00:00'",
    "EXTRACT(DAY FROM ts) = 2",
];

fn main() -> Result<(), Box<dyn Error>> {
    let Loaded { table, rejected, .. } = match std::env::args().nth(1) {
        Some(path) => load(&path)?,
        None => Load::new(Format::Json).run_stream("orders", &mut ORDERS.as_bytes())?,
    };
    println!("{} messages, {rejected} left out", table.rows());

    let statements =
        CONDITIONS.map(|condition| format!("SELECT COUNT(*) FROM m WHERE {condition}"));
    let bound = statements.iter().map(|text| sql::statement(text, "m", table.schema()));
    let queries = bound.collect::<Result<Vec<Query>, _>>()?;
    for (condition, answer) in CONDITIONS.iter().zip(Scan::new(&table, &queries).run()) {
        println!("{:>9}  {condition}", answer?.count);
    }
    Ok(())
}

fn load(path: &str) -> Result<Loaded, Box<dyn Error>> {
    let mut head = Vec::new();
    File::open(path)?.take(4096).read_to_end(&mut head)?;
    let format = Format::detect(path, &head).unwrap_or_else(|| Format::guessed(&head));
    Ok(Load::new(format).run_stream(path, &mut File::open(path)?)?)
}
