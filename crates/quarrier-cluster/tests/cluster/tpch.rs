//! The 22 queries of TPC-H over a few hundred rows.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Date32Array, Decimal128Array, Int64Array, StringArray};

use super::lab::{Cluster, Draw, Lab, assert_same};
use super::orders::write;

const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
const SEGMENTS: [&str; 3] = ["AUTOMOBILE", "BUILDING", "MACHINERY"];
const PRIORITIES: [&str; 4] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW"];
const TYPES: [&str; 4] =
    ["ECONOMY ANODIZED STEEL", "PROMO BURNISHED COPPER", "MEDIUM PLATED BRASS", "SMALL BRASS"];
const BRANDS: [&str; 3] = ["Brand#12", "Brand#23", "Brand#45"];
const CONTAINERS: [&str; 3] = ["SM CASE", "SM BOX", "MED BAG"];
const COLOURS: [&str; 3] = ["green metallic", "dark green", "red smoke"];
const MODES: [&str; 4] = ["AIR", "MAIL", "RAIL", "SHIP"];
const COMMENTS: [&str; 3] = ["quick", "special handling requests", "Customer had Complaints"];
const FLAGS: [&str; 3] = ["A", "N", "R"];

/// 1992-01-01, and the days from then on on which orders are placed.
const FIRST_DAY: i32 = 8_035;
const DAYS: u64 = 2_400;

const SUPPLIERS: i64 = 20;
const CUSTOMERS: i64 = 90;
const PARTS: i64 = 80;
const ORDERS: i64 = 400;

