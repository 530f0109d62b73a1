//! The options of COPY.

use super::tokens::{Kind, Token};
use crate::failure::{Failure, Result, state};

/// The format of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    Text,
    Csv,
    Binary,
}

/// Options of a COPY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyOptions {
    pub(crate) format: CopyFormat,
    pub(crate) delimiter: u8,
    /// The representation of NULL.
    pub(crate) null: String,
    pub(crate) has_header: bool,
    pub(crate) quote: u8,
    pub(crate) escape: u8,
}

/// The options as given, before the format is known.
#[derive(Default)]
struct GivenOptions {
    format: Option<CopyFormat>,
    delimiter: Option<String>,
    null: Option<String>,
    has_header: bool,
    quote: Option<String>,
    escape: Option<String>,
}

fn wrong(what: &str) -> Failure {
    Failure::new(state::SYNTAX, format!("COPY: {what}"))
}

fn format_of(word: &str) -> Result<CopyFormat> {
    match word.to_ascii_lowercase().as_str() {
        "text" => Ok(CopyFormat::Text),
        "csv" => Ok(CopyFormat::Csv),
        "binary" => Ok(CopyFormat::Binary),
        _ => Err(Failure::new(state::PARAMETER, format!("COPY format \"{word}\" not recognized"))),
    }
}

/// Parses the options after `TO STDOUT` and `FROM STDIN`: in parentheses, or in the old syntax.
pub(super) fn options(tokens: &[Token<'_>]) -> Result<CopyOptions> {
    let mut said = GivenOptions::default();
    let tokens = match tokens {
        [with, rest @ ..] if with.is("WITH") => rest,
        rest => rest,
    };
    match tokens {
        [] => {}
        [open, inner @ .., close] if open.is_mark("(") && close.is_mark(")") => {
            for option in inner.split(|token| token.is_mark(",")) {
                newer(option, &mut said)?;
            }
        }
        _ => older(tokens, &mut said)?,
    }
    said.checked()
}

fn newer(option: &[Token<'_>], said: &mut GivenOptions) -> Result<()> {
    let [name, values @ ..] = option else { return Err(wrong("an option is missing")) };
    let value = match values {
        [] => None,
        [value] => Some(value.string().unwrap_or_else(|| value.text.to_string())),
        // FORCE_QUOTE (a, b), FORCE_NULL (…): no effect here.
        _ => Some(String::new()),
    };
    let needed = || value.clone().ok_or_else(|| wrong(&format!("{} needs a value", name.text)));
    match name.text.to_ascii_lowercase().as_str() {
        "format" => said.format = Some(format_of(&needed()?)?),
        "delimiter" => said.delimiter = Some(needed()?),
        "null" => said.null = Some(needed()?),
        "quote" => said.quote = Some(needed()?),
        "escape" => said.escape = Some(needed()?),
        "header" => {
            said.has_header = match value.as_deref() {
                None => true,
                Some(word) if word.eq_ignore_ascii_case("match") => true,
                Some(word) => crate::value::truth(word)
                    .ok_or_else(|| wrong("HEADER must be true, false or match"))?,
            }
        }
        "encoding" => {
            let name = needed()?.to_ascii_lowercase().replace('-', "");
            if name != "utf8" {
                return Err(Failure::new(
                    state::UNSUPPORTED,
                    "COPY: only the encoding UTF8 is supported",
                ));
            }
        }
        "freeze" => {}
        other => return Err(wrong(&format!("option \"{other}\" not recognized"))),
    }
    Ok(())
}

fn older(mut tokens: &[Token<'_>], said: &mut GivenOptions) -> Result<()> {
    while let [word, rest @ ..] = tokens {
        tokens = rest;
        let mut text = || {
            if let [is_as, rest @ ..] = tokens
                && is_as.is("AS")
            {
                tokens = rest;
            }
            match tokens {
                [value, rest @ ..] if value.kind == Kind::Text => {
                    tokens = rest;
                    Ok(value.string().unwrap_or_default())
                }
                _ => Err(wrong(&format!("{} needs a string", word.text))),
            }
        };
        match word.text.to_ascii_lowercase().as_str() {
            "csv" => said.format = Some(CopyFormat::Csv),
            "binary" => said.format = Some(CopyFormat::Binary),
            "header" => said.has_header = true,
            "delimiter" | "delimiters" => said.delimiter = Some(text()?),
            "null" => said.null = Some(text()?),
            "quote" => said.quote = Some(text()?),
            "escape" => said.escape = Some(text()?),
            other => return Err(wrong(&format!("syntax error at or near \"{other}\""))),
        }
    }
    Ok(())
}

impl GivenOptions {
    fn checked(self) -> Result<CopyOptions> {
        let format = self.format.unwrap_or(CopyFormat::Text);
        let byte = |said: Option<String>, usual: u8, what: &str| match said.as_deref() {
            None => Ok(usual),
            Some(text) => match text.as_bytes() {
                [byte] if !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
                _ => Err(wrong(&format!("{what} must be a single one-byte character"))),
            },
        };
        let is_csv = format == CopyFormat::Csv;
        let quote = byte(self.quote, b'"', "QUOTE")?;
        let null = self.null.unwrap_or_else(|| if is_csv { String::new() } else { "\\N".into() });
        if null.contains(['\n', '\r']) {
            return Err(wrong("NULL cannot use newline or carriage return"));
        }
        let delimiter = byte(self.delimiter, if is_csv { b',' } else { b'\t' }, "DELIMITER")?;
        if delimiter == b'\\' || (is_csv && delimiter == quote) {
            return Err(wrong("DELIMITER cannot be a backslash or the quote"));
        }
        let escape = byte(self.escape, quote, "ESCAPE")?;
        Ok(CopyOptions { format, delimiter, null, has_header: self.has_header, quote, escape })
    }
}
