//! Drawn statements over drawn tables: the answers of a cluster are those of one process.

use std::process::Output;
use std::time::Duration;

use super::lab::{Cluster, Draw, Lab, assert_same, finished, text};
use super::messages::{FIX_NAMES, messages, write};
use super::orders;

/// The statements of a round.
const STATEMENTS: u64 = 5;

const FORMATS: &[&str] = &["ndjson", "ndjson", "csv", "fix", "nvfix", "xml"];

/// A table, its columns of numbers that can be added exactly, and the others.
struct Table {
    sql: String,
    exact: Vec<String>,
    others: Vec<String>,
    has_name: bool,
    is_messages: bool,
}

impl Table {
    fn new(sql: String, (exact, others): (&[&str], &[&str])) -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
        let (exact, others) = (names(exact), names(others));
        Table { has_name: sql.contains('*'), sql, exact, others, is_messages: false }
    }

    /// Writes one or several files of drawn messages.
    fn of_messages(lab: &Lab, draw: &mut Draw) -> (Self, u64) {
        let format = *draw.one_of(FORMATS);
        let files = if draw.below(3) == 0 { 1 + draw.below(3) } else { 0 };
        let mut size = 0;
        for file in 0..files.max(1) {
            let count = *draw.one_of(&[1, 30, 200]);
            let all = messages(draw, count);
            let name = if files == 0 { format!("m.{format}") } else { format!("m{file}.{format}") };
            size += write(lab, &name, draw, &all);
        }
        let sql = if files == 0 { format!("'m.{format}'") } else { format!("'m*.{format}'") };
        let exact = ["id", "qty", "price"];
        let mut others = vec!["symbol", "day", "note", "odd", "late"];
        if !format.ends_with("fix") {
            others.extend(["rate", "open"]);
        }
        let mut table = Table::new(sql, (&exact, &others));
        if format.ends_with("fix") {
            let of_fix = |name: &mut String| {
                let known = FIX_NAMES.iter().find(|(own, ..)| own == name);
                *name = known.unwrap().2.to_string();
            };
            table.exact.iter_mut().chain(&mut table.others).for_each(of_fix);
        }
        table.is_messages = true;
        (table, size)
    }

    fn any(&self, draw: &mut Draw) -> &str {
        match draw.below(5) {
            0..2 => draw.one_of::<String>(&self.exact),
            2 if self.has_name => "filename",
            3 if self.is_messages && draw.below(4) == 0 => "_offset",
            _ => draw.one_of::<String>(&self.others),
        }
    }

    fn value(&self, draw: &mut Draw) -> String {
        let (exact, any) = (draw.one_of(&self.exact), self.any(draw));
        match draw.below(8) {
            0 => format!("{exact} * 2 + 1"),
            1 => format!("coalesce({exact}, 0)"),
            2 => format!("{exact} / 4"),
            3 => format!("CASE WHEN {exact} > {} THEN 'many' END", draw.below(500)),
            4 => format!("CAST({any} AS VARCHAR)"),
            _ => any.to_string(),
        }
    }

    fn condition(&self, draw: &mut Draw) -> String {
        let (exact, any) = (draw.one_of(&self.exact), self.any(draw));
        let number = draw.below(1_000);
        match draw.below(9) {
            0 => format!("{exact} < {number}"),
            1 => format!("{exact} BETWEEN {number} AND {}", number + draw.below(300)),
            2 => format!("{any} IS NOT NULL"),
            3 => format!("{exact} IN ({number}, 3, 5, 70)"),
            4 => format!("CAST({any} AS VARCHAR) LIKE '%{}%'", draw.below(10)),
            5 => format!("NOT ({})", self.condition(draw)),
            6 => format!("({} OR {})", self.condition(draw), self.condition(draw)),
            7 => format!("{} AND {}", self.condition(draw), self.condition(draw)),
            _ => format!("{exact} % 3 = 1"),
        }
    }

    fn aggregate(&self, draw: &mut Draw) -> String {
        let (exact, any) = (draw.one_of(&self.exact), self.any(draw));
        match draw.below(7) {
            0 => "count(*)".to_string(),
            1 => format!("count({any})"),
            2 => format!("min({any})"),
            3 => format!("max({any})"),
            4 => format!("avg({exact})"),
            5 => format!("count(DISTINCT {any})"),
            _ => format!("sum({exact})"),
        }
    }

    fn wherever(&self, draw: &mut Draw) -> String {
        match draw.below(3) {
            0 => String::new(),
            _ => format!(" WHERE {}", self.condition(draw)),
        }
    }
}

fn list(draw: &mut Draw, most: u64, one: impl Fn(&mut Draw) -> String) -> (Vec<String>, String) {
    let all: Vec<String> = (0..1 + draw.below(most)).map(|_| one(draw)).collect();
    let named = all.iter().enumerate().map(|(at, value)| format!("{value} AS c{at}"));
    let named: Vec<String> = named.collect();
    (all, named.join(", "))
}

fn order_by(columns: usize) -> String {
    let places: Vec<String> = (1..=columns).map(|place| place.to_string()).collect();
    format!("ORDER BY {}", places.join(", "))
}

