//! Random statements from a grammar of everything that the engine supports, and mutations of them.
//! Each has an answer or an error of one line, and never panics.

use quarrier_sql::{Error, Options};

use crate::harness::{Folder, TestEngine};
use crate::random::Random;

/// The number of statements; the variable `STATEMENTS` overrides it.
const STATEMENTS: usize = 400;

const MEBIBYTE: u64 = 1 << 20;

/// The pieces from which a statement is generated.
struct Drawing<'r> {
    random: &'r mut Random,
    scalar: &'r [String],
    aggregate: &'r [String],
    window: &'r [String],
}

impl Drawing<'_> {
    fn one<'o>(&mut self, of: &[&'o str]) -> &'o str {
        of[self.random.below(of.len())]
    }

    fn chance(&mut self, of: usize) -> bool {
        self.random.below(of) == 0
    }

    fn list(&mut self, most: usize, one: impl Fn(&mut Self) -> String) -> String {
        let count = 1 + self.random.below(most);
        (0..count).map(|_| one(self)).collect::<Vec<_>>().join(", ")
    }

    fn select(&mut self, depth: usize) -> String {
        let mut text = String::new();
        if depth == 0 && self.chance(5) {
            text += &format!("WITH w AS ({}) ", self.select(2));
        }
        text += &format!("SELECT {}{}", self.one(&["", "", "DISTINCT "]), self.outputs(depth));
        text += &format!(" FROM {}", self.from(depth));
        if !self.chance(3) {
            text += &format!(" WHERE {}", self.truth(depth));
        }
        if self.chance(3) {
            text += &format!(" GROUP BY {}", self.list(2, |d| d.column().to_string()));
            if self.chance(2) {
                text += &format!(" HAVING {} > {}", self.aggregate(depth), self.leaf());
            }
        }
        if depth < 2 && self.chance(6) {
            let set = self.one(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL"]);
            text += &format!(" {set} {}", self.select(2));
        }
        if self.chance(2) {
            let order = self.one(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            text += &format!(" ORDER BY {}{order}", self.one(&["1", "a.id", "id", "a.qty + 1"]));
        }
        if self.chance(2) {
            text += &format!(" LIMIT {}", self.one(&["0", "1", "3", "9223372036854775807"]));
        }
        text
    }

    fn outputs(&mut self, depth: usize) -> String {
        match self.random.below(5) {
            0 => "*".to_string(),
            1 => self.list(3, |d| d.aggregate(depth)),
            2 => self.list(2, |d| d.windowed(depth)),
            _ => self.list(3, |d| format!("{} AS {}", d.value(depth), d.one(&["x", "y", "id"]))),
        }
    }

    fn from(&mut self, depth: usize) -> String {
        let table = |d: &mut Self| match d.random.below(7) {
            0 if depth < 2 => format!("({})", d.select(depth + 1)),
            1 => "generate_series(1, 20)".to_string(),
            2 => "(VALUES (1, 'x'), (2, NULL))".to_string(),
            _ => d.one(&["m", "n", "m", "w"]).to_string(),
        };
        let first = format!("{} AS a", table(self));
        if !self.chance(3) {
            return first;
        }
        let join = self.one(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ","]);
        let second = format!("{first} {join} {} AS b", table(self));
        match join {
            "," | "CROSS JOIN" => second,
            _ => format!("{second} ON {}", self.one(&["a.id = b.id", "a.id < b.qty", "TRUE"])),
        }
    }

    fn column(&mut self) -> &'static str {
        self.one(&[
            "id", "a.id", "symbol", "qty", "a.qty", "price", "note", "ts", "leg", "open", "b.id",
            "_line", "nothing",
        ])
    }

    fn leaf(&mut self) -> String {
        match self.random.below(3) {
            0 => self.column().to_string(),
            _ => self
                .one(&[
                    "0",
                    "1",
                    "-1",
                    "2.50",
                    "1e300",
                    "9223372036854775807",
                    "-9223372036854775808",
                    "18446744073709551615",
                    "99999999999999999999999999999999999999",
                    "NULL",
                    "'a'",
                    "''",
                    "'é\u{202e}'",
                    "TRUE",
                    "DATE '2024-02-29'",
                    "TIMESTAMP '2024-01-02 03:04:05'",
                    "INTERVAL '1' MONTH",
                    "[1, 2, NULL]",
                    "X'00FF'",
                    "'[a-'",
                    "'%Y'",
                    "'2024-01-02'",
                ])
                .to_string(),
        }
    }

    fn value(&mut self, depth: usize) -> String {
        if depth > 4 || self.chance(3) {
            return self.leaf();
        }
        let deeper = depth + 1;
        match self.random.below(9) {
            0 => format!(
                "({} {} {})",
                self.value(deeper),
                self.one(&["+", "-", "*", "/", "%", "||"]),
                self.value(deeper)
            ),
            1 => format!(
                "CAST({} AS {})",
                self.value(deeper),
                self.one(&[
                    "INT",
                    "VARCHAR",
                    "DECIMAL(38, 10)",
                    "DATE",
                    "TIMESTAMP",
                    "BOOLEAN",
                    "DOUBLE",
                    "SMALLINT"
                ])
            ),
            2 => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.truth(deeper),
                self.value(deeper),
                self.value(deeper)
            ),
            3 if depth < 2 => {
                format!("(SELECT max(id) FROM n WHERE n.id {} a.id)", self.one(&["=", "<", ">"]))
            }
            4 => format!("-{}", self.value(deeper)),
            _ => {
                let name = &self.scalar[self.random.below(self.scalar.len())];
                let name = format!("\"{name}\"");
                let most = 1 + self.random.below(3);
                format!("{name}({})", self.list(most, |d| d.value(deeper)))
            }
        }
    }

    fn aggregate(&mut self, depth: usize) -> String {
        let name = &self.aggregate[self.random.below(self.aggregate.len())];
        let name = format!("\"{name}\"");
        let distinct = self.one(&["", "", "DISTINCT "]);
        let filter = if self.chance(5) { " FILTER (WHERE qty > 3)" } else { "" };
        format!("{name}({distinct}{}){filter}", self.list(2, |d| d.value(depth + 2)))
    }

    fn windowed(&mut self, depth: usize) -> String {
        let call = match self.chance(2) {
            true => self.aggregate(depth),
            false => {
                let name = &self.window[self.random.below(self.window.len())];
                let name = format!("\"{name}\"");
                let arguments = self.one(&[
                    "",
                    "qty",
                    "qty, 1",
                    "qty, -1",
                    "note, 9223372036854775807",
                    "3",
                    "0",
                ]);
                format!("{name}({arguments})")
            }
        };
        let order = self.one(&["ORDER BY a.id", "ORDER BY qty DESC", ""]);
        let frame = match order {
            "" => "",
            _ => self.one(&[
                "",
                "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING",
                "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
                "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                "ROWS BETWEEN 9223372036854775807 FOLLOWING AND UNBOUNDED FOLLOWING",
            ]),
        };
        format!(
            "{call} OVER ({} {order} {frame})",
            self.one(&["PARTITION BY symbol", "PARTITION BY 1", ""])
        )
    }

    fn truth(&mut self, depth: usize) -> String {
        let deeper = depth + 1;
        if depth > 4 {
            return "a.id > 3".to_string();
        }
        match self.random.below(9) {
            0 => format!("({} AND {})", self.truth(deeper), self.truth(deeper)),
            1 => format!("({} OR {})", self.truth(deeper), self.truth(deeper)),
            2 => format!("NOT {}", self.truth(deeper)),
            3 => format!("{} IS {}NULL", self.value(deeper), self.one(&["", "NOT "])),
            4 => format!("{} IN ({})", self.value(deeper), self.list(3, |d| d.leaf())),
            5 if depth < 2 => format!(
                "{} {}IN (SELECT id FROM n)",
                self.one(&["a.id", "qty"]),
                self.one(&["", "NOT "])
            ),
            6 if depth < 2 => format!("EXISTS ({})", self.select(3)),
            7 => format!(
                "{} LIKE {}",
                self.value(deeper),
                self.one(&["'a%'", "'%_'", "NULL", "note"])
            ),
            _ => format!(
                "{} {} {}",
                self.value(deeper),
                self.one(&["=", "<", ">=", "<>"]),
                self.value(deeper)
            ),
        }
    }

    /// The text with some of its words moved.
    fn changed(&mut self, text: &str) -> String {
        let mut words: Vec<&str> = text.split_inclusive([' ', '(', ')', ',']).collect();
        for _ in 0..self.random.below(3) {
            let (from, to) = (self.random.below(words.len()), self.random.below(words.len()));
            match self.random.below(4) {
                0 if words.len() > 1 => drop(words.remove(from)),
                1 => words.insert(to, words[from]),
                2 => words.swap(from, to),
                _ => {
                    words[from] =
                        self.one(&["NULL ", "( ", ") ", "NOT ", "'", "OVER ", "\u{202e} "])
                }
            }
        }
        words.concat()
    }
}

