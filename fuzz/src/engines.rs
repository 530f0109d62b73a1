//! Literals and hex patterns with every engine: the oracle's findings, with any setup.

use arbitrary::{Result, Unstructured};
use quarrier_search::{EngineName, Error, Options, Pattern, Searcher};

use crate::oracle::{self, Masked, Needle};
use crate::setup::{Setup, same};
use crate::text::{self, letters};
use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "engines", run, once: ONCE, seeds: SEEDS, words: WORDS };

const ONCE: &[&[u8]] = &[&[0xFF; 100], b"\xFF\xFF"];

const SEEDS: &[&[u8]] = &[
    &[0; 16],
    &[0; 200],
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    b"\x07\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\
      \x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x20\x21\x22\x23\x24\x25\x26\x27\x28\x29\x2a\x2b\x2c\x2d",
];

const WORDS: &[&[u8]] =
    &[&[0; 8], &[4; 6], &[5; 6], &[12; 4], &[13; 6], &[0xFF; 8], b"\x0c\x03\x01"];

/// Characters whose bytes in UTF-16 look like ASCII letters, have case, or are zero.
const CHARACTERS: [char; 12] = [
    'a',
    'K',
    'k',
    '\0',
    '@',
    '\u{e9}',
    '\u{141}',
    '\u{161}',
    '\u{212A}',
    '\u{4142}',
    '\u{6162}',
    '\u{1F600}',
];

#[derive(Debug)]
struct Case {
    setup: Setup,
    options: Options,
    patterns: Vec<Pattern>,
    needles: Vec<Needle>,
    text: Vec<u8>,
}

/// Decodes a case from `bytes` and checks it.
pub fn run(bytes: &[u8]) -> Verdict {
    let mut u = Unstructured::new(bytes);
    let flood = matches!(u.arbitrary::<u16>(), Ok(0xFFFF));
    let case = if flood { flooded(&mut u) } else { Case::draw(&mut u) };
    match case {
        Ok(case) if !case.text.is_empty() => case.check(),
        _ => return Verdict::Skipped,
    }
    Verdict::Checked
}

/// More findings than a searcher holds for one chunk (2^20).
fn flooded(u: &mut Unstructured<'_>) -> Result<Case> {
    let setup = Setup::draw(u)?;
    let patterns: Vec<Pattern> = (0..64).filter_map(|_| Pattern::hex("00").ok()).collect();
    let needles = (0..64).map(|index| (index, vec![(0, 0xFF)])).collect();
    let mut text = vec![0; u.int_in_range(33_000..=36_000)?];
    text[20_000] = 1;
    Ok(Case { setup, options: Options::default(), patterns, needles, text })
}

impl Case {
    fn draw(u: &mut Unstructured<'_>) -> Result<Self> {
        let setup = Setup::draw(u)?;
        let options =
            Options { ignore_case: u.ratio(1, 3)?, utf16: u.ratio(1, 4)?, ..Options::default() };
        let alphabet = text::alphabet(u)?;
        let count = match u.int_in_range(0..=7)? {
            0..=1 => 1,
            2..=5 => u.int_in_range(2..=6)?,
            6 => u.int_in_range(5..=20)?,
            _ => u.int_in_range(20..=60)?,
        };
        let mut patterns = Vec::new();
        let mut needles: Vec<Needle> = Vec::new();
        for index in 0..count {
            let earlier = needles.last().map(|(_, needle)| needle.as_slice());
            let (pattern, forms) = draw_pattern(u, alphabet, options, earlier)?;
            patterns.push(pattern);
            needles.extend(forms.into_iter().map(|form| (index, form)));
        }
        let text = text::draw(u, alphabet, setup.buffer_bytes, needles.len(), |u| {
            let (_, needle) = u.choose(&needles)?;
            needle.iter().map(|masked| fitting(u, alphabet, *masked)).collect()
        })?;
        Ok(Case { setup, options, patterns, needles, text })
    }

    fn check(&self) {
        let range = self.setup.range(&self.text);
        let mut expected = oracle::find(&self.needles, &self.text[range.clone()]);
        expected.iter_mut().for_each(|finding| finding.offset += range.start as u64);
        expected.retain(|finding| finding.offset.is_multiple_of(self.setup.aligned_bytes));
        for engine in EngineName::ALL.into_iter().filter(|engine| engine.is_available()) {
            let Some(searcher) = self.searcher(engine) else { continue };
            let mut checked = self.setup.check(&searcher, &self.text, &expected, None);
            if range.len() == self.text.len() {
                let at_once = searcher.find_all(&self.text).unwrap_or_default();
                checked =
                    checked.and(same(&at_once, &expected).map_err(|e| format!("find_all: {e}")));
            }
            if let Err(problem) = checked {
                panic!("engine {}: {problem}\n{}", engine.name(), self.shown());
            }
        }
    }

