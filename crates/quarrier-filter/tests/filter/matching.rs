//! LIKE compared with an oracle, and the other pattern languages.

use proptest::prelude::*;
use quarrier_filter::expr::Matcher;
use quarrier_filter::matching::{Matching, Shape};

use crate::asked::check;

/// LIKE by its definition: `%` matches nothing, or a character and `%` again.
fn like(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['%', rest @ ..], _) => {
            like(rest, text) || text.split_first().is_some_and(|(_, text)| like(pattern, text))
        }
        (['_', rest @ ..], [_, text @ ..]) => like(rest, text),
        ([a, rest @ ..], [b, text @ ..]) => a == b && like(rest, text),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn like_matches_its_definition(pattern in "[aéb%_]{0,9}", text in "[aéb]{0,12}") {
        let characters = |text: &str| text.chars().collect::<Vec<char>>();
        let expected = like(&characters(&pattern), &characters(&text));
        let matching = Matching::new(&pattern, None, Matcher::Like).unwrap();
        prop_assert_eq!(matching.is_match(&text), expected);
        let shape = match matching.shape() {
            Shape::Exact(part) => Some(text == part),
            Shape::Prefix(part) => Some(text.starts_with(part)),
            Shape::Suffix(part) => Some(text.ends_with(part)),
            Shape::Contains(part) => Some(text.contains(part)),
            Shape::Everything => Some(true),
            Shape::Other => None,
        };
        prop_assert_eq!(shape.unwrap_or(expected), expected);
        // SIMILAR TO gives these the same meaning.
        let similar = Matching::new(&pattern, None, Matcher::Similar).unwrap();
        prop_assert_eq!(similar.is_match(&text), expected);
    }

    #[test]
    fn an_escaped_text_matches_itself_alone(text in "[a%_!|*(\\[]{0,9}", other in "[a%_!]{0,9}") {
        for by in [Matcher::Like, Matcher::Similar] {
            let mut pattern = String::new();
            for character in text.chars() {
                let is_special = match by {
                    Matcher::Like => "%_!".contains(character),
                    _ => "%_!|*([".contains(character),
                };
                if is_special {
                    pattern.push('!');
                }
                pattern.push(character);
            }
            let matching = Matching::new(&pattern, Some('!'), by).unwrap();
            prop_assert!(matching.is_match(&text));
            prop_assert_eq!(matching.is_match(&other), text == other);
        }
    }
}

#[test]
fn like_matches_all_of_the_text() {
    check(&[
        ("t LIKE 'näh%'", "TRUE"),
        ("t LIKE 'n_h Abc'", "TRUE"),
        ("t LIKE '%abc'", "FALSE"),
        ("t NOT LIKE '%x%'", "TRUE"),
        ("'' LIKE '%'", "TRUE"),
        ("'' LIKE '_'", "FALSE"),
        ("'' LIKE ''", "TRUE"),
        ("'a\nb' LIKE 'a_b'", "TRUE"),
        ("'10%' LIKE '10!%' ESCAPE '!'", "TRUE"),
        ("'10\\%' LIKE '10\\%'", "TRUE"),
        ("'a' LIKE NULL", "NULL"),
        ("t LIKE 'a' ESCAPE NULL", "NULL"),
        ("t LIKE t", "TRUE"),
        ("t LIKE '%' || SUBSTRING(t FROM 5) ", "TRUE"),
        ("nothing LIKE '%'", "NULL"),
    ]);
}

#[test]
fn similar_to_is_the_standards() {
    check(&[
        ("'abc' SIMILAR TO 'abc'", "TRUE"),
        ("'abc' SIMILAR TO 'a'", "FALSE"),
        ("'abc' SIMILAR TO '%(b|d)%'", "TRUE"),
        ("'abc' SIMILAR TO '(b|c)%'", "FALSE"),
        ("'abc' NOT SIMILAR TO 'a_c'", "FALSE"),
        ("'aaa' SIMILAR TO 'a{3}'", "TRUE"),
        ("'aaa' SIMILAR TO 'a{1,2}'", "FALSE"),
        ("'aaa' SIMILAR TO 'a{2,}'", "TRUE"),
        ("'ab12' SIMILAR TO '[a-z]+[0-9]*'", "TRUE"),
        ("'AB' SIMILAR TO '[^a-z]+'", "TRUE"),
        ("'bcd' SIMILAR TO '[a-z^aeiou]+'", "TRUE"),
        ("'bad' SIMILAR TO '[a-z^aeiou]+'", "FALSE"),
        ("'Q7 x' SIMILAR TO '[[:UPPER:]][[:DIGIT:]][[:SPACE:]][[:lower:]]'", "TRUE"),
        ("'a.c' SIMILAR TO 'a.c'", "TRUE"),
        ("'abc' SIMILAR TO 'a.c'", "FALSE"),
        ("'a$^b' SIMILAR TO 'a$!^b' ESCAPE '!'", "TRUE"),
        ("'a%c' SIMILAR TO 'a!%c' ESCAPE '!'", "TRUE"),
        ("'abc' SIMILAR TO 'a!%c' ESCAPE '!'", "FALSE"),
        ("'2020-01' SIMILAR TO '[0-9]{4}-[0-9]{2}'", "TRUE"),
        ("'a]' SIMILAR TO 'a[!]x]' ESCAPE '!'", "TRUE"),
        ("'x' SIMILAR TO ''", "FALSE"),
        ("'' SIMILAR TO '%'", "TRUE"),
        ("'xyx' SIMILAR TO '(x|y)+'", "TRUE"),
        ("NULL SIMILAR TO 'a'", "NULL"),
    ]);
    for wrong in
        ["(", ")", "[", "[]", "a**", "*a", "a{", "a{,2}", "a{2,1}", "[b-a]", "]", "}", "[[:x:]]"]
    {
        assert!(Matching::new(wrong, None, Matcher::Similar).is_err(), "{wrong}");
    }
    assert!(Matching::new("a!b", Some('!'), Matcher::Similar).is_err());
    assert!(Matching::new("a!", Some('!'), Matcher::Similar).is_err());
}

#[test]
fn regular_expressions_are_found_anywhere() {
    check(&[
        ("t LIKE_REGEX 'A.c'", "TRUE"),
        ("t NOT LIKE_REGEX '^A'", "TRUE"),
        ("t ~ '^n.h'", "TRUE"),
        ("t !~ '^n.h'", "FALSE"),
        ("t ~* 'NÄH'", "TRUE"),
        ("t LIKE_REGEX '(?i)ABC$' AND b", "TRUE"),
        ("t REGEXP 'x'", "FALSE"),
        ("nothing ~ 'x'", "NULL"),
    ]);
}
