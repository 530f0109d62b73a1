//! How segments are named: `.E01` to `.E99`, then `.EAA` to `.EZZ`, `.FAA` to `.ZZZ`.

use std::path::{Path, PathBuf};

/// Whether `path` is named as the first segment of an image: it ends in `.E01` or `.e01`.
pub fn is_ewf(path: &Path) -> bool {
    ending(path).is_some_and(|ending| ending.eq_ignore_ascii_case("e01"))
}

/// The paths of an image's segments, from `first` on, as far as they exist without a gap.
pub fn segments_from(first: &Path) -> Vec<PathBuf> {
    let mut paths = vec![first.to_path_buf()];
    let is_lower = ending(first).is_some_and(|ending| ending.starts_with('e'));
    for number in 2.. {
        let Some(mut ending) = ending_of(number) else { break };
        if is_lower {
            ending.make_ascii_lowercase();
        }
        let next = first.with_extension(ending);
        if !next.exists() {
            break;
        }
        paths.push(next);
    }
    paths
}

/// The ending of a segment, which are numbered from 1, or `None` beyond `ZZZ`.
pub(crate) fn ending_of(number: u32) -> Option<String> {
    let Some(lettered) = number.checked_sub(100) else { return Some(format!("E{number:02}")) };
    let letter = |index: u32| u8::try_from(index).ok().map(|index| char::from(b'A' + index));
    let first = 4 + lettered / (26 * 26);
    let letters = [first, lettered / 26 % 26, lettered % 26];
    (first < 26).then(|| letters.into_iter().filter_map(letter).collect())
}

fn ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::ending_of;

    #[test]
    fn endings_count_by_numbers_and_then_by_letters() {
        let of = |number| ending_of(number).unwrap_or_default();
        assert_eq!([of(1), of(9), of(99)], ["E01", "E09", "E99"]);
        assert_eq!([of(100), of(101), of(125), of(126)], ["EAA", "EAB", "EAZ", "EBA"]);
        assert_eq!([of(775), of(776)], ["EZZ", "FAA"]);
        assert_eq!(of(99 + 22 * 26 * 26), "ZZZ");
        assert_eq!(ending_of(100 + 22 * 26 * 26), None);
    }
}
