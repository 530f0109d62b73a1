//! Random rules and scopes, such that strings of the rules occur in the scopes.

/// A pseudo-random number generator (splitmix64).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ x >> 31) % end as u64) as usize
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

const WORDS: [&str; 9] =
    ["alpha", "beta7", "MZ!", "http://x", "ABCDEFGH", "qq", "a1b2c3d4e5", "aaaa", "Kelvin"];

/// Generates a string's declaration, without its name.
fn string(draw: &mut Draw) -> String {
    let word = draw.of(&WORDS);
    match draw.below(10) {
        0..=4 => format!("\"{word}\"{}", modifiers(draw)),
        5 | 6 => hex(draw, word),
        _ => regex(draw, word),
    }
}

fn modifiers(draw: &mut Draw) -> String {
    let mut all = String::new();
    let width = draw.of(&["", "", " wide", " ascii", " ascii wide"]);
    all.push_str(width);
    match draw.below(8) {
        0 => all.push_str(" xor"),
        1 => all.push_str(" xor(1-20)"),
        2 => all.push_str(" base64"),
        3 => all.push_str(" base64wide"),
        4 | 5 => all.push_str(" nocase"),
        _ => {}
    }
    if !all.contains("base64") && draw.one_in(4) {
        all.push_str(" fullword");
    }
    if draw.one_in(12) {
        all.push_str(" private");
    }
    all
}

fn hex(draw: &mut Draw, word: &str) -> String {
    let last = word.len() - 1;
    let mut tokens = vec![];
    for (at, byte) in word.bytes().enumerate() {
        let is_inside = at > 0 && at < last;
        tokens.push(match draw.below(12) {
            0 if is_inside => "??".to_string(),
            1 => format!("{:X}?", byte >> 4),
            2 if is_inside => "[1]".to_string(),
            3 if is_inside => format!("[0-2] {byte:02X}"),
            4 => format!("( {byte:02X} | 00 01 )"),
            5 if is_inside => "~00".to_string(),
            6 => format!("?{:X}", byte & 15),
            _ => format!("{byte:02X}"),
        });
    }
    // A string must not consist of wildcards only.
    format!("{{ {} {:02X} }}", tokens[..last].join(" "), word.as_bytes()[last])
}

fn regex(draw: &mut Draw, word: &str) -> String {
    let word = word.replace('/', "\\/");
    let other = draw.of(&WORDS).replace('/', "\\/");
    let text = match draw.below(9) {
        0 => format!("{word}[0-9]{{1,3}}"),
        1 => format!("({word}|{other})x?"),
        2 => format!("{word}.{{0,5}}{other}"),
        3 => format!("\\b{word}\\b"),
        4 => format!("^{word}"),
        5 => format!("[a-c]+{word}"),
        6 => format!("({word}){{1,2}}\\x00"),
        7 => format!("{word}\\s*{other}$"),
        _ => format!("x?{word}"),
    };
    let flags = draw.of(&["", "", "i", "s"]);
    let modifiers = draw.of(&["", "", " wide", " ascii wide", " nocase", " fullword"]);
    format!("/{text}/{flags}{modifiers}")
}

/// Generates a condition over this many strings, which may refer to this many earlier rules.
fn condition(draw: &mut Draw, strings: usize, rules: usize, depth: usize) -> String {
    let string = format!("s{}", draw.below(strings));
    let number = draw.below(300);
    if depth > 0 && draw.one_in(2) {
        let left = condition(draw, strings, rules, depth - 1);
        let right = condition(draw, strings, rules, depth - 1);
        return match draw.below(5) {
            0 => format!("not ({left})"),
            1 | 2 => format!("(({left}) or ({right}))"),
            _ => format!("(({left}) and ({right}))"),
        };
    }
    match draw.below(30) {
        0 => format!("#{string} > {}", draw.below(3)),
        1 => format!("#{string} == {}", draw.below(3)),
        2 => "any of them".to_string(),
        3 => "all of them".to_string(),
        4 => format!("{} of them", draw.below(3)),
        5 => "none of them".to_string(),
        6 => format!("{}% of them", 1 + draw.below(100)),
        7 => format!("any of (${string}, $s0)"),
        8 => format!("${string} at {}", draw.below(40)),
        9 => format!("${string} in ({}..{number})", draw.below(20)),
        10 => format!("@{string}[1] < {number}"),
        11 => format!("!{string}[1] >= {}", draw.below(12)),
        12 => format!("filesize < {}", 10 * number),
        13 => "uint16(0) == 0x5A4D".to_string(),
        14 => format!("uint8({}) > {}", draw.below(40), draw.below(200)),
        15 => "for any of them : ( $ at 0 )".to_string(),
        16 => format!("for all i in (1..#{string}) : ( @{string}[i] < {number} )"),
        17 => format!("for any i in (0..40) : ( ${string} at i )"),
        18 if rules > 0 => format!("r{}", draw.below(rules)),
        19 if rules > 0 => format!("any of (r{})", draw.below(rules)),
        20 => format!("#{string} in (0..{number}) >= 1"),
        21 => "true".to_string(),
        22 => "filename == \"scope1\"".to_string(),
        23 => format!("#{string} + #s0 == {}", draw.below(4)),
        24 => format!("for all of them : ( # < {} )", 1 + draw.below(3)),
        25 => format!("defined @{string}[2]"),
        26 => "math.entropy(0, filesize) > 2.0".to_string(),
        _ => format!("${string}"),
    }
}

