//! The crate a-tree, as a whole process: many conditions over a stream of orders.
//!
//! `atree CONDITIONS ORDERS SECONDS` inserts the conditions (one a line: `symbol = 'X' AND price > 1.5 AND qty > 7`),
//! then searches for those of each order (CSV, read before the time starts), until there are no more or the seconds are
//! over. The answer is a line with the seconds for the conditions (wall, CPU), the number of orders and their CPU
//! seconds, and a line for each condition with matches: its number, their count. Exit code 3 means that the conditions
//! alone took longer than that.

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use a_tree::{ATree, AttributeDefinition};
use anyhow::{Context, Result, anyhow, bail};
use rustix::time::{ClockId, clock_gettime};

const TOO_SLOW: u8 = 3;
/// Orders between two looks at the clock.
const ORDERS_AT_ONCE: usize = 100;
/// Decimals of a price.
const SCALE: u32 = 2;

struct Order {
    symbol: String,
    /// A price without its point.
    price: i64,
    qty: i64,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(TOO_SLOW),
        Err(error) => {
            eprintln!("atree: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns false if the conditions took too long.
fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [conditions, orders, seconds] = arguments.as_slice() else {
        bail!("usage: atree CONDITIONS ORDERS SECONDS");
    };
    let limit = Duration::from_secs_f64(seconds.parse().context("SECONDS is not a number")?);
    let conditions = read_conditions(conditions)?;
    let orders = read_orders(orders)?;

    let (started, cpu) = (Instant::now(), cpu_seconds());
    let Some(tree) = inserted(&conditions, started + limit)? else { return Ok(false) };
    let (made_seconds, made_cpu_seconds) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);

    let mut counts = vec![0_u64; conditions.len()];
    let (started, cpu) = (Instant::now(), cpu_seconds());
    let mut done = 0;
    for some in orders.chunks(ORDERS_AT_ONCE) {
        for order in some {
            search(&tree, order, &mut counts)?;
        }
        done += some.len();
        if started.elapsed() > limit {
            break;
        }
    }
    println!("{made_seconds} {made_cpu_seconds} {done} {}", cpu_seconds() - cpu);
    for (number, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        println!("{number} {count}");
    }
    Ok(true)
}

/// Reads conditions, with keywords as the crate writes them.
fn read_conditions(path: &str) -> Result<Vec<String>> {
    let text = fs::read_to_string(path).with_context(|| path.to_string())?;
    Ok(text.lines().map(|line| line.replace(" AND ", " and ")).collect())
}

/// Reads orders: no value has a comma or quotes before the fifth column ends.
fn read_orders(path: &str) -> Result<Vec<Order>> {
    let text = fs::read_to_string(path).with_context(|| path.to_string())?;
    text.lines().skip(1).map(order).collect()
}

fn order(line: &str) -> Result<Order> {
    let mut cells = line.split(',');
    let mut next = || cells.next().with_context(|| line.to_string());
    let (_id, symbol, _side, price, qty) = (next()?, next()?, next()?, next()?, next()?);
    let (whole, decimals) = price.split_once('.').unwrap_or((price, ""));
    let price = format!("{whole}{decimals:0<width$}", width = SCALE as usize).parse()?;
    Ok(Order { symbol: symbol.to_string(), price, qty: qty.parse()? })
}

/// Returns a tree with all conditions, unless it takes too long.
fn inserted(conditions: &[String], end: Instant) -> Result<Option<ATree<usize>>> {
    let attributes = [
        AttributeDefinition::string("symbol"),
        AttributeDefinition::float("price"),
        AttributeDefinition::integer("qty"),
    ];
    let mut tree = ATree::new(&attributes).map_err(|error| anyhow!("{error:?}"))?;
    for (number, condition) in conditions.iter().enumerate() {
        tree.insert(&number, condition).map_err(|error| anyhow!("{condition}: {error:?}"))?;
        if number % ORDERS_AT_ONCE == 0 && Instant::now() > end {
            return Ok(None);
        }
    }
    Ok(Some(tree))
}

fn search(tree: &ATree<usize>, order: &Order, counts: &mut [u64]) -> Result<()> {
    let mut event = tree.make_event();
    event.with_string("symbol", &order.symbol)?;
    event.with_float("price", order.price, SCALE)?;
    event.with_integer("qty", order.qty)?;
    let report = tree.search(&event.build()?).map_err(|error| anyhow!("{error:?}"))?;
    for number in report.matches() {
        counts[**number] += 1;
    }
    Ok(())
}

/// The CPU time of this process so far.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
