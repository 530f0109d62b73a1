//! Suggestions for unknown names.

use quarrier_messages::{HiddenColumns, LINE_COLUMN};

/// Maximum number of names to show.
const SHOWN_MAX: usize = 8;

/// Maximum number of characters of a name to compare.
const COMPARED_MAX: usize = 64;

/// Makes the error for an unknown name: shows similar `names` first, then others.
pub fn unknown_column<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> String {
    let shown_name = crate::matching::shortened(name);
    let hidden = HiddenColumns::of_name(name);
    if hidden.offset || hidden.message {
        return format!(
            "there is no column '{shown_name}': only messages of text formats have it; rows of Arrow and \
             Parquet have {LINE_COLUMN}, their number"
        );
    }
    let mut names: Vec<(usize, &str)> = names.map(|known| (distance(name, known), known)).collect();
    if names.is_empty() {
        return format!("there is no column '{shown_name}': there are no messages");
    }
    names.sort_by_key(|(distance, _)| *distance);
    let close = |&&(distance, known): &&(usize, &str)| {
        let shorter = known.chars().count().min(name.chars().count());
        distance <= (shorter / 3).max(1) && distance < shorter
    };
    let near: Vec<&str> = names.iter().take(3).filter(close).map(|(_, known)| *known).collect();
    let hint = match near.as_slice() {
        [] => "; there".to_string(),
        near => format!("; did you mean {}? There", near.join(" or ")),
    };
    let shown: Vec<&str> = names.iter().take(SHOWN_MAX).map(|(_, known)| *known).collect();
    let more = if names.len() > SHOWN_MAX { " …" } else { "" };
    format!("there is no column '{shown_name}'{hint} are: {}{more}", shown.join(", "))
}

/// Returns the edit distance between two names, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let lower = |text: &str| -> Vec<char> {
        text.chars().take(COMPARED_MAX).map(|c| c.to_ascii_lowercase()).collect()
    };
    let (a, b) = (lower(a), lower(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, unknown_column};

    #[test]
    fn names_that_are_misspelt_are_offered() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "ab"), 2);
        let names = ["id", "price", "qty", "symbol"];
        let said = unknown_column("Pricee", names.into_iter());
        assert!(
            said.starts_with("there is no column 'Pricee'; did you mean price? There are: "),
            "{said}"
        );
        let said = unknown_column("_OFFSET", names.into_iter());
        assert!(said.contains("rows of Arrow and Parquet have _line"), "{said}");
        assert!(!unknown_column("zzz", names.into_iter()).contains("mean"));
        assert!(unknown_column("a", [].into_iter()).contains("no message"));
    }
}
