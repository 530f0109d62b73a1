//! Many dictionaries, in the order of first sight, become one in the order of its texts.

use crate::column::{Texts, text_key};

/// See [`merge`].
pub(super) struct Merged {
    /// All texts, in order, each once.
    pub(super) texts: Texts,
    /// For each dictionary the new code of each old one; none where all codes stay.
    pub(super) codes: Vec<Option<Vec<u32>>>,
}

/// A text of one of the dictionaries. Most comparisons end with the key.
struct Entry {
    key: i64,
    dictionary: u32,
    code: u32,
}

/// Joins dictionaries; `None` where that is too much text for one.
pub(super) fn merge(dictionaries: &[&Texts]) -> Option<Merged> {
    let mut entries = Vec::with_capacity(dictionaries.iter().map(|texts| texts.len()).sum());
    for (dictionary, texts) in dictionaries.iter().enumerate() {
        entries.extend(texts.iter().enumerate().map(|(code, text)| Entry {
            key: text_key(text),
            dictionary: dictionary as u32,
            code: code as u32,
        }));
    }
    let text = |entry: &Entry| dictionaries[entry.dictionary as usize].get(entry.code as usize);
    entries.sort_unstable_by(|a, b| a.key.cmp(&b.key).then_with(|| text(a).cmp(text(b))));
    let mut texts = Texts::new();
    let mut codes: Vec<Vec<u32>> =
        dictionaries.iter().map(|dictionary| vec![0; dictionary.len()]).collect();
    let mut last: Option<(&str, u32)> = None;
    for entry in &entries {
        let text = text(entry);
        let code = match last {
            Some((same, code)) if same == text => code,
            _ => texts.push(text)?,
        };
        last = Some((text, code));
        codes[entry.dictionary as usize][entry.code as usize] = code;
    }
    let stay = |codes: &[u32]| codes.iter().enumerate().all(|(old, &new)| old == new as usize);
    let codes = codes.into_iter().map(|codes| (!stay(&codes)).then_some(codes)).collect();
    Some(Merged { texts, codes })
}
