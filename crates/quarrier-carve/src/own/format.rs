//! A format defined by the user.

use super::masked::{BYTES_MAX, Masked};
use super::names;
use crate::format::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// Maximum offset of a header, in bytes.
const OFFSET_BYTES_MAX: u64 = 1 << 30;

/// The user's rules for a type of file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The type's name in reports and folders.
    pub name: String,
    /// The extension of file names, without a dot.
    pub extension: String,
    /// The bytes at `offset`.
    pub header: Masked,
    /// The offset of the header in the file, in bytes.
    pub offset: u64,
    /// Minimum size of files, in bytes.
    pub size_bytes_min: u64,
    /// Maximum size of files, in bytes.
    pub size_bytes_max: u64,
    /// The place of the file's length.
    pub length: Option<Length>,
    /// The bytes at the end.
    pub footer: Masked,
    /// Which footer ends the file.
    pub end: End,
}

/// A length in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// The offset of the length in the file, in bytes.
    pub at: u64,
    /// The size of the length itself, 1 to 8 bytes.
    pub bytes: u8,
    /// Whether the most significant byte comes first.
    pub is_big: bool,
    /// The number to add for the length of the whole file.
    pub plus: i64,
}

/// Which footer ends a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The first one, which belongs to the file.
    First,
    /// The last one within the maximum size, which belongs to the file.
    Last,
    /// The first one, which does not belong to the file.
    Before,
}

/// A user-defined format.
pub struct UserFormat {
    rules: Rules,
    kinds: [Kind; 1],
    signatures: Vec<Signature>,
}

impl UserFormat {
    /// Makes a format from these rules. Its names stay in memory until the program ends.
    ///
    /// # Errors
    /// A message that says why the rules are invalid.
    pub fn new(rules: Rules) -> Result<UserFormat, String> {
        check(&rules)?;
        let keep = |text: &str| names::keep(text).ok_or("too many names have been read");
        let kind = Kind { name: keep(&rules.name)?, extension: keep(&rules.extension)? };
        let (patterns, skip) = rules.header.searched();
        let mut signatures = Vec::new();
        for hex in patterns {
            signatures.push(Signature { hex: keep(&hex)?, at: rules.offset + skip });
        }
        Ok(UserFormat { rules, kinds: [kind], signatures })
    }

    /// Returns the rules of the format.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the end of the file by the length in it; `None` if the rules have no length.
    fn stated_end(&self, view: &mut View<'_>) -> Option<Option<u64>> {
        let length = self.rules.length?;
        let bytes = view.take(length.at, usize::from(length.bytes));
        let number = bytes.map(|bytes| {
            let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
            match length.is_big {
                true => bytes.iter().fold(0, add),
                false => bytes.iter().rev().fold(0, add),
            }
        });
        Some(number.and_then(|number| number.checked_add_signed(length.plus)))
    }

    /// Returns the end of the file by its footer.
    fn found_end(&self, view: &mut View<'_>) -> Option<u64> {
        let Rules { footer, end, .. } = &self.rules;
        let header_end = self.rules.offset + self.rules.header.length() as u64;
        let footer_bytes = if *end == End::Before { 0 } else { footer.length() as u64 };
        let from = self.rules.size_bytes_min.saturating_sub(footer_bytes).max(header_end);
        // A footer that does not belong to the file may follow the last byte of the longest one.
        let until = match end {
            End::Before => self.rules.size_bytes_max.saturating_add(footer.length() as u64),
            _ => self.rules.size_bytes_max,
        };
        let place = footer.find(view, from..until, *end == End::Last)?;
        Some(place + footer_bytes)
    }
}

impl Format for UserFormat {
    fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let kind = self.kinds[0];
        let Rules { header, offset, footer, size_bytes_min, size_bytes_max, .. } = &self.rules;
        let is_header = view.take(*offset, header.length()).is_some_and(|at| header.begins(at));
        if !is_header {
            return Verdict::Not;
        }
        let broken = |view: &View<'_>, why| Verdict::broken(view, kind, 0, *size_bytes_max, why);
        match self.stated_end(view) {
            Some(Some(end)) if end < (offset + header.length() as u64).max(*size_bytes_min) => {
                Verdict::Not
            }
            Some(Some(end)) if end > *size_bytes_max || end > view.length() => {
                broken(view, "shorter than its stated length")
            }
            Some(Some(end)) => {
                let at = end.saturating_sub(footer.length() as u64);
                match view.take(at, footer.length()).is_some_and(|at| footer.begins(at)) {
                    true => Verdict::Whole { length: end, kind },
                    false => broken(view, "no footer at its stated end"),
                }
            }
            Some(None) => Verdict::Not,
            None if footer.is_empty() => broken(view, "nothing shows where it ends"),
            None => match self.found_end(view) {
                Some(length) => Verdict::Whole { length, kind },
                None => broken(view, "no footer"),
            },
        }
    }

    fn is_weak(&self) -> bool {
        true
    }
}

fn check(rules: &Rules) -> Result<(), String> {
    for (what, name) in [("name", &rules.name), ("extension", &rules.extension)] {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte);
        let is_name = name.bytes().all(is_letter) && !name.starts_with('.');
        if !is_name || !(1..=32).contains(&name.len()) {
            return Err(format!(
                "{what} {name:?} is not 1 to 32 letters, digits or any of '_', '-', '+', '.' within"
            ));
        }
    }
    if rules.header.given() < 2 {
        return Err("header has less than two fixed bytes; it would match everywhere".to_string());
    }
    if rules.header.length() > BYTES_MAX || rules.footer.length() > BYTES_MAX {
        return Err(format!("header or footer is longer than {BYTES_MAX} bytes"));
    }
    if !rules.footer.is_empty() && rules.footer.given() == 0 {
        return Err("footer has no fixed byte; it would match everywhere".to_string());
    }
    if rules.offset > OFFSET_BYTES_MAX {
        return Err(format!("offset is more than {OFFSET_BYTES_MAX}"));
    }
    let header_end = rules.offset + rules.header.length() as u64;
    if rules.size_bytes_max < header_end || rules.size_bytes_max < rules.size_bytes_min {
        let bytes = rules.size_bytes_max;
        return Err(format!("a maximum size of {bytes} bytes is less than the minimum"));
    }
    match rules.length {
        Some(length) if !(1..=8).contains(&length.bytes) => {
            Err(format!("length has {} bytes; it can have 1 to 8", length.bytes))
        }
        _ => Ok(()),
    }
}
