//! Patterns of LIKE for engines in which the escape character is always the backslash.

/// Translates a pattern with the given escape character, or none, for an engine in which `\%`, `\_`
/// and `\\` are literal characters.
///
/// # Errors
/// The reason, if the escape character precedes anything but `%`, `_` and itself.
pub fn in_backslashes(pattern: &str, escape: Option<char>) -> Result<String, String> {
    let mut engine = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            match characters.next() {
                Some(next) if matches!(next, '%' | '_') || Some(next) == escape => {
                    push_literally(next, &mut engine);
                }
                _ => {
                    return Err(format!(
                        "the pattern '{pattern}' has its escape character {character} before \
                         something other than %, _ and {character}"
                    ));
                }
            }
        } else if matches!(character, '%' | '_') {
            engine.push(character);
        } else {
            push_literally(character, &mut engine);
        }
    }
    Ok(engine)
}

/// Appends a literal character to a pattern of such an engine.
pub fn push_literally(character: char, engine: &mut String) {
    if matches!(character, '%' | '_' | '\\') {
        engine.push('\\');
    }
    engine.push(character);
}

#[cfg(test)]
mod tests {
    use super::in_backslashes;

    #[test]
    fn the_escape_character_becomes_the_backslash() {
        let engine = |pattern, escape| in_backslashes(pattern, escape).ok();
        assert_eq!(engine("a!_b", Some('!')).as_deref(), Some("a\\_b"));
        assert_eq!(engine("a\\b", None).as_deref(), Some("a\\\\b"));
        assert_eq!(engine("a!!_", Some('!')).as_deref(), Some("a!_"));
        assert_eq!(engine("a\\%", Some('\\')).as_deref(), Some("a\\%"));
        assert_eq!(engine("a!b", Some('!')), None);
        assert_eq!(engine("a!\\", Some('!')), None);
        assert_eq!(engine("a!", Some('!')), None);
    }
}
