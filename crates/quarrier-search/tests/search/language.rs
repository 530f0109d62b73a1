//! The pattern language, against a naive implementation that tries every way at every position.

use proptest::prelude::*;
use quarrier_core::pipeline::Access;
use quarrier_core::source::Memory;
use quarrier_search::{EngineName, Finding, Options, Pattern, Searcher, parse_file};

use super::oracle::{Cut, run};

/// Compares every engine, on the whole text and in chunks, with the expected findings.
fn check(patterns: &[Pattern], options: Options, text: &[u8], expected: &[Finding]) {
    let engines = EngineName::ALL.into_iter().filter(|engine| engine.is_available());
    for engine in engines.filter(|engine| *engine != EngineName::Memmem) {
        let built = Searcher::builder().options(options).engine(engine).build(patterns.to_vec());
        let searcher = built.unwrap();
        let found = searcher.find_all(text).unwrap();
        assert_eq!(found, expected, "{} on {text:02x?}: {patterns:?}", engine.name());
        let source = Memory::new("text", text);
        for (buffer_bytes, access) in [(1, Access::Window), (7, Access::Read), (64, Access::Read)] {
            let cut = Cut { access, workers: 2, buffers: 3, buffer_bytes };
            assert_eq!(run(&searcher, &source, cut), expected, "{}: {cut:?}", engine.name());
        }
    }
}

/// Maximum length of a match of a pattern with open jumps.
const LENGTH_MAX: usize = 24;

#[derive(Debug, Clone)]
enum Item {
    Byte { value: u8, mask: u8, negated: bool },
    Jump { least: usize, most: Option<usize> },
    Either(Vec<Vec<Item>>),
}

fn written(items: &[Item]) -> String {
    let half = |value: u8, mask: u8| if mask == 0 { "?".into() } else { format!("{value:X}") };
    let item = |item: &Item| match item {
        Item::Byte { value, mask, negated } => {
            let sign = if *negated { "~" } else { "" };
            format!("{sign}{}{}", half(value >> 4, mask >> 4), half(value & 15, mask & 15))
        }
        Item::Jump { least, most: None } => format!("[{least}-]"),
        Item::Jump { least, most: Some(most) } if least == most => format!("[{least}]"),
        Item::Jump { least, most: Some(most) } => format!("[{least}-{most}]"),
        Item::Either(ways) => {
            format!("({})", ways.iter().map(|way| written(way)).collect::<Vec<_>>().join(" | "))
        }
    };
    items.iter().map(item).collect::<Vec<_>>().join(" ")
}

/// Returns every end of a match of `items` that begins at `at`, by exhaustive search.
fn ends(items: &[Item], text: &[u8], at: usize) -> Vec<usize> {
    let Some((item, rest)) = items.split_first() else { return vec![at] };
    let next: Vec<usize> = match item {
        Item::Byte { value, mask, negated } => match text.get(at) {
            Some(byte) if (byte & mask == *value) != *negated => vec![at + 1],
            _ => Vec::new(),
        },
        Item::Jump { least, most } => {
            let most = most.unwrap_or(text.len()).min(text.len());
            (at + least..=at + most).filter(|end| *end <= text.len()).collect()
        }
        Item::Either(ways) => ways.iter().flat_map(|way| ends(way, text, at)).collect(),
    };
    let mut all: Vec<usize> = next.into_iter().flat_map(|at| ends(rest, text, at)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn letter() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(b'a'), 3 => Just(b'b'), 1 => Just(b'A'), 1 => Just(0u8), 1 => any::<u8>()]
}

fn byte_item() -> impl Strategy<Value = Item> {
    let mask = prop_oneof![8 => Just(0xFFu8), 1 => Just(0xF0u8), 1 => Just(0x0Fu8), 1 => Just(0u8)];
    (letter(), mask, prop::bool::weighted(0.15)).prop_map(|(value, mask, negated)| Item::Byte {
        value: value & mask,
        mask,
        negated: negated && mask != 0,
    })
}

fn jump() -> impl Strategy<Value = Item> {
    (0usize..4, prop::option::weighted(0.8, 0usize..4))
        .prop_map(|(least, more)| Item::Jump { least, most: more.map(|more| least + more) })
}

