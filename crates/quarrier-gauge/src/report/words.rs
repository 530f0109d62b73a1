//! Parameters in words: `threads: 2` is `2 threads`.

use quarrier_report::number::{exact_bytes, number as shown};

use super::quantity;
use crate::reading::{Reading, Unit, Value};

/// Names a parameter in a few words that are clear without context.
pub fn parameter(name: &str, value: &Value) -> String {
    let number = match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        Value::Text(_) => None,
    };
    if let (Some(number), Some(of)) = (number, name.strip_suffix("_ns")) {
        return format!("{} {}", spaced(of), quantity::value(number * 1e-9, Unit::Seconds));
    }
    let plain = spaced(name);
    match (number, value) {
        (Some(number), _) if is_size(name) => {
            let of = plain.trim_end_matches("bytes").trim_end();
            format!("{} {of}", exact_bytes(number)).trim_end().to_string()
        }
        (Some(number), _) if name.ends_with("_per_second") => {
            format!("{} {} a second", shown(number.round()), plain.trim_end_matches(" per second"))
        }
        (Some(number), _) if name.ends_with('s') => {
            let noun = if number == 1.0 { plain.trim_end_matches('s') } else { &plain };
            format!("{} {noun}", shown(number))
        }
        (Some(number), _) => format!("{plain} {}", shown(number)),
        // "streaming stores", "huge pages": the value alone would be unclear.
        (None, Value::Text(word)) if matches!(name, "stores" | "pages") => {
            format!("{word} {plain}")
        }
        (None, value) => value.to_string(),
    }
}

/// Names all parameters of a reading, separated by dots.
pub fn parameters(reading: &Reading) -> String {
    // Leave out words that are in the measurement's name.
    let is_in_name = |name: &str, value: &Value| {
        name == "access" && reading.measurement.starts_with(&value.to_string())
    };
    let words = reading.parameters.iter().filter(|(name, value)| !is_in_name(name, value));
    let words = words.map(|(name, value)| parameter(name, value));
    // A job is a closed loop unless its parameters say otherwise.
    let shown: Vec<String> = words.filter(|word| word != "closed loop").collect();
    shown.join(" · ")
}

/// Names a parameter on an axis: `block size`.
pub(crate) fn axis(name: &str) -> String {
    match name.strip_suffix("_bytes") {
        None if is_size(name) => "size".to_string(),
        Some(of) if of.ends_with("set") => spaced(of),
        Some(of) => format!("{} size", spaced(of)),
        None => spaced(name.strip_suffix("_ns").unwrap_or(name)),
    }
}

/// Whether a parameter counts bytes.
pub(crate) fn is_size(name: &str) -> bool {
    name == "bytes" || name.ends_with("_bytes")
}

fn spaced(name: &str) -> String {
    name.replace('_', " ").replace("cpu", "CPU")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_formatted_in_words() {
        for (name, value, words) in [
            ("threads", Value::from(1), "1 thread"),
            ("threads", Value::from(4), "4 threads"),
            ("bytes", Value::from(1 << 20), "1 MiB"),
            ("block_bytes", Value::from(65536), "64 KiB block"),
            ("stores", Value::from("streaming"), "streaming stores"),
            ("isa", Value::from("AVX2"), "AVX2"),
            ("depth", Value::from(32), "depth 32"),
            ("pause_ns", Value::from(2000), "pause 2.00 µs"),
            ("from_cpu", Value::from(3), "from CPU 3"),
        ] {
            assert_eq!(parameter(name, &value), words);
        }
        assert_eq!(axis("block_bytes"), "block size");
        assert_eq!(axis("working_set_bytes"), "working set");
        assert_eq!(axis("pause_ns"), "pause");
    }
}
