//! Columns come in the order in which accepted messages name them; rejected ones do not move them.

use std::sync::Arc;

use proptest::prelude::*;
use quarrier_core::source::Memory;
use quarrier_messages::format::fix::Dictionary;
use quarrier_messages::{Format, Load, Packing};

use crate::fix::message;

/// The names of a message's fields in order, and whether it is valid.
type Drawn = (Vec<&'static str>, bool);

const NAMES: [&str; 6] = ["Account", "Text", "Symbol", "Side", "Desk", "Trader"];
const TAGS: [&str; 6] = ["1", "58", "55", "54", "Desk", "Trader"];

fn json((names, is_valid): &Drawn) -> Vec<u8> {
    let members: Vec<_> = names.iter().map(|name| format!("\"{name}\":\"x\"")).collect();
    format!("{{{}{}\n", members.join(","), if *is_valid { "}" } else { "" }).into_bytes()
}

fn nvfix((names, is_valid): &Drawn) -> Vec<u8> {
    let fields: String = names.iter().map(|name| format!("{name}=x\u{1}")).collect();
    format!("Id=7\u{1}{fields}{}\n", if *is_valid { "" } else { "nothing\u{1}" }).into_bytes()
}

fn fix((names, is_valid): &Drawn) -> Vec<u8> {
    let tag = |name| TAGS[NAMES.iter().position(|known| known == name).unwrap()];
    let fields = names.iter().map(tag).filter(|tag| tag.parse::<u32>().is_ok());
    let fields: String = fields.map(|tag| format!("{tag}=x|")).collect();
    // Three bytes, of which there are four.
    message(&format!("35=D|{fields}{}", if *is_valid { "" } else { "95=3|96=abcd|" }))
}

/// The names of the columns, by the valid messages from first to last.
fn expected<'d>(drawn: &'d [Drawn], around: (&[&'d str], &[&'d str])) -> Vec<&'d str> {
    let mut found = Vec::new();
    for (names, _) in drawn.iter().filter(|(_, is_valid)| *is_valid) {
        for name in around.0.iter().chain(names).chain(around.1) {
            if !found.contains(name) {
                found.push(*name);
            }
        }
    }
    found
}

fn check(format: &Format, load: &Load<'_>, log: Vec<u8>, drawn: &[Drawn], expected: &[&str]) {
    let about = format!("{format:?} {:?}", String::from_utf8_lossy(&log));
    let loaded = load.clone().run(&[&Memory::new("log", log)]).unwrap();
    let rejected = drawn.iter().filter(|(_, is_valid)| !is_valid).count();
    assert_eq!(loaded.rejected, rejected as u64, "{about}");
    let schema = loaded.table.schema();
    let names: Vec<&str> = schema.fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, expected, "{about}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn rejected_messages_do_not_move_columns(
        drawn in prop::collection::vec(
            (prop::sample::subsequence(&NAMES[..], 0..6).prop_shuffle(), any::<bool>()),
            1..40,
        ),
        workers in 1..4_usize,
        segment_rows in 1..20_usize,
        claim_bytes in 30..300_u64,
    ) {
        let dictionary = Arc::new(Dictionary::builtin());
        let packing = Packing { segment_rows, claim_bytes, ..Packing::default() };
        let run = |format: Format, of: fn(&Drawn) -> Vec<u8>, drawn: &[Drawn], around| {
            let load = Load::new(format.clone()).workers(workers).packing(packing);
            let log = drawn.iter().flat_map(of).collect();
            check(&format, &load, log, drawn, &expected(drawn, around));
        };
        run(Format::Json, json, &drawn, (&[], &[]));
        run(Format::Nvfix(Arc::clone(&dictionary)), nvfix, &drawn, (&["Id"], &[]));
        let mut tagged = drawn;
        tagged.iter_mut().for_each(|(names, _)| names.retain(|name| !["Desk", "Trader"].contains(name)));
        let around: (&[&str], &[&str]) = (&["BeginString", "BodyLength", "MsgType"], &["CheckSum"]);
        run(Format::Fix(dictionary), fix, &tagged, around);
    }
}