/// Generates bytes with occasional jumps or alternatives between them.
fn items(depth: u32) -> BoxedStrategy<Vec<Item>> {
    let piece = match depth {
        0 => prop_oneof![3 => byte_item(), 1 => jump()].boxed(),
        _ => {
            let ways = prop::collection::vec(items(depth - 1), 1..4).prop_map(Item::Either);
            prop_oneof![6 => byte_item(), 2 => jump(), 2 => ways].boxed()
        }
    };
    (byte_item(), prop::collection::vec(piece, 0..4), byte_item())
        .prop_map(|(first, mut pieces, last)| {
            pieces.insert(0, first);
            pieces.push(last);
            pieces
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn hexadecimal_patterns_are_found_wherever_a_match_begins(
        drawn in prop::collection::vec(items(2), 1..4),
        text in prop::collection::vec(letter(), 0..160),
    ) {
        let options = Options { regex_length_bytes_max: LENGTH_MAX, ..Options::default() };
        let mut meant = Vec::new();
        for items in drawn {
            // Patterns that begin with too few bits, or whose matches may be too long, are refused.
            let Ok(pattern) = Pattern::hex(&written(&items)) else { continue };
            if Searcher::builder().options(options).build(vec![pattern.clone()]).is_ok() {
                meant.push((pattern, items));
            }
        }
        prop_assume!(!meant.is_empty());
        let mut expected = Vec::new();
        for offset in 0..text.len() {
            for (index, (_, items)) in meant.iter().enumerate() {
                let within = &text[offset..text.len().min(offset + LENGTH_MAX)];
                if let Some(length) = ends(items, within, 0).first() {
                    let (offset, length) = (offset as u64, *length as u32);
                    expected.push(Finding { offset, pattern: index as u32, length });
                }
            }
        }
        let patterns: Vec<Pattern> = meant.into_iter().map(|(pattern, _)| pattern).collect();
        check(&patterns, options, &text, &expected);
    }

    #[test]
    fn literals_are_found_in_every_form(
        drawn in prop::collection::vec((prop::collection::vec(character(), 1..5), kind()), 1..4),
        wanted in wanted(),
        pieces in prop::collection::vec((prop::collection::vec(character(), 1..6), 0usize..9), 1..9),
    ) {
        let text: Vec<u8> = pieces.iter().flat_map(|(text, form)| data(text, *form)).collect();
        let mut lines: Vec<(String, Vec<char>, Kind)> = Vec::new();
        for (characters, kind) in drawn {
            let written: String = characters.iter().collect();
            if kind != Kind::Base64 || written.len() >= 3 {
                lines.push((format!("{}{written}", kind.prefix()), characters, kind));
            }
        }
        prop_assume!(!lines.is_empty());
        let file: String = lines.iter().map(|(line, ..)| format!("n = {line}\n")).collect();
        let patterns = parse_file(file.as_bytes()).unwrap();
        let mut expected = Vec::new();
        for (index, (_, characters, kind)) in lines.iter().enumerate() {
            for (offset, length) in occurrences(characters, *kind, &wanted, &text) {
                let (offset, length) = (offset as u64, length as u32);
                expected.push(Finding { offset, pattern: index as u32, length });
            }
        }
        expected.sort_unstable();
        check(&patterns, wanted.options(), &text, &expected);
    }
}

/// Letters with every kind of case, and the characters that equal them if case is ignored.
const FOLDED: [(char, &[char]); 13] = [
    ('a', &['a', 'A']),
    ('K', &['k', 'K']),
    ('s', &['s', 'S']),
    ('é', &['é', 'É']),
    ('Я', &['я', 'Я']),
    ('р', &['р', 'Р']),
    ('σ', &['σ', 'ς', 'Σ']),
    ('ſ', &['ſ', 's', 'S']),
    ('\u{212A}', &['\u{212A}', 'k', 'K']),
    ('ß', &['ß', 'ẞ']),
    ('日', &['日']),
    ('𐐀', &['𐐀', '𐐨']),
    ('_', &['_']),
];

fn character() -> impl Strategy<Value = char> {
    (0..FOLDED.len()).prop_map(|place| FOLDED[place].0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Word,
    Utf16Be,
    Xor,
    Base64,
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Kind::Plain => "",
            Kind::Word => "word:",
            Kind::Utf16Be => "utf16be:",
            Kind::Xor => "xor:",
            Kind::Base64 => "base64:",
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Plain),
        2 => Just(Kind::Word),
        1 => Just(Kind::Utf16Be),
        1 => Just(Kind::Xor),
        1 => Just(Kind::Base64),
    ]
}

/// The requested properties of a set.
#[derive(Debug, Clone)]
struct Wanted {
    ignore_case: bool,
    utf16: bool,
    utf16be: bool,
    xor: bool,
    base64: bool,
    encodings: Vec<&'static str>,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let encodings =
        prop::sample::subsequence(vec!["cp1251", "shift_jis", "utf-16be", "latin1"], 0..4);
    let rare = || prop::bool::weighted(0.2);
    (any::<bool>(), any::<bool>(), rare(), rare(), rare(), encodings).prop_map(
        |(ignore_case, utf16, utf16be, xor, base64, encodings)| Wanted {
            ignore_case,
            utf16,
            utf16be,
            xor,
            base64,
            encodings,
        },
    )
}

impl Wanted {
    fn options(&self) -> Options {
        Options {
            ignore_case: self.ignore_case,
            utf16: self.utf16,
            utf16be: self.utf16be,
            xor: self.xor,
            base64: self.base64,
            encodings: quarrier_search::Encodings::parse(&self.encodings.join(",")).unwrap(),
            ..Options::default()
        }
    }
}

/// Returns a string in random case, in a form that data may have.
fn data(text: &[char], form: usize) -> Vec<u8> {
    let any_case = |place: usize, c: &char| -> char {
        let (_, variants) = FOLDED.iter().find(|(one, _)| one == c).unwrap();
        variants[(place + form) % variants.len()]
    };
    let text: String = text.iter().enumerate().map(|(place, c)| any_case(place, c)).collect();
    let wide = |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect();
    let paged = |label: &str| {
        let page = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
        page.encode(&text).0.into_owned()
    };
    match form {
        0 | 1 => text.into_bytes(),
        2 => wide(u16::to_le_bytes),
        3 => wide(u16::to_be_bytes),
        4 => paged("cp1251"),
        5 => paged("shift_jis"),
        6 => text.bytes().map(|byte| byte ^ 0x41).collect(),
        7 => base64_of(format!("x{text}yz").as_bytes()),
        _ => vec![b' ', 0],
    }
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn bits(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect()
}

fn base64_of(bytes: &[u8]) -> Vec<u8> {
    let bits = bits(bytes);
    let six = |six: &[u8]| (0..6).fold(0, |v, i| v << 1 | six.get(i).copied().unwrap_or(0));
    bits.chunks(6).map(|chunk| LETTERS[usize::from(six(chunk))]).collect()
}

/// Returns the six bits of a character in either alphabet.
fn six_bits(letter: u8) -> Option<Vec<u8>> {
    let letter = match letter {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    };
    let value = LETTERS.iter().position(|&one| one == letter)? as u8;
    Some((0..6).rev().map(|bit| value >> bit & 1).collect())
}

/// Returns all strings of characters that a pattern matches.
fn spellings(characters: &[char], ignore_case: bool) -> Vec<String> {
    let mut all = vec![String::new()];
    for c in characters {
        let (_, variants) = FOLDED.iter().find(|(one, _)| one == c).unwrap();
        let variants = if ignore_case { *variants } else { std::slice::from_ref(c) };
        all = all
            .iter()
            .flat_map(|start| variants.iter().map(move |v| format!("{start}{v}")))
            .collect();
    }
    all
}

fn is_of_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Returns every place and length of a match, without duplicates.
fn occurrences(
    characters: &[char],
    kind: Kind,
    wanted: &Wanted,
    text: &[u8],
) -> Vec<(usize, usize)> {
    let spellings = spellings(characters, wanted.ignore_case);
    let is_plain = matches!(kind, Kind::Plain | Kind::Word);
    let has = |name: &str| is_plain && wanted.encodings.contains(&name);
    let mut all = Vec::new();
    let mut stands = |bytes: &[u8], width: usize, low: usize| {
        for (at, there) in text.windows(bytes.len()).enumerate() {
            let end = at + bytes.len();
            let side = |at: usize| match width {
                1 => is_of_word(text.get(at)),
                _ => text.get(at + 1 - low) == Some(&0) && is_of_word(text.get(at + low)),
            };
            let in_word = at.checked_sub(width).is_some_and(side) || side(end);
            if there == bytes && !(kind == Kind::Word && in_word) {
                all.push((at, bytes.len()));
            }
        }
    };
    for spelling in &spellings {
        let wide = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            spelling.encode_utf16().flat_map(bytes).collect()
        };
        if is_plain {
            stands(spelling.as_bytes(), 1, 0);
        }
        if is_plain && wanted.utf16 {
            stands(&wide(u16::to_le_bytes), 2, 0);
        }
        if kind == Kind::Utf16Be || is_plain && wanted.utf16be || has("utf-16be") {
            stands(&wide(u16::to_be_bytes), 2, 1);
        }
        for label in ["cp1251", "shift_jis", "latin1"].into_iter().filter(|label| has(label)) {
            let page = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
            // The pattern itself must be in the code page.
            let given: String = characters.iter().collect();
            let (bytes, _, is_lossy) = page.encode(spelling);
            if !is_lossy && !page.encode(&given).2 {
                stands(&bytes, 1, 0);
            }
        }
    }
    // Under xor and in base64, only ASCII letters have case.
    let given: String = characters.iter().collect();
    let is_same = |a: u8, b: u8| {
        a == b || wanted.ignore_case && a.is_ascii_alphabetic() && a & 0xDF == b & 0xDF
    };
    let given = given.as_bytes();
    if kind == Kind::Xor || kind == Kind::Plain && wanted.xor {
        let keys = if kind == Kind::Xor { 0..=255 } else { 1..=255 };
        for key in keys {
            for (at, there) in text.windows(given.len()).enumerate() {
                if given.iter().zip(there).all(|(a, b)| is_same(*a, b ^ key)) {
                    all.push((at, given.len()));
                }
            }
        }
    }
    if kind == Kind::Base64 || kind == Kind::Plain && wanted.base64 && given.len() >= 3 {
        let wanted_bits = bits(given);
        let free: Vec<u8> = given
            .iter()
            .flat_map(|b| {
                bits(&[if wanted.ignore_case && b.is_ascii_alphabetic() { 0x20 } else { 0 }])
            })
            .collect();
        for lead in 0..3 {
            // The characters that hold a bit, and how many bits of the first belong to the byte
            // before.
            let (first, last) = (8 * lead / 6, (8 * (lead + given.len()) - 1) / 6);
            let skipped = 8 * lead - 6 * first;
            for (at, there) in text.windows(last - first + 1).enumerate() {
                let Some(read) = there.iter().map(|&l| six_bits(l)).collect::<Option<Vec<_>>>()
                else {
                    continue;
                };
                let read = read.concat();
                let meant = wanted_bits.iter().zip(&free).zip(&read[skipped..]);
                if meant.clone().count() == wanted_bits.len()
                    && meant.into_iter().all(|((wanted, free), read)| *free == 1 || wanted == read)
                {
                    all.push((at, there.len()));
                }
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn places(line: &str, options: Options, text: &[u8]) -> Vec<(u64, u32)> {
    let patterns = parse_file(line.as_bytes()).unwrap();
    let searcher = Searcher::builder().options(options).build(patterns).unwrap();
    searcher.find_all(text).unwrap().iter().map(|f| (f.offset, f.length)).collect()
}

#[test]
fn jumps_alternatives_and_negation_match_by_definition() {
    let found = |line: &str, text: &[u8]| places(line, Options::default(), text);
    assert_eq!(found("hex:FF [2-3] D8", b"\xFF..\xD8\xFF...\xD8\xFF....\xD8"), [(0, 4), (4, 5)]);
    assert_eq!(found("hex:41 [1-] 42", b"AB AAB B"), [(0, 6), (3, 3), (4, 4)]);
    assert_eq!(found("hex:(41 42 | 43) 44", b"ABD CD BD"), [(0, 3), (4, 2)]);
    assert_eq!(found("hex:41 ~42 ~?3", b"ABD ACD ACC ADD"), [(4, 3), (12, 3)]);
    assert_eq!(found("hex:?? ?? [2-4] FF D8", b"..aa\xFF\xD8"), [(0, 6)]);
    // The shortest match at each place where one begins.
    assert_eq!(found("hex:41 [0-9] 42", b"A.B.B"), [(0, 3)]);
}

#[test]
fn a_match_is_found_up_to_the_maximum_length() {
    let text = [b"A".as_slice(), &[0; 50_000], b"B", &[0; 50_000], b"C"].concat();
    let found = |line: &str| places(line, Options::default(), &text);
    assert_eq!(found("hex:41 [9-] 42"), [(0, 50_002)]);
    assert_eq!(found("hex:41 [9-] 43"), []);
    let longer = Options { regex_length_bytes_max: 1 << 20, ..Options::default() };
    assert_eq!(places("hex:41 [9-] 43", longer, &text), [(0, 100_003)]);
    assert_eq!(found("hex:41 [9-60000] 42"), [(0, 50_002)]);
}

#[test]
fn hexadecimal_patterns_that_cannot_be_looked_for_are_refused() {
    for (text, reason) in [
        ("?? [1-2] ??", "begins with wildcards"),
        ("?? [0-] 41", "begins with wildcards"),
        ("~41 [0-5000] 42", "begins with wildcards"),
        ("~41", "begins with wildcards"),
    ] {
        let error = Pattern::hex(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let pattern = Pattern::hex("41 42 43 [0-70000] 44").unwrap();
    let error = Searcher::builder().build(vec![pattern]).err().unwrap().to_string();
    assert!(error.contains("may match 70004 bytes; raise --regex-max-length"), "{error}");
}

#[test]
fn a_word_is_judged_by_its_neighbours_across_chunks_and_in_utf16() {
    let found = |line: &str, text: &[u8]| places(line, Options::default(), text);
    assert_eq!(found("word:ab", b"ab abc ab_ xab (ab)"), [(0, 2), (16, 2)]);
    assert_eq!(found("word:a a", b"a a a"), [(0, 3), (2, 3)], "words may overlap");
    assert_eq!(found("word:utf16:a", b"a\0 \0a\0b\0 a\0"), [(0, 2), (9, 2)]);
    let text: Vec<u8> = b"ab xab ".repeat(50);
    let patterns = parse_file(b"word:ab").unwrap();
    let expected: Vec<Finding> =
        (0..50).map(|n| Finding { offset: 7 * n, pattern: 0, length: 2 }).collect();
    check(&patterns, Options::default(), &text, &expected);
}

#[test]
fn base64_is_found_at_each_place_of_its_group() {
    for lead in 0..3usize {
        let encoded = base64_of(&[&b"xyz"[..lead], b"password", b"!!"].concat());
        let found = places("base64:password", Options::default(), &encoded);
        let (first, last) = (8 * lead / 6, (8 * (lead + 8) - 1) / 6);
        assert_eq!(found, [(first as u64, (last - first + 1) as u32)], "{lead}");
        let shout = base64_of(&[&b"xyz"[..lead], b"PassWord", b"!!"].concat());
        assert!(places("base64:password", Options::default(), &shout).is_empty());
        let ignore = Options { ignore_case: true, ..Options::default() };
        assert_eq!(places("base64:password", ignore, &shout).len(), 1);
    }
}

#[test]
fn thousands_of_literals_in_either_case_are_found_within_base64_and_in_cyrillic() {
    let letters: Vec<char> = ('р'..='я').collect();
    let word = |n: usize| -> String {
        (0..6).map(|place| letters[((n >> (4 * (place % 4))) % 16) ^ place]).collect()
    };
    let lines: String = (0..3_000).map(|n| format!("{}\nbase64:Secret{n:05}\n", word(n))).collect();
    let mut text = Vec::new();
    for n in (0..3_000).step_by(100) {
        text.extend(word(n).to_uppercase().into_bytes());
        text.extend(base64_of(format!("xsECRET{n:05}!").as_bytes()));
    }
    let options = Options { ignore_case: true, ..Options::default() };
    let found = places(&lines, options, &text);
    assert_eq!(found.len(), 60, "{found:?}");
}
