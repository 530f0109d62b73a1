//! Merges dictionaries in the order of first appearance into one sorted dictionary.

use crate::column::{Strings, bytes_key};

/// The result of [`merge`].
pub(super) struct Merged {
    /// All distinct strings, in order.
    pub(super) strings: Strings,
    /// The new code of each old one, by dictionary; `None` if all codes stay.
    pub(super) codes: Vec<Option<Vec<u32>>>,
}

/// A string of one of the dictionaries, with eight of its bytes as a key.
#[derive(Clone, Copy)]
struct Entry {
    key: i64,
    dictionary: u32,
    code: u32,
}

/// Merges dictionaries; `None` if the strings are too large for one.
pub(super) fn merge(dictionaries: &[&Strings]) -> Option<Merged> {
    let mut entries = Vec::with_capacity(dictionaries.iter().map(|strings| strings.len()).sum());
    for (dictionary, strings) in dictionaries.iter().enumerate() {
        entries.extend(strings.iter().enumerate().map(|(code, text)| Entry {
            key: bytes_key(text.as_bytes()),
            dictionary: dictionary as u32,
            code: code as u32,
        }));
    }
    let text = |entry: &Entry| dictionaries[entry.dictionary as usize].get(entry.code as usize);
    sort(&mut entries, 0, &|entry| text(entry).as_bytes());
    let mut strings = Strings::new();
    let mut codes: Vec<Vec<u32>> =
        dictionaries.iter().map(|dictionary| vec![0; dictionary.len()]).collect();
    let mut last: Option<(&str, u32)> = None;
    for entry in &entries {
        let text = text(entry);
        let code = match last {
            Some((same, code)) if same == text => code,
            _ => strings.push(text)?,
        };
        last = Some((text, code));
        codes[entry.dictionary as usize][entry.code as usize] = code;
    }
    let stay = |codes: &[u32]| codes.iter().enumerate().all(|(old, &new)| old == new as usize);
    let codes = codes.into_iter().map(|codes| (!stay(&codes)).then_some(codes)).collect();
    Some(Merged { strings, codes })
}

/// Fewer entries, or entries with a long common prefix, are compared as whole strings.
const KEYED_MIN: usize = 16;
const KEYED_BYTES_MAX: usize = 64;

/// Sorts entries whose strings are equal before byte `from`, and whose keys are the next eight
/// bytes: by key, then those with equal keys by the eight bytes after. This compares adjacent words
/// instead of strings scattered over memory.
fn sort<'t>(entries: &mut [Entry], from: usize, text: &impl Fn(&Entry) -> &'t [u8]) {
    if entries.len() < KEYED_MIN || from >= KEYED_BYTES_MAX {
        entries.sort_unstable_by(|a, b| text(a).cmp(text(b)));
        return;
    }
    entries.sort_unstable_by_key(|entry| entry.key);
    let next = from + size_of::<i64>();
    for same in entries.chunk_by_mut(|a, b| a.key == b.key).filter(|same| same.len() > 1) {
        if same.len() >= KEYED_MIN {
            for entry in same.iter_mut() {
                entry.key = bytes_key(text(entry).get(next..).unwrap_or_default());
            }
        }
        sort(same, next, text);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn merged_strings_are_sorted(
            lists in prop::collection::vec(
                prop::collection::btree_set("(a{0,40}|[ab\0é]{0,12}|.{0,4})", 0..120),
                1..4,
            ),
        ) {
            let dictionaries: Vec<Strings> = lists.iter().map(|list| {
                let mut strings = Strings::new();
                // In reverse order.
                for text in list.iter().rev() {
                    strings.push(text);
                }
                strings
            }).collect();
            let all: std::collections::BTreeSet<&str> =
                lists.iter().flatten().map(String::as_str).collect();
            let merged = merge(&dictionaries.iter().collect::<Vec<_>>());
            let Merged { strings, codes } = merged.expect("few strings");
            prop_assert!(strings.iter().eq(all.iter().copied()));
            for (dictionary, codes) in dictionaries.iter().zip(&codes) {
                for (old, text) in dictionary.iter().enumerate() {
                    let new = codes.as_ref().map_or(old, |codes| codes[old] as usize);
                    prop_assert_eq!(strings.get(new), text);
                }
            }
        }
    }
}
