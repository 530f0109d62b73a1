//! JSONTestSuite: each case is one message.

use quarrier_messages::Limits;
use quarrier_messages::build::RowBuilder;
use quarrier_messages::format::json::JsonParser;

const CASES: &str = include_str!("minefield.txt");

fn accepts(message: &[u8]) -> bool {
    let limits = Limits::default();
    let mut rows = RowBuilder::new(limits.columns_max);
    JsonParser::new(&limits).message(message, &mut rows).is_ok()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len() / 2).map(|at| digit(2 * at)).collect()
}

#[test]
fn valid_json_is_accepted_and_invalid_json_refused() {
    let (mut right, mut wrong) = (0, 0);
    for line in CASES.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, hex)) = line.split_once('\t') else { continue };
        let is_accepted = accepts(&bytes(hex));
        if name.starts_with("y_") {
            assert!(is_accepted, "{name}");
            right += 1;
        } else if name.starts_with("n_") {
            assert!(!is_accepted, "{name}");
            wrong += 1;
        }
    }
    assert_eq!((right, wrong), (95, 186));
    assert!(!accepts("[".repeat(100_000).as_bytes()));
    assert!(!accepts("[{\"\":".repeat(50_000).as_bytes()));
}
