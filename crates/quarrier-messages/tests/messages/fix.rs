//! FIX and NVFIX: lengths and sums are verified, and fields have the names and types of the
//! dictionary.

use std::sync::Arc;

use proptest::prelude::*;
use quarrier_messages::format::fix::Dictionary;
use quarrier_messages::{Format, Limits};

use crate::formats::{check, load, load_within, rejects, rows};

/// Makes a whole message of `body`, in which `|` represents the separator.
pub(crate) fn message(body: &str) -> Vec<u8> {
    let body = body.replace('|', "\x01");
    let mut message = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
    let sum = message.iter().fold(0u32, |sum, &byte| sum + u32::from(byte)) % 256;
    message.extend(format!("10={sum:03}\x01").bytes());
    message
}

fn fix() -> Format {
    Format::Fix(Arc::new(Dictionary::builtin()))
}

/// Checks the fields of one message, except BeginString, BodyLength, MsgType and CheckSum.
fn check_body(format: &Format, body: &str, expected: &str) {
    let shown = rows(&load(format, &message(&format!("35=D|{body}"))));
    assert_eq!(shown.len(), 1, "{body}");
    let (_, fields) = shown[0].split_once("MsgType=\"D\"").unwrap();
    let fields = fields.rsplit_once("CheckSum=").unwrap().0;
    assert_eq!(fields.trim(), expected, "{body}");
}