/// Draws a statement whose rows have an order.
fn statement(draw: &mut Draw, tables: &[Table]) -> String {
    let table = draw.one_of(tables);
    let (from, wherever) = (&table.sql, table.wherever(draw));
    match draw.below(8) {
        0 => {
            let name = if table.has_name { ", filename" } else { "" };
            format!("SELECT * FROM {from}{wherever} ORDER BY {}{name}", table.exact[0])
        }
        1 => {
            let (all, named) = list(draw, 3, |draw| table.aggregate(draw));
            let filter = table.condition(draw);
            let kept = if all[0].starts_with("count(*)") { "" } else { " HAVING count(*) > 2" };
            format!(
                "SELECT {named}, count(*) FILTER (WHERE {filter}) AS f FROM {from}{wherever}{kept}"
            )
        }
        2..5 => {
            let (keys, named) = list(draw, 2, |draw| table.value(draw));
            let (aggregates, values) = list(draw, 3, |draw| table.aggregate(draw));
            let values = values.replace(" AS c", " AS a");
            let order = order_by(keys.len() + aggregates.len());
            let keys = keys.join(", ");
            format!("SELECT {named}, {values} FROM {from}{wherever} GROUP BY {keys} {order}")
        }
        5 => {
            let (first, other) = (draw.one_of(tables), draw.one_of(tables));
            let limit = 1 + draw.below(30);
            format!(
                "SELECT a.{0} AS x, count(*) AS n FROM {1} a JOIN {3} b ON a.{0} = b.{2} \
                 GROUP BY a.{0} ORDER BY x LIMIT {limit}",
                first.exact[0], first.sql, other.exact[0], other.sql
            )
        }
        6 => {
            let other = draw.one_of(tables);
            let (one, two) = (table.value(draw), other.value(draw));
            let all = draw.one_of(&["", " ALL"]);
            let there = &other.sql;
            format!(
                "SELECT {one} AS c FROM {from}{wherever} UNION{all} SELECT {two} FROM {there} ORDER BY 1"
            )
        }
        _ => {
            let (values, named) = list(draw, 4, |draw| table.value(draw));
            let distinct = draw.one_of(&["", "DISTINCT "]);
            let order = order_by(values.len());
            let limit = if draw.below(3) == 0 { " LIMIT 17" } else { "" };
            format!("SELECT {distinct}{named} FROM {from}{wherever} {order}{limit}")
        }
    }
}

fn run(lab: &Lab, arguments: &[&str], unit: &str) -> (Output, String) {
    let rejects = lab.path().join("rejects");
    let _ = std::fs::remove_file(&rejects);
    let mut command = lab.command(&[arguments, &["--rejects", "rejects"]].concat());
    command.env("QUARRIER_CLUSTER_UNIT", unit);
    let output = finished(command, Duration::from_secs(120));
    (output, std::fs::read(rejects).map_or_else(|_| String::new(), |bytes| text(&bytes)))
}

/// `QUARRIER_ROUNDS` rounds of 5 statements, `QUARRIER_SEED` being the first of their seeds.
#[test]
fn drawn_statements_over_parquet_and_messages_have_the_answers_of_one_process() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let (rounds, seed) = (number("QUARRIER_ROUNDS").unwrap_or(4), number("QUARRIER_SEED"));
    let clusters: Vec<Cluster> = [1, 2, 3, 4].map(Cluster::start).into();
    let first: u64 = seed.unwrap_or(0);
    for seed in first..first + rounds {
        let (lab, mut draw) = (Lab::new(), Draw::new(seed + 77));
        let (messages, bytes) = Table::of_messages(&lab, &mut draw);
        let mut tables = vec![messages];
        if draw.below(3) == 0 {
            orders::write_all(&lab, 2, 400);
            let columns: (&[&str], &[&str]) =
                (&["id", "qty", "price"], &["symbol", "day", "open", "note"]);
            tables.push(Table::new("'orders/*.parquet'".to_string(), columns));
        }
        let statements: Vec<String> =
            (0..STATEMENTS).map(|_| statement(&mut draw, &tables)).collect();
        let sql = statements.join(";\n");
        let format = *draw.one_of(&["json", "csv", "text"]);
        let arguments = ["query", &sql, "--format", format];
        let unit = (bytes / (1 + draw.below(20)) + 1 + draw.below(50)).to_string();
        let (plain, rejects) = run(&lab, &arguments, &unit);
        let cluster = draw.one_of(&clusters);
        let (spread, spread_rejects) =
            run(&lab, &[&arguments[..], &["--cluster", &cluster.at]].concat(), &unit);
        let about = format!("seed {seed}: {sql}, units of {unit}\n{}", cluster.logs());
        assert_same(&plain, &spread, &about);
        assert_eq!(text(&plain.stderr), text(&spread.stderr), "{about}");
        assert_eq!(rejects, spread_rejects, "{about}");
        if rounds > 100 {
            let said = text(&plain.stderr);
            println!("seed {seed}: {} {} bytes, {said}", plain.status, plain.stdout.len());
        }
    }
}
