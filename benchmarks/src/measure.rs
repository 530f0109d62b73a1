//! Rounds: A B C D A B C D …, so that other load on the machine affects all contenders alike.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::contender::{Answer, Contender};

/// The distribution of repeated runs of the same thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) runs: usize,
}

impl Spread {
    /// Returns `None` without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Some(Spread { median, min, max, runs: values.len() })
    }

    pub(crate) fn to_json(spread: Option<Self>) -> Value {
        spread.map_or(Value::Null, |Spread { median, min, max, runs }| {
            json!({"median": median, "min": min, "max": max, "runs": runs})
        })
    }
}

/// Runs a contender and compares its count with the expected one.
pub(crate) fn checked(contender: &Contender, expected: u64) -> Result<Option<Answer>> {
    let Some(answer) = contender.run()? else { return Ok(None) };
    if answer.found != expected {
        bail!(
            "WRONG COUNT: {} found {}, expected {expected}; no time is given for it. \
             Try: {contender}",
            contender.name,
            answer.found
        );
    }
    Ok(Some(answer))
}

/// The answers of one contender, one per round.
pub(crate) struct Runs {
    pub(crate) contender: Contender,
    pub(crate) answers: Vec<Answer>,
}

/// Measures all contenders in turn, each with its expected count.
pub(crate) fn rounds(contenders: Vec<(Contender, u64)>, rounds: usize) -> Result<Vec<Runs>> {
    let mut all: Vec<(Runs, u64)> = contenders
        .into_iter()
        .map(|(contender, expected)| (Runs { contender, answers: Vec::new() }, expected))
        .collect();
    for _ in 0..rounds {
        for (runs, expected) in &mut all {
            match checked(&runs.contender, *expected)? {
                Some(answer) => runs.answers.push(answer),
                None => bail!("{} did not run this time: {}", runs.contender.name, runs.contender),
            }
        }
    }
    Ok(all.into_iter().map(|(runs, _)| runs).collect())
}

impl Runs {
    pub(crate) fn whole(&self) -> Option<Spread> {
        Spread::of(self.answers.iter().map(|answer| answer.whole_seconds))
    }

    pub(crate) fn scan(&self) -> Option<Spread> {
        Spread::of(self.answers.iter().filter_map(|answer| answer.scan_seconds))
    }

    pub(crate) fn compile(&self) -> Option<Spread> {
        Spread::of(self.answers.iter().filter_map(|answer| answer.compile_seconds))
    }

    pub(crate) fn engine(&self) -> Option<&str> {
        self.answers.first()?.engine.as_deref()
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "name": self.contender.name,
            "threads": self.contender.threads,
            "engine": self.engine(),
            "found": self.answers.first().map(|answer| answer.found),
            "whole_seconds": Spread::to_json(self.whole()),
            "scan_seconds": Spread::to_json(self.scan()),
            "compile_seconds": Spread::to_json(self.compile()),
        })
    }
}

/// Returns how many times as fast as `rival` it is, round by round.
pub(crate) fn times_as_fast(
    ours: &Runs,
    rival: Option<&Runs>,
    seconds: fn(&Answer) -> Option<f64>,
) -> Option<Spread> {
    let pairs = ours.answers.iter().zip(&rival?.answers);
    Spread::of(pairs.filter_map(|(ours, rival)| Some(seconds(rival)? / seconds(ours)?)))
}

pub(crate) fn whole_seconds(answer: &Answer) -> Option<f64> {
    Some(answer.whole_seconds)
}

pub(crate) fn scan_seconds(answer: &Answer) -> Option<f64> {
    answer.scan_seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).map(|s| s.median), Some(2.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).map(|s| s.median), Some(2.5));
        assert_eq!(Spread::of([]), None);
    }
}
