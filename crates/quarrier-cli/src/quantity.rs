//! Ranges, and counts and sizes that may be `auto`.

use std::ops::{Range, RangeInclusive};

use quarrier_core::size::parse_size;
use quarrier_report::number::bytes;

/// Parses sizes within these bounds.
pub(crate) fn size_in(
    bounds: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| match parse_size(text)? {
        size if size < *bounds.start() => {
            Err(format!("'{text}' is too little; must be at least {}", bytes(*bounds.start())))
        }
        size if size > *bounds.end() => {
            Err(format!("'{text}' is too large; must be at most {}", bytes(*bounds.end())))
        }
        size => Ok(size),
    }
}

/// Parses `START..END`; either side may be omitted.
pub(crate) fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let (start, end) = text
        .split_once("..")
        .ok_or_else(|| format!("'{text}' is not a range; write START..END, for example 0..64K"))?;
    let start = if start.is_empty() { 0 } else { parse_size(start)? };
    let end = if end.is_empty() { u64::MAX } else { parse_size(end)? };
    if start > end {
        return Err(format!("the range {text} ends before it begins"));
    }
    Ok(start..end)
}

/// Parses `auto` or a number; returns 0 for auto, as everywhere.
pub(crate) fn parse_auto_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        _ if text == "auto" => Ok(0),
        Ok(count @ 0..=4096) => Ok(count),
        _ => Err(format!("'{text}' is not 'auto' or a number of at most 4096")),
    }
}

/// Parses `auto` or a size; returns 0 for auto, as everywhere.
pub(crate) fn parse_auto_size(text: &str) -> Result<usize, String> {
    if text == "auto" { Ok(0) } else { size_in(0..=1 << 30)(text).map(|bytes| bytes as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_bounds_of_sizes() {
        let read = size_in(64 << 20..=1 << 30);
        assert_eq!((read("64M"), read("1 GiB")), (Ok(64 << 20), Ok(1 << 30)));
        assert_eq!(read("64MB").unwrap_err(), "'64MB' is too little; must be at least 64 MiB");
        assert_eq!(read("2G").unwrap_err(), "'2G' is too large; must be at most 1 GiB");
        assert!(read("2X").unwrap_err().contains("is not a size"));
    }

    #[test]
    fn ranges_may_be_open() {
        assert_eq!(parse_range("1K..2K"), Ok(1024..2048));
        assert_eq!(parse_range("..10"), Ok(0..10));
        assert_eq!(parse_range("0x10.."), Ok(16..u64::MAX));
        assert!(parse_range("5").is_err());
        assert!(parse_range("9..5").is_err());
    }
}
