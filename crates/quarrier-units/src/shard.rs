//! Shards: the units that one of several processes runs.

use std::str::FromStr;

/// One of `count` processes that share the units of a search: it runs each unit whose number, counted from 0
/// over all sources, modulo `count` is `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// The index of the process, from 0.
    pub index: u64,
    /// The number of processes.
    pub count: u64,
}

impl Shard {
    /// Whether this shard runs the unit with this number.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        number % self.count.max(1) == self.index
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(index, count)| {
            Some((index.trim().parse().ok()?, count.trim().parse().ok()?))
        });
        match numbers {
            Some((index, count)) if index < count => Ok(Shard { index, count }),
            Some((index, count)) => Err(format!(
                "there is no shard {index} of {count}; shards are counted from 0, so the last \
                 one is {}/{count}",
                u64::saturating_sub(count, 1)
            )),
            None => Err("a shard is INDEX/COUNT, such as 0/8".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_of_one_shard() {
        for count in 1..5 {
            let shards: Vec<Shard> =
                (0..count).map(|index| format!("{index}/{count}").parse().unwrap()).collect();
            for number in 0..20 {
                assert_eq!(shards.iter().filter(|shard| shard.has(number)).count(), 1);
            }
        }
    }

    #[test]
    fn invalid_shards_are_refused() {
        for text in ["", "1", "a/b", "-1/2", "1/0", "0/0", "2/2", "1/2/3", "1/18446744073709551616"]
        {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