/// Generates a file of rules, named `r0` and so on.
pub(crate) fn rules(draw: &mut Draw, count: usize) -> String {
    let mut text = "import \"math\"\n".to_string();
    for rule in 0..count {
        let strings = 1 + draw.below(4);
        let kind = match draw.below(24) {
            0 | 1 => "private ",
            2 => "global ",
            _ => "",
        };
        let tags = draw.of(&["", " : tag", " : one two"]);
        text.push_str(&format!("{kind}rule r{rule}{tags} {{ // {{\n  strings:\n"));
        for place in 0..strings {
            text.push_str(&format!("    $s{place} = {}\n", string(draw)));
        }
        let depth = draw.below(4);
        // A global rule may only refer to global rules, and there may be none.
        let before = if kind == "global " { 0 } else { rule };
        let condition = condition(draw, strings, before, depth);
        // Every string must be used; this operand is always true.
        text.push_str(&format!("  condition:\n    ({condition}) and (any of them or true)\n}}\n"));
    }
    text
}

/// Generates a scope that contains forms of the words.
pub(crate) fn scope(draw: &mut Draw) -> Vec<u8> {
    let length = draw.below(600);
    let alphabet: &[u8] = draw.of(&[&b"abcx 19\0"[..], &b"\0"[..], &b"az \n"[..]]);
    let mut bytes: Vec<u8> = (0..length).map(|_| alphabet[draw.below(alphabet.len())]).collect();
    for _ in 0..draw.below(8) {
        let planted = planted(draw);
        let at = match draw.below(4) {
            0 => 0,
            1 => bytes.len(),
            _ => draw.below(bytes.len() + 1),
        };
        match draw.one_in(2) {
            true => drop(bytes.splice(at..at, planted)),
            false => {
                let end = (at + planted.len()).min(bytes.len());
                bytes.splice(at..end, planted);
            }
        }
    }
    bytes
}

/// Returns a word in one of its forms.
fn planted(draw: &mut Draw) -> Vec<u8> {
    let word = draw.of(&WORDS).to_string();
    let word = match draw.below(4) {
        0 => word.to_uppercase(),
        1 => format!("{word}{}", draw.of(&WORDS)),
        _ => word,
    };
    let wide = |bytes: &[u8]| bytes.iter().flat_map(|&byte| [byte, 0]).collect::<Vec<u8>>();
    let mut bytes = word.into_bytes();
    if draw.one_in(4) {
        bytes = wide(&bytes);
    }
    match draw.below(6) {
        0 => {
            let key = draw.below(256) as u8;
            bytes.iter().map(|byte| byte ^ key).collect()
        }
        1 => {
            let before = draw.below(3);
            let encoded = base64(&[&b"xyz"[..before], &bytes].concat());
            if draw.one_in(3) { wide(&encoded) } else { encoded }
        }
        _ => bytes,
    }
}

/// Encodes base64 by its definition, with padding.
fn base64(bytes: &[u8]) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = Vec::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| usize::from(group.get(at).copied().unwrap_or(0));
        let value = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let index = value >> (18 - 6 * place) & 63;
            encoded.push(if place <= group.len() { alphabet[index] } else { b'=' });
        }
    }
    encoded
}