    /// Returns `None` if the engine may refuse the patterns.
    fn searcher(&self, engine: EngineName) -> Option<Searcher> {
        let built = Searcher::builder()
            .options(self.options)
            .engine(engine)
            .sample(self.setup.sample(&self.text))
            .aligned(self.setup.aligned_bytes)
            .context(self.setup.context_bytes)
            .build(self.patterns.clone());
        let one_exact = |needle: &[Masked]| needle.iter().all(|(_, mask)| *mask == 0xFF);
        let may_refuse = engine == EngineName::Memmem
            && !matches!(self.needles.as_slice(), [(_, only)] if one_exact(only));
        match built {
            Ok(searcher) => Some(searcher),
            Err(Error::Engine(_)) if may_refuse => None,
            Err(error) => panic!("engine {}: {error}\n{}", engine.name(), self.shown()),
        }
    }

    fn shown(&self) -> String {
        let (setup, options) = (&self.setup, self.options);
        let (patterns, text) = (text::shown_patterns(&self.patterns), text::shown(&self.text));
        format!("{setup:?}\n{options:?}\n{patterns}\n{text}")
    }
}

/// Draws a byte that fits, from the alphabet if there is a choice.
fn fitting(u: &mut Unstructured<'_>, alphabet: &[u8], (value, mask): Masked) -> Result<u8> {
    Ok(if mask == 0xFF { value } else { value | (u.choose(alphabet)? & !mask) })
}

/// Draws a pattern and the forms in which it must be found.
pub(crate) fn draw_pattern(
    u: &mut Unstructured<'_>,
    alphabet: &[u8],
    options: Options,
    earlier: Option<&[Masked]>,
) -> Result<(Pattern, Vec<Vec<Masked>>)> {
    let count = match u.int_in_range(0..=15)? {
        0..=9 => u.int_in_range(1..=6)?,
        10..=13 => u.int_in_range(1..=20)?,
        14 => u.int_in_range(20..=70)?,
        _ => u.int_in_range(1..=300)?,
    };
    let fold = options.ignore_case;
    Ok(match u.int_in_range(0..=9)? {
        0..=3 => {
            let mut bytes = letters(u, alphabet, count)?;
            if let (Some(earlier), true) = (earlier, u.ratio(1, 3)?) {
                let shared = u.int_in_range(0..=earlier.len())?;
                bytes.splice(..0, earlier[..shared].iter().map(|(value, _)| *value));
            }
            if fold && !bytes.is_ascii() && std::str::from_utf8(&bytes).is_ok() {
                // The oracle knows no case beyond ASCII, and these bytes are not text.
                bytes.push(0xFF);
            }
            let mut forms = vec![oracle::bytes(&bytes, fold)];
            if let (true, Ok(text)) = (options.utf16, std::str::from_utf8(&bytes)) {
                forms.push(oracle::utf16(text, fold));
            }
            (accepted(Pattern::bytes(&bytes, "bytes")), forms)
        }
        4 => {
            let text = characters(u, count, fold)?;
            let mut forms = vec![oracle::bytes(text.as_bytes(), fold)];
            if options.utf16 {
                forms.push(oracle::utf16(&text, fold));
            }
            (accepted(Pattern::literal(&text)), forms)
        }
        5 => {
            let text = characters(u, count, fold)?;
            (accepted(Pattern::utf16(&text)), vec![oracle::utf16(&text, fold)])
        }
        _ => {
            let mut needle = Vec::new();
            for _ in 0..count {
                let byte = *u.choose(alphabet)?;
                let mask = *u.choose(&[0xFF, 0xFF, 0xFF, 0xF0, 0x0F, 0x00])?;
                needle.push((byte & mask, mask));
            }
            if needle.iter().all(|(_, mask)| *mask == 0) {
                needle[0] = (alphabet[0], 0xFF);
            }
            (accepted(Pattern::hex(&hex(u, &needle)?)), vec![needle])
        }
    })
}

fn accepted(pattern: quarrier_search::Result<Pattern>) -> Pattern {
    pattern.unwrap_or_else(|error| panic!("a good pattern is refused: {error}"))
}

/// Draws some characters; if case is ignored, none beyond ASCII that have case, which the oracle
/// lacks.
fn characters(u: &mut Unstructured<'_>, count: usize, fold: bool) -> Result<String> {
    let has_case = |c: char| !c.is_ascii() && (c.is_lowercase() || c.is_uppercase());
    let drawn = (0..count.min(20)).map(|_| u.choose(&CHARACTERS).copied());
    drawn.map(|c| c.map(|c| if fold && has_case(c) { '\u{4142}' } else { c })).collect()
}

/// Formats a needle as a user would write it.
fn hex(u: &mut Unstructured<'_>, needle: &[Masked]) -> Result<String> {
    let (between, is_upper) = (*u.choose(&["", " ", ",", ":", "  "])?, u.arbitrary()?);
    let half = |value: u8, mask: u8| match char::from_digit(u32::from(value), 16) {
        Some(digit) if mask == 0xF => digit,
        _ => '?',
    };
    let bytes: Vec<String> = needle
        .iter()
        .map(|(value, mask)| [half(value >> 4, mask >> 4), half(value & 15, mask & 15)])
        .map(|digits| digits.iter().collect())
        .collect();
    let text = bytes.join(between);
    Ok(if is_upper { text.to_uppercase() } else { text })
}