/// Function names in an order that is the same in each run.
fn sorted<'n>(names: impl Iterator<Item = &'n String>) -> Vec<String> {
    let mut names: Vec<String> = names.cloned().collect();
    names.sort();
    names
}

/// The defect in the results of a statement, if there is one.
fn wrong(asked: &TestEngine, sql: &str) -> Option<String> {
    let error = asked.rows(sql).err()?;
    let said = error.to_string();
    let is_clean = !said.is_empty() && !said.contains(['\n', '\r']) && said.len() < 4_000;
    match error {
        Error::Internal(_) => Some(said),
        _ if !is_clean || said.contains("panicked") => Some(said),
        _ => None,
    }
}

#[test]
fn statements_of_any_kind_are_answered_or_refused_in_one_line() {
    let folder = Folder::new();
    let asked = TestEngine::with(Options {
        workers: 2,
        memory_bytes_max: Some(256 * MEBIBYTE),
        ..Options::default()
    });
    let orders = crate::harness::orders();
    let lines = |count: usize| orders.lines().take(count).map(|line| format!("{line}\n"));
    asked.open("m", &folder.file("m.ndjson", &lines(40).collect::<String>())).unwrap();
    asked.open("n", &folder.file("n.ndjson", &lines(7).collect::<String>())).unwrap();
    let state = asked.engine.context().state();
    let scalar = sorted(state.scalar_functions().keys());
    let aggregate = sorted(state.aggregate_functions().keys());
    let window = sorted(state.window_functions().keys());
    let count = std::env::var("STATEMENTS").ok().and_then(|count| count.parse().ok());
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(27);
    let mut random = Random::new(seed);
    let mut drawing =
        Drawing { random: &mut random, scalar: &scalar, aggregate: &aggregate, window: &window };
    let (mut answered, mut problems) = (0, Vec::new());
    for _ in 0..count.unwrap_or(STATEMENTS) {
        let drawn = drawing.select(0);
        let changed = drawing.changed(&drawn);
        for sql in [drawn, changed] {
            match wrong(&asked, &sql) {
                Some(said) => problems.push(format!("{sql}\n    {said}")),
                None => answered += usize::from(asked.engine.statements(&sql).is_ok()),
            }
        }
    }
    assert!(problems.is_empty(), "{} of them:\n{}", problems.len(), problems.join("\n"));
    assert!(answered > 0, "no statement was one");
}
