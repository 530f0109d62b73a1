//! From pattern options to patterns.

use std::io::Read;
use std::path::Path;

use quarrier_search::{Pattern, parse_file};

use crate::args::PatternArg;

/// The largest pattern file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// All patterns in the order given.
pub(super) fn collect(args: &[PatternArg]) -> Result<Vec<Pattern>, String> {
    let mut patterns = Vec::new();
    for arg in args {
        match arg {
            PatternArg::Text(text) => patterns.push(Pattern::literal(text).map_err(to_text)?),
            PatternArg::Hex(text) => patterns.push(Pattern::hex(text).map_err(to_text)?),
            PatternArg::Regex(text) => patterns.push(Pattern::regex(text).map_err(to_text)?),
            PatternArg::File(path) => patterns.extend(read_file(path)?),
            PatternArg::Lines(text) => {
                patterns.extend(parse_file(text.as_bytes()).map_err(to_text)?);
            }
        }
    }
    Ok(patterns)
}

fn read_file(path: &Path) -> Result<Vec<Pattern>, String> {
    let name = path.display();
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(FILE_BYTES_MAX).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes))
    };
    read.map_err(|error| format!("{name}: cannot read the patterns: {error}"))?;
    parse_file(&bytes).map_err(|error| format!("{name}: {error}"))
}

fn to_text(error: quarrier_search::Error) -> String {
    error.to_string()
}
