//! Sizes, offsets and ranges as people write them.

use std::ops::Range;

/// Reads `65536`, `0x10000`, `64K`, `64KiB` (powers of 1024) or `64KB` (powers of 1000).
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).map_err(|_| wrong(text));
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong(text))?;
    let unit = text[digits..].trim().to_ascii_uppercase();
    let factor = match unit.as_str() {
        "" | "B" => 1,
        "K" | "KIB" => 1 << 10,
        "M" | "MIB" => 1 << 20,
        "G" | "GIB" => 1 << 30,
        "T" | "TIB" => 1 << 40,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return Err(wrong(text)),
    };
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is more than 64 bits hold"))
}

fn wrong(text: &str) -> String {
    format!("'{text}' is not a size; write 4096, 0x1000, 4K (1024s) or 4KB (1000s)")
}

/// Reads `START..END`; either side may be left out.
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

/// `auto` or a number; `None` for auto.
pub(crate) fn parse_auto_count(text: &str) -> Result<Option<usize>, String> {
    if text == "auto" {
        return Ok(None);
    }
    match text.parse::<usize>() {
        Ok(count) if (1..=4096).contains(&count) => Ok(Some(count)),
        _ => Err(format!("'{text}' is not 'auto' or a number from 1 to 4096")),
    }
}

/// `auto` or a size; `None` for auto.
pub(crate) fn parse_auto_size(text: &str) -> Result<Option<usize>, String> {
    if text == "auto" {
        return Ok(None);
    }
    match parse_size(text)? {
        0 => Err("a buffer of 0 bytes holds nothing".to_string()),
        bytes if bytes > 1 << 30 => Err(format!("'{text}' is too large for a buffer; 1G at most")),
        bytes => Ok(Some(bytes as usize)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_either_kind_of_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("0x1F400", 128_000),
            ("4K", 4096),
            ("4KB", 4000),
            ("2MiB", 2 << 20),
            ("1g", 1 << 30),
            ("3TB", 3_000_000_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "1X", "-1", "1.5K", "0xZZ", "99999999999T"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
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
