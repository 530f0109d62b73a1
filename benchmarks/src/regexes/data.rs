//! Text for the sets: prose, sources, logs, tables of hashes, with occasional lines that a rule of
//! the set matches.

use crate::random::{Random, vocabulary};

/// Frequent English words, including those in rules.
const WORDS: [&str; 123] = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "this",
    "are",
    "or",
    "his",
    "from",
    "at",
    "which",
    "but",
    "have",
    "an",
    "had",
    "they",
    "you",
    "were",
    "their",
    "one",
    "all",
    "we",
    "can",
    "her",
    "has",
    "there",
    "been",
    "if",
    "more",
    "when",
    "will",
    "would",
    "who",
    "so",
    "no",
    "out",
    "up",
    "into",
    "them",
    "then",
    "some",
    "could",
    "time",
    "these",
    "two",
    "may",
    "first",
    "other",
    "new",
    "now",
    "only",
    "like",
    "such",
    "access",
    "user",
    "key",
    "value",
    "error",
    "file",
    "server",
    "token",
    "request",
    "password",
    "connection",
    "timeout",
    "client",
    "service",
    "process",
    "system",
    "data",
    "message",
    "control",
    "author",
    "secretary",
    "monkey",
    "keyboard",
    "capital",
    "rapid",
    "therapist",
    "information",
    "number",
    "address",
    "network",
    "report",
    "result",
    "return",
    "default",
    "update",
    "version",
    "select",
    "union",
    "command",
    "script",
    "before",
    "after",
    "between",
    "through",
    "because",
    "against",
    "without",
    "another",
    "nothing",
    "something",
    "together",
    "important",
    "development",
    "international",
    "understanding",
    "responsibility",
];

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HEX: &[u8] = b"0123456789abcdef";
const ALNUM: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LOWER: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Makes a text of `size` bytes: the same on every machine.
pub(crate) fn text(size: usize) -> Vec<u8> {
    let mut random = Random::new(34);
    let rare = vocabulary(&mut Random::new(33), 4000);
    let mut text = Vec::with_capacity(size + 4096);
    while text.len() < size {
        match random.below(100) {
            0..55 => prose(&mut random, &rare, &mut text),
            55..75 => source(&mut random, &rare, &mut text),
            75..92 => log(&mut random, &rare, &mut text),
            92..97 => json(&mut random, &mut text),
            _ => secret(&mut random, &rare, &mut text),
        }
    }
    text.truncate(size);
    text
}

fn prose(random: &mut Random, rare: &[String], text: &mut Vec<u8>) {
    for _ in 0..4 + random.below(14) {
        // The square makes the first words frequent.
        let rank = random.below(WORDS.len()) * random.below(WORDS.len()) / WORDS.len();
        let word = if random.below(400) == 0 { random.pick(rare).as_str() } else { WORDS[rank] };
        text.extend_from_slice(word.as_bytes());
        text.push(b' ');
    }
    text.extend_from_slice(b"\n");
}

fn source(random: &mut Random, rare: &[String], text: &mut Vec<u8>) {
    let name =
        if random.below(50) == 0 { random.pick(rare).as_str() } else { *random.pick(&WORDS) };
    let (other, number) = (*random.pick(&WORDS), random.below(100_000));
    let line = match random.below(6) {
        0 => format!("    let {name}_{other} = self.{other}({number});\n"),
        1 => format!("    if ({name} != NULL && {other}[{}] == 0x{number:x}) {{\n", number % 64),
        2 => format!("{name}.{other} = \"{other} {name}\"\n"),
        3 => format!("#define {}_{} {number}\n", name.to_uppercase(), other.to_uppercase()),
        4 => format!("// {name} {other} see https://example.com/{other}/{number}\n"),
        _ => format!("        return {other}->{name}(&{other}, {number}, \"{other}\");\n"),
    };
    text.extend_from_slice(line.as_bytes());
}

fn log(random: &mut Random, rare: &[String], text: &mut Vec<u8>) {
    let [a, b, c, d]: [usize; 4] = std::array::from_fn(|_| 1 + random.below(254));
    let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
    let (month, day) = (random.below(12), 1 + random.below(28));
    let (word, number) = (*random.pick(&WORDS), random.below(90_000));
    let name = if random.below(50) == 0 { random.pick(rare).as_str() } else { word };
    let line = match random.below(4) {
        0 => format!(
            "{a}.{b}.{c}.{d} - - [{day:02}/{}/2026:{hour:02}:{minute:02}:{second:02} +0000] \"GET /{name}/{number}.html HTTP/1.1\" 200 {number} \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n",
            MONTHS[month]
        ),
        1 => format!(
            "{} {day:2} {hour:02}:{minute:02}:{second:02} host{} {name}[{number}]: {word} for session {number} closed\n",
            MONTHS[month],
            number % 10
        ),
        2 => format!(
            "2026-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z INFO {name}: {word} {number} in {} ms\n",
            month + 1,
            number % 1000,
            number % 97
        ),
        _ => format!(
            "level=info ts={number} caller={name}.go:{} msg=\"{word} done\"\n",
            number % 900
        ),
    };
    text.extend_from_slice(line.as_bytes());
}

