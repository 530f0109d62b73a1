//! Evaluates conditions on columns in a device's memory, and by the CPU's shared scan of the same
//! table: `cargo run --release --example resident -p quarrier-filter [ROWS] [ROUNDS] [THREADS]`.
//!
//! It compares the answers of both before it prints times: a line of JSON for each number of
//! conditions, with the seconds of each round. Without a device it prints nothing.

#![allow(clippy::print_stdout, reason = "an example of a command")]

use std::error::Error;
use std::time::Instant;

use quarrier_filter::{Expr, Query, ResidentTable, Scan, Select, sql};
use quarrier_messages::column::SegmentColumn;
use quarrier_messages::column::raw::{RawColumn, RawData, SEGMENT_ROWS};
use quarrier_messages::{Part, PartField, PartSegment, Table};

const CONDITIONS: [usize; 3] = [1, 20, 200];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mut argument = |usual: usize| arguments.next().unwrap_or(Ok(usual));
    let (rows, rounds, threads) = (argument(1_000_000)?, argument(3)?, argument(2)?);
    let Some(device) = quarrier_gpu::find().into_iter().next() else {
        return Ok(());
    };
    let table = orders(rows);
    let mut resident = ResidentTable::new(&table, &device)?;
    for count in CONDITIONS {
        let conditions = conditions(&table, count)?;
        let (mut kernel, mut whole, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
        // The first round compiles the kernel, and does not count.
        for round in 0..=rounds {
            let start = Instant::now();
            let counts = resident.counts(&conditions)?;
            let seconds = start.elapsed().as_secs_f64();
            let (expected, by_scan) = scanned(&table, &conditions, threads)?;
            if let Some(at) = (0..count).find(|&at| counts[at] != expected[at]) {
                let (ours, right) = (counts[at], expected[at]);
                let what = format!("WRONG COUNT: condition {at}: {ours} rows, not {right}");
                return Err(what.into());
            }
            if round > 0 {
                kernel.push(resident.kernel_time().as_secs_f64());
                whole.push(seconds);
                cpu.push(by_scan);
            }
        }
        println!(
            "{{\"device\":{:?},\"conditions\":{count},\"rows\":{rows},\"bytes\":{},\
             \"kernel_seconds\":{kernel:?},\"device_seconds\":{whole:?},\"cpu_seconds\":{cpu:?}}}",
            device.facts().to_string(),
            resident.nbytes(),
        );
    }
    Ok(())
}

/// Returns the counts by the CPU, and the time they took.
fn scanned(table: &Table, conditions: &[Expr], threads: usize) -> Result<(Vec<u64>, f64)> {
    let query = |condition: &Expr| Query {
        select: Select::Count { name: "count".into() },
        condition: Some(condition.clone()),
        order: Vec::new(),
        limit: None,
        offset: 0,
    };
    let queries: Vec<Query> = conditions.iter().map(query).collect();
    let start = Instant::now();
    let answers = Scan::new(table, &queries).workers(threads).run();
    let seconds = start.elapsed().as_secs_f64();
    let counts = answers.into_iter().map(|answer| Ok(answer?.count)).collect::<Result<_>>()?;
    Ok((counts, seconds))
}

/// SplitMix64: numbers that look random and are the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

/// Draws different conditions on one to three columns.
fn conditions(table: &Table, count: usize) -> Result<Vec<Expr>> {
    let mut random = Random(7);
    let text = |nth: usize, random: &mut Random| {
        let price = random.below(50_000) as f64 / 100.0;
        let (qty, account) = (random.below(5_000), random.below(1 << 20));
        match nth % 5 {
            0 => format!("price BETWEEN {price} AND {}", price + 40.0),
            1 => format!("qty > {qty} AND NOT (account < {account})"),
            2 => format!("qty IN ({qty}, {}, {}) OR price < {price}", qty + 1, qty + 7),
            3 => format!("is_buy AND price > {price} OR is_buy IS NULL AND qty < {qty}"),
            _ => format!(
                "venue = {} AND account BETWEEN {account} AND {}",
                qty % 12,
                account + 9_999
            ),
        }
    };
    (0..count)
        .map(|nth| {
            let text = text(nth, &mut random);
            Ok(sql::condition(&text, table.schema())?)
        })
        .collect()
}

/// Makes orders with numbers of every width, and NULL in one column.
fn orders(rows: usize) -> Table {
    let mut random = Random(3);
    let starts = (0..rows).step_by(SEGMENT_ROWS).enumerate();
    let segments = starts
        .map(|(place, start)| segment(place as u64, SEGMENT_ROWS.min(rows - start), &mut random))
        .collect();
    let names = ["price", "qty", "account", "venue", "is_buy"];
    let fields = names.map(|name| PartField { name: name.into(), ..PartField::default() });
    Table::assemble(vec![Part { fields: fields.into(), segments }], 2)
}

fn segment(place: u64, rows: usize, random: &mut Random) -> PartSegment {
    let mut below =
        |bound: usize| -> Vec<i64> { (0..rows).map(|_| random.below(bound) as i64).collect() };
    let cents = below(54_000).into_iter();
    let numbers = [
        RawData::Float(cents.map(|cents| cents as f64 / 100.0).collect()),
        RawData::Integer(below(5_100)),
        RawData::Integer(below(1 << 20)),
        RawData::Integer(below(12)),
    ];
    let mut bits = || -> Vec<u64> { (0..rows.div_ceil(64)).map(|_| random.next()).collect() };
    let (is_buy, known) = (bits(), bits());
    let pack = |valid, data| Some(SegmentColumn::pack(&RawColumn { valid, data }));
    let mut columns: Vec<_> = numbers.into_iter().map(|data| pack(Vec::new(), data)).collect();
    columns.push(pack(known, RawData::Boolean { bits: is_buy, rows }));
    PartSegment { place, rows: rows as u32, columns }
}