#[test]
fn fields_have_the_names_and_types_of_the_dictionary() {
    let cases = [
        ("55=ABC|54=1|", r#"Symbol="ABC" Side="1""#),
        ("44=66.43|38=0100|", "Price=6643/2 OrderQty=100"),
        ("34=007|", "MsgSeqNum=7"),
        ("52=19700102-00:00:00.5|", "SendingTime=86400500000000ns"),
        ("52=1700000000000000743|", "SendingTime=1700000000000000743"),
        ("75=19700102|43=Y|97=N|", "TradeDate=1d PossDupFlag=true PossResend=false"),
        ("44=cheap|", r#"Price="cheap""#),
        ("58=|1=007|", r#"Account="007""#),
        ("9001=12|9002=1.5|9003=007|", r#"tag_9001=12 tag_9002=15/1 tag_9003="007""#),
        ("58=a|58=b|58=c|", r#"Text="a" Text[1]="b" Text[2]="c""#),
        ("58=a=b|", r#"Text="a=b""#),
        ("58=grün|", r#"Text="grün""#),
        ("95=3|96=a|b|58=x|", r#"RawDataLength=3 RawData="a\u{1}b" Text="x""#),
        (
            "453=2|448=A|452=1|448=B|447=D|55=X|",
            r#"NoPartyIDs=2 NoPartyIDs[0].PartyID="A" NoPartyIDs[0].PartyRole=1 NoPartyIDs[1].PartyID="B" NoPartyIDs[1].PartyIDSource="D" Symbol="X""#,
        ),
        ("453=0|55=X|", r#"NoPartyIDs=0 Symbol="X""#),
    ];
    for (body, expected) in cases {
        check_body(&fix(), body, expected);
    }
    let numbers = Format::Fix(Arc::new(Dictionary::builtin().with_numbers()));
    let shown = rows(&load(&numbers, &message("35=D|55=ABC|")));
    assert_eq!(shown, [r#"tag_8="FIX.4.4" tag_9=12 tag_35="D" tag_55="ABC" tag_10="083""#]);
}

const DICTIONARY: &[u8] = br#"<fix major="4" minor="4">
 <header><field name="MsgType" required="Y"/></header>
 <messages>
  <message name="Basket" msgtype="D" msgcat="app">
   <field name="Desk" required="Y"/><component name="Legs" required="N"/>
  </message>
 </messages>
 <trailer/>
 <components>
  <component name="Legs">
   <group name="NoLegs" required="N">
    <field name="LegQty" required="N"/>
    <group name="NoFills" required="N"><field name="FillPx" required="N"/></group>
   </group>
  </component>
 </components>
 <fields>
  <field number="35" name="MsgType" type="STRING"><value enum="D" description="X&amp;Y"/></field>
  <field number="9001" name="Desk" type="INT"/>
  <field number="9002" name="NoLegs" type="NUMINGROUP"/>
  <field number="9003" name="LegQty" type="QTY"/>
  <field number="9004" name="NoFills" type="NUMINGROUP"/>
  <field number="9005" name="FillPx" type="PRICE"/>
 </fields>
</fix>"#;

#[test]
fn a_dictionary_defines_nested_groups() {
    let format = Format::Fix(Arc::new(Dictionary::from_xml(DICTIONARY).unwrap()));
    check_body(
        &format,
        "9001=7|9002=2|9003=1|9004=2|9005=1.5|9005=2.5|9003=2|9001=8|",
        "Desk=7 NoLegs=2 NoLegs[0].LegQty=1 NoLegs[0].NoFills=2 NoLegs[0].NoFills[0].FillPx=15/1 \
         NoLegs[0].NoFills[1].FillPx=25/1 NoLegs[1].LegQty=2 Desk[1]=8",
    );
}

#[test]
fn errors_of_a_dictionary_have_their_position() {
    let said = |xml: &str| Dictionary::from_xml(xml.as_bytes()).unwrap_err().to_string();
    assert!(said("<fix><fields>").contains("broken at byte 13"), "{}", said("<fix><fields>"));
    let unknown =
        "<fix><messages><message msgtype='D'><field name='X'/></message></messages></fix>";
    assert!(said(unknown).contains("uses 'X'"));
    let endless = "<fix><messages><message msgtype='D'><component name='A'/></message></messages>\
                   <components><component name='A'><component name='A'/></component></components>\
                   </fix>";
    assert!(said(endless).contains("contain each other"));
}

#[test]
fn messages_are_one_per_line_or_back_to_back() {
    let (a, b) = (message("35=0|112=a|"), message("35=0|112=b|"));
    let shown = rows(&load(&fix(), &a))[0].clone();
    for between in ["", "\n", "\r\n", "\n\n"] {
        let log = [&a[..], between.as_bytes(), &b, between.as_bytes()].concat();
        let loaded = load(&fix(), &log);
        assert_eq!(rows(&loaded)[0], shown, "{between:?}");
        assert_eq!((loaded.table.rows(), loaded.rejected), (2, 0), "{between:?}");
    }
}

#[test]
fn invalid_messages_are_listed_and_the_rest_loaded() {
    let good = message("35=0|112=a|");
    let change = |from: &str, to: &str| {
        String::from_utf8(good.clone()).unwrap().replacen(from, to, 1).into_bytes()
    };
    let cases: [(Vec<u8>, &str); 9] = [
        (change("112=a", "112=b"), "a CheckSum that does not match the bytes"),
        (change("9=11", "9=10"), "no CheckSum where BodyLength says"),
        (change("9=11", "9=99"), "a BodyLength beyond the message's end"),
        (change("9=11", "9=x"), "a BodyLength that is not a number or too large"),
        (change("9=11\x01", ""), "no BodyLength after BeginString"),
        (change("8=FIX.4.4\x01", ""), "no BeginString"),
        (b"nonsense".to_vec(), "no BeginString"),
        (message("35=0|x=1|"), "a tag that is not a number"),
        (message("35=0|112|"), "a field without '='"),
    ];
    for (wrong, what) in cases {
        for between in ["\n", "\r\n"] {
            let log = [&good[..], &wrong, &good].join(between.as_bytes());
            let loaded = load(&fix(), &log);
            let at = good.len() + between.len();
            assert_eq!(rejects(&loaded), [format!("2 {at} {what}")], "{between:?}");
            assert_eq!(loaded.table.rows(), 2, "{what}");
        }
    }
    // With messages back to back, only the damaged one is lost.
    let cut = &good[..good.len() - 12];
    let loaded = load(&fix(), &[&good[..], cut, &good, &change("112=a", "112=b"), &good].concat());
    assert_eq!((loaded.table.rows(), loaded.rejected), (3, 2));
    let not_utf8 = [&good[..], b"8=FIX.4.4\x019=9\x0135=0\x0158=\xFF\x0110=000\x01\n"].concat();
    assert_eq!(rejects(&load(&fix(), &not_utf8)).len(), 1);
}

#[test]
fn nvfix_has_names_instead_of_tags() {
    let nvfix = Format::Nvfix(Arc::new(Dictionary::builtin()));
    let plain = b"Symbol=ABC\x01Price=1.5\x01Strange.Name=7\x01\nSymbol=D\x01Price=2";
    check(
        &nvfix,
        plain,
        &[r#"Symbol="ABC" Price=15/1 Strange.Name=7"#, r#"Symbol="D" Price=20/1"#],
        &[],
    );
    let head = "BeginString=FIX.4.4\x01BodyLength=23\x01MsgType=D\x01Symbol=ABC\x01\x01";
    let head = head.replace("\x01\x01", "\x01").replace("=23", "=21");
    let sum = head.bytes().fold(0u32, |sum, byte| sum + u32::from(byte)) % 256;
    let whole = format!("{head}CheckSum={sum:03}\x01\n");
    let log = format!("{whole}{}", whole.replace("ABC", "ABD"));
    let loaded = load(&nvfix, log.as_bytes());
    assert_eq!(loaded.table.rows(), 1);
    assert_eq!(
        rejects(&loaded),
        [format!("2 {} a CheckSum that does not match the bytes", whole.len())]
    );
    check(&nvfix, b"=1\x01\nA=1\x01\n", &["A=1"], &["1 0 a field without name"]);
}

#[test]
fn hostile_messages_have_bounded_cost() {
    let limits = Limits { message_bytes_max: 1 << 20, columns_max: 50, ..Limits::default() };
    let good = message("35=0|112=a|");
    let long = [&good[..], b"\n", &vec![b'8'; 40 << 20], b"\n", &good].concat();
    let loaded = load_within(&fix(), &long, 2, &limits);
    assert_eq!((loaded.table.rows(), loaded.rejected), (2, 1));
    let tags: String = (1_000..100_000).map(|tag| format!("{tag}=1|")).collect();
    let loaded = load_within(&fix(), &message(&format!("35=D|{tags}")), 2, &limits);
    assert_eq!(loaded.table.rows(), 1);
    assert!(loaded.table.schema().fields.len() <= 50 && loaded.refused.count > 90_000);
    let again = message(&format!("35=D|{}", "58=x|".repeat(200_000)));
    assert_eq!(load_within(&fix(), &again, 2, &limits).table.rows(), 1);
    let entries = message(&format!("35=W|268=200000|{}", "269=0|270=1|".repeat(80_000)));
    assert_eq!(load_within(&fix(), &entries, 2, &limits).table.rows(), 1);
}

/// A naive verification of a message.
fn is_right(message: &[u8]) -> bool {
    let fields: Vec<&[u8]> = message.split(|&byte| byte == 1).collect();
    let [begin, length, .., check, b""] = &fields[..] else { return false };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let body = begin.len() + 1 + length.len() + 1;
    let Some(end) = message.len().checked_sub(check.len() + 1) else { return false };
    let sum = message[..end].iter().fold(0u32, |sum, &byte| sum + u32::from(byte)) % 256;
    begin.starts_with(b"8=")
        && end >= body
        && text(length) == format!("9={}", end - body)
        && text(check) == format!("10={sum:03}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_message_is_accepted_if_the_naive_check_accepts_it(
        strings in proptest::collection::vec("[a-c1=]{1,9}", 0..4),
        change in proptest::option::of((any::<prop::sample::Index>(), "[0-9a\u{1}=]")),
    ) {
        let body: String = strings.iter().map(|text| format!("58={text}|")).collect();
        let mut bytes = message(&format!("35=D|{body}"));
        if let Some((at, byte)) = change {
            let at = at.index(bytes.len());
            bytes[at] = byte.as_bytes()[0];
        }
        let fields = bytes.strip_suffix(b"\x01").unwrap_or(&bytes);
        let are_fields = fields.split(|&byte| byte == 1).all(|field| {
            let key = field.split(|&byte| byte == b'=').next().unwrap();
            key.len() < field.len() && key.iter().all(u8::is_ascii_digit)
                && !key.is_empty() && key[0] != b'0' && key.len() < 10
        });
        let loaded = load(&fix(), &bytes);
        prop_assert_eq!(loaded.table.rows() == 1, is_right(&bytes) && are_fields);
        prop_assert_eq!(loaded.table.rows() == 1, loaded.rejected == 0);
    }

    #[test]
    fn the_order_of_fields_does_not_matter(
        orders in proptest::collection::vec(
            Just(vec![("1", "a"), ("38", "5"), ("44", "1.5"), ("55", "X"), ("9001", "7")])
                .prop_shuffle().prop_flat_map(|all| (Just(all), 0usize..6)),
            1..20,
        ),
    ) {
        let orders: Vec<_> = orders.iter().map(|(all, count)| &all[..(*count).min(all.len())]).collect();
        let body = |fields: &[(&str, &str)]| -> String {
            fields.iter().map(|(tag, value)| format!("{tag}={value}|")).collect()
        };
        let messages: Vec<Vec<u8>> =
            orders.iter().map(|order| message(&format!("35=D|{}", body(order)))).collect();
        let together = load(&fix(), &messages.concat());
        let sorted = |row: &str| {
            let mut fields: Vec<String> = row.split(' ').map(str::to_string).collect();
            fields.sort();
            // A column with exact numbers reads all of them as numbers.
            fields.join(" ")
        };
        for (row, bytes) in rows(&together).iter().zip(&messages) {
            prop_assert_eq!(sorted(row), sorted(&rows(&load(&fix(), bytes))[0]));
        }
    }
}