/// The columns of a table.
type Columns = Vec<(&'static str, ArrayRef)>;

fn ints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn texts(values: impl IntoIterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn money(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    let values = Decimal128Array::from_iter_values(values.into_iter().map(i128::from));
    Arc::new(values.with_precision_and_scale(15, 2).unwrap())
}

fn dates(values: impl IntoIterator<Item = i32>) -> ArrayRef {
    Arc::new(Date32Array::from_iter_values(values))
}

/// Draws columns of `rows` values.
struct Drawing {
    draw: Draw,
    rows: i64,
}

impl Drawing {
    fn new(seed: u64, rows: i64) -> Self {
        Drawing { draw: Draw::new(seed), rows }
    }

    fn below(&mut self, bound: i64) -> Vec<i64> {
        (0..self.rows).map(|_| self.draw.below(bound as u64) as i64).collect()
    }

    fn one_of(&mut self, all: &[&str]) -> ArrayRef {
        texts((0..self.rows).map(|_| (*self.draw.one_of(all)).to_string()).collect::<Vec<_>>())
    }

    fn named(&self, what: &str) -> ArrayRef {
        texts((0..self.rows).map(|row| format!("{what} {row}")))
    }

    fn phones(&mut self) -> ArrayRef {
        let codes = self.below(24);
        texts(codes.into_iter().map(|code| format!("{}-555-0100", code + 10)))
    }
}

fn nations() -> (Columns, Columns) {
    let region = vec![("r_regionkey", ints(0..5)), ("r_name", texts(REGIONS.map(str::to_string)))];
    let nation = vec![
        ("n_nationkey", ints(0..25)),
        ("n_name", texts((0..25).map(|nation| format!("NATION {nation}")))),
        ("n_regionkey", ints((0..25).map(|nation| nation % 5))),
    ];
    (region, nation)
}

fn supplier() -> Columns {
    let mut all = Drawing::new(1, SUPPLIERS);
    vec![
        ("s_suppkey", ints(0..SUPPLIERS)),
        ("s_name", all.named("Supplier")),
        ("s_address", all.named("Street")),
        ("s_nationkey", ints(all.below(25))),
        ("s_phone", all.phones()),
        ("s_acctbal", money(all.below(100_000))),
        ("s_comment", all.one_of(&COMMENTS)),
    ]
}

fn customer() -> Columns {
    let mut all = Drawing::new(2, CUSTOMERS);
    vec![
        ("c_custkey", ints(0..CUSTOMERS)),
        ("c_name", all.named("Customer")),
        ("c_address", all.named("Road")),
        ("c_nationkey", ints(all.below(25))),
        ("c_phone", all.phones()),
        ("c_acctbal", money(all.below(200_000).into_iter().map(|cents| cents - 50_000))),
        ("c_mktsegment", all.one_of(&SEGMENTS)),
        ("c_comment", all.one_of(&COMMENTS)),
    ]
}

fn part() -> Columns {
    let mut all = Drawing::new(3, PARTS);
    vec![
        ("p_partkey", ints(0..PARTS)),
        ("p_name", all.one_of(&COLOURS)),
        ("p_mfgr", all.named("Manufacturer")),
        ("p_brand", all.one_of(&BRANDS)),
        ("p_type", all.one_of(&TYPES)),
        ("p_size", ints(all.below(50))),
        ("p_container", all.one_of(&CONTAINERS)),
    ]
}

fn partsupp() -> Columns {
    let mut all = Drawing::new(4, PARTS * 4);
    vec![
        ("ps_partkey", ints((0..PARTS * 4).map(|row| row / 4))),
        ("ps_suppkey", ints((0..PARTS * 4).map(|row| (row / 4 + row % 4 * 5) % SUPPLIERS))),
        ("ps_availqty", ints(all.below(1_000))),
        ("ps_supplycost", money(all.below(100_000))),
    ]
}

fn orders(days: &[i32]) -> Columns {
    let mut all = Drawing::new(5, ORDERS);
    vec![
        ("o_orderkey", ints(0..ORDERS)),
        // A third of the customers has no order.
        ("o_custkey", ints(all.below(CUSTOMERS * 2 / 3))),
        ("o_orderstatus", all.one_of(&["F", "O", "P"])),
        ("o_totalprice", money(all.below(50_000_000))),
        ("o_orderdate", dates(days.iter().copied())),
        ("o_orderpriority", all.one_of(&PRIORITIES)),
        ("o_shippriority", ints(all.below(2))),
        ("o_comment", all.one_of(&COMMENTS)),
    ]
}

/// Four lines of each order from `first` on.
fn lineitem(days: &[i32], first: i64, count: i64) -> Columns {
    let mut all = Drawing::new(6 + first as u64, count * 4);
    let order = |row: i64| first + row / 4;
    let after = |gaps: Vec<i64>| {
        let days = (0..count * 4).map(|row| days[order(row) as usize]);
        dates(days.zip(gaps).map(|(day, gap)| day + gap as i32).collect::<Vec<_>>())
    };
    let parts = all.below(PARTS);
    let suppliers =
        all.below(4).into_iter().zip(&parts).map(|(way, part)| (part + way * 5) % SUPPLIERS);
    let suppliers: Vec<i64> = suppliers.collect();
    vec![
        ("l_orderkey", ints((0..count * 4).map(order))),
        ("l_partkey", ints(parts)),
        ("l_suppkey", ints(suppliers)),
        ("l_quantity", money(all.below(50).into_iter().map(|quantity| 100 * (quantity + 1)))),
        ("l_extendedprice", money(all.below(10_000_000))),
        ("l_discount", money(all.below(11))),
        ("l_tax", money(all.below(9))),
        ("l_returnflag", all.one_of(&FLAGS)),
        ("l_linestatus", all.one_of(&["F", "O"])),
        ("l_shipdate", after(all.below(120))),
        ("l_commitdate", after(all.below(120))),
        ("l_receiptdate", after(all.below(150))),
        ("l_shipmode", all.one_of(&MODES)),
    ]
}

fn write_tables(lab: &Lab) {
    let days: Vec<i32> = Drawing::new(7, ORDERS)
        .below(DAYS as i64)
        .into_iter()
        .map(|d| FIRST_DAY + d as i32)
        .collect();
    let (region, nation) = nations();
    for (name, columns) in [
        ("region", region),
        ("nation", nation),
        ("supplier", supplier()),
        ("customer", customer()),
        ("part", part()),
        ("partsupp", partsupp()),
        ("orders", orders(&days)),
        ("lineitem/1", lineitem(&days, 0, 150)),
        ("lineitem/2", lineitem(&days, 150, ORDERS - 150)),
    ] {
        write(lab, &format!("{name}.parquet"), columns);
    }
}

#[test]
fn the_queries_of_tpc_h_have_the_rows_of_one_process() {
    let lab = Lab::new();
    write_tables(&lab);
    let cluster = Cluster::start(2);
    let mut tables = Vec::new();
    for name in ["region", "nation", "supplier", "customer", "part", "partsupp", "orders"] {
        tables.push(format!("--table={name}={name}.parquet"));
    }
    tables.push("--table=lineitem=lineitem/*.parquet".to_string());
    let queries: Vec<&str> = include_str!("tpch.sql").split(';').collect();
    assert_eq!(queries.len(), 22);
    let mut found = 0;
    for (number, query) in queries.into_iter().enumerate() {
        let mut arguments = vec!["query", query, "--format", "csv"];
        arguments.extend(tables.iter().map(String::as_str));
        let plain = lab.run(&arguments);
        assert_eq!(plain.status.code(), Some(0), "{}", String::from_utf8_lossy(&plain.stderr));
        arguments.extend(["--cluster", &cluster.at]);
        let mut command = lab.command(&arguments);
        command.env("QUARRIER_CLUSTER_UNIT", "9000");
        let spread = super::lab::finished(command, std::time::Duration::from_secs(120));
        assert_same(&plain, &spread, &format!("query {}\n{}", number + 1, cluster.logs()));
        found += usize::from(plain.stdout.iter().filter(|byte| **byte == b'\n').count() > 1);
    }
    // Nearly all have rows.
    assert!(found >= 20, "{found}");
}