fn json(random: &mut Random, text: &mut Vec<u8>) {
    let (word, number) = (*random.pick(&WORDS), random.below(1 << 30));
    let digest = String::from_utf8_lossy(&random.word(HEX, 40)).into_owned();
    let line = format!(
        "{{\"id\":{number},\"{word}\":\"{word}\",\"digest\":\"{digest}\",\"qty\":{}}}\n",
        number % 977
    );
    text.extend_from_slice(line.as_bytes());
}

/// Makes a line that a rule matches, or nearly.
fn secret(random: &mut Random, rare: &[String], text: &mut Vec<u8>) {
    let name = random.pick(rare);
    let length = *random.pick(&[20, 24, 32, 40, 48, 64]);
    let alphabet = *random.pick(&[HEX, ALNUM, LOWER]);
    let token = String::from_utf8_lossy(&random.word(alphabet, length)).into_owned();
    let number = random.below(10_000);
    let line = match random.below(8) {
        0 => format!("export {}_TOKEN='{token}'\n", name.to_uppercase()),
        1 => format!("{name}.api_key = \"{token}\"\n"),
        2 => format!("url: https://{name}:{token}@db.{name}.net/{number}\n"),
        3 => format!("{name}{number}@{name}.io wrote:\n"),
        4 => format!("C:\\Windows\\Temp\\{name}{}.exe\n", number % 100),
        5 => format!("{}-{number} {name}[{number}]: denied {token}\n", name.to_uppercase()),
        6 => format!("GET /{name}/{name}.php?{name}={number}\n"),
        _ => format!("Authorization: Bearer {token}\n"),
    };
    text.extend_from_slice(line.as_bytes());
}

/// Inputs made to hurt a program that looks for a part of each match first.
pub(crate) const HURTING: [&str; 3] = ["names", "runs", "separators"];

/// Makes an input of `size` bytes in which such parts are everywhere, and next to no matches.
pub(crate) fn hurting(name: &str, size: usize) -> Vec<u8> {
    let mut random = Random::new(36);
    let rare = vocabulary(&mut Random::new(33), 4000);
    let mut text = Vec::with_capacity(size + 4096);
    while text.len() < size {
        match name {
            // The literals of the rules, in the right order, with a token that is too short.
            "names" => {
                let length = 6 + random.below(9);
                let token = random.word(LOWER, length);
                text.extend_from_slice(random.pick(&rare).as_bytes());
                text.extend_from_slice(
                    random.pick(&["_token", ".key = ", " api_secret: "]).as_bytes(),
                );
                text.extend_from_slice(&token);
                text.push(b'\n');
            }
            // Runs of the classes of the rules, a little too short, or too long. vectorscan's pieces begin within
            // runs, so those of digits are too short for any rest of them to match.
            "runs" => {
                let (alphabet, lengths): (&[u8], &[usize]) = match random.below(3) {
                    0 => (HEX, &[19, 23, 31]),
                    1 => (ALNUM, &[19, 31, 39, 63, 65, 101]),
                    _ => (LOWER, &[19, 31, 39, 63, 65, 101]),
                };
                let length = *random.pick(lengths);
                text.extend_from_slice(&random.word(alphabet, length));
                text.push(*random.pick(b" \n"));
            }
            // Digits and letters with the separators of addresses, paths, times and mail.
            _ => {
                let length = 1 + random.below(3);
                let word = random.word(LOWER, length);
                text.extend_from_slice(&word);
                text.push(*random.pick(b"..:-/@=\\"));
            }
        }
    }
    text.truncate(size);
    text
}

/// Makes a disk image with pieces of `text`: noise 35 %, text 35 %, zeros 20 %, records 10 %.
pub(crate) fn image(text: &[u8]) -> Vec<u8> {
    const PAGE_BYTES: usize = 4096;
    let mut random = Random::new(35);
    let mut image = vec![0; text.len()];
    let mut rest = image.as_mut_slice();
    while !rest.is_empty() {
        let bytes = (PAGE_BYTES * (16 + random.below(200))).min(rest.len());
        let (segment, after) = rest.split_at_mut(bytes);
        match random.below(100) {
            0..35 => random.fill(segment),
            35..70 => {
                let from = random.below(text.len() - bytes + 1);
                segment.copy_from_slice(&text[from..from + bytes]);
            }
            70..90 => {} // zeros
            _ => records(&mut random, segment),
        }
        rest = after;
    }
    image
}

fn records(random: &mut Random, segment: &mut [u8]) {
    let mut counter = random.below(1 << 20) as u32;
    for record in segment.chunks_exact_mut(16) {
        counter += 1;
        record[..4].copy_from_slice(&counter.to_le_bytes());
        record[4..8].copy_from_slice(&(random.below(1 << 24) as f32 / 4e6).to_le_bytes());
        record[8..12].copy_from_slice(&(random.below(300) as u32).to_le_bytes());
    }
}
