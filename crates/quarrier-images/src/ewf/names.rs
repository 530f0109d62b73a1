//! The extensions of segments: `.E01` to `.E99`, then `.EAA` to `.EZZ`, `.FAA` to `.ZZZ`; in SMART,
//! `.s01` and so on.

use std::path::{Path, PathBuf};

/// Whether `path` has the name of a first segment: it ends in `.E01` or `.s01`, in any case.
pub fn is_ewf(path: &Path) -> bool {
    let is_first = |ending: &str| ["e01", "s01"].iter().any(|one| ending.eq_ignore_ascii_case(one));
    ending(path).is_some_and(is_first)
}

/// The paths of an image's segments, from `first` up to the first missing one.
pub fn segments_from(first: &Path) -> Vec<PathBuf> {
    segments_among(first, Path::exists)
}

/// Like [`segments_from`], for files that `exists` knows.
pub fn segments_among(first: &Path, exists: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let others = following(first).take_while(|path| exists(path));
    std::iter::once(first.to_path_buf()).chain(others).collect()
}

/// The names of all possible segments after `first`; none if `first` is not named like a first segment.
pub(crate) fn following(first: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    let ending = ending(first).filter(|_| is_ewf(first)).unwrap_or_default();
    let is_lower = ending.starts_with(|first: char| first.is_ascii_lowercase());
    let letter = letter_of(first);
    let numbers = if ending.is_empty() { 0..0 } else { 2..u32::MAX };
    numbers.map_while(move |number| ending_of(number, letter)).map(move |mut ending| {
        if is_lower {
            ending.make_ascii_lowercase();
        }
        first.with_extension(ending)
    })
}

/// The first letter of the segments' extensions.
pub(crate) fn letter_of(first: &Path) -> u8 {
    let is_smart = ending(first).is_some_and(|ending| ending.starts_with(['s', 'S']));
    if is_smart { b'S' } else { b'E' }
}

/// The extension of segment `number`, which starts at 1, in a series that starts with `letter`; `None`
/// beyond `ZZZ`.
pub(crate) fn ending_of(number: u32, letter: u8) -> Option<String> {
    let Some(lettered) = number.checked_sub(100) else {
        return Some(format!("{}{number:02}", char::from(letter)));
    };
    let nth = |index: u32| u8::try_from(index).ok().map(|index| char::from(b'A' + index));
    let first = u32::from(letter - b'A') + lettered / (26 * 26);
    let letters = [first, lettered / 26 % 26, lettered % 26];
    (first < 26).then(|| letters.into_iter().filter_map(nth).collect())
}

fn ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::ending_of;

    #[test]
    fn endings_count_by_numbers_and_then_by_letters() {
        let of = |number| ending_of(number, b'E').unwrap_or_default();
        assert_eq!([of(1), of(9), of(99)], ["E01", "E09", "E99"]);
        assert_eq!([of(100), of(101), of(125), of(126)], ["EAA", "EAB", "EAZ", "EBA"]);
        assert_eq!([of(775), of(776)], ["EZZ", "FAA"]);
        assert_eq!(of(99 + 22 * 26 * 26), "ZZZ");
        assert_eq!(ending_of(100 + 22 * 26 * 26, b'E'), None);
        let of = |number| ending_of(number, b'S').unwrap_or_default();
        assert_eq!([of(1), of(99), of(100), of(776)], ["S01", "S99", "SAA", "TAA"]);
    }
}
