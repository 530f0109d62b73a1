//! Pattern files: each set is written twice, for quarrier and for the rivals.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::image::write;

/// The files of one set of literal patterns.
pub(crate) struct PatternFiles {
    /// One pattern per line, as `quarrier search -f` reads them: letters and digits literally
    /// (ripgrep reads these, too), other bytes as `hex:`.
    pub(crate) plain: PathBuf,
    /// One pattern per line, as hexadecimal digits, which the other rivals read.
    pub(crate) hex: PathBuf,
}

impl PatternFiles {
    pub(crate) fn write(folder: &Path, name: &str, patterns: &[Vec<u8>]) -> Result<Self> {
        let files = PatternFiles {
            plain: folder.join(format!("{name}.txt")),
            hex: folder.join(format!("{name}.hex")),
        };
        write(&files.plain, lines(patterns, plain).as_bytes())?;
        write(&files.hex, lines(patterns, hex).as_bytes())?;
        Ok(files)
    }
}

fn lines(patterns: &[Vec<u8>], line: fn(&[u8]) -> String) -> String {
    patterns.iter().map(|pattern| line(pattern) + "\n").collect()
}

fn plain(pattern: &[u8]) -> String {
    match std::str::from_utf8(pattern) {
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) => text.to_string(),
        _ => format!("hex:{}", hex(pattern)),
    }
}

fn hex(pattern: &[u8]) -> String {
    pattern.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_letters_and_digits_are_written_unchanged() {
        assert_eq!(plain(b"aB3"), "aB3");
        assert_eq!(plain(b"a\0"), "hex:6100");
        assert_eq!(plain(b"# x"), "hex:232078");
    }
}
