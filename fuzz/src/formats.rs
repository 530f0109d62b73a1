//! Any bytes as FIX, NVFIX, CSV, XML, Arrow and Parquet: no format panics, and neither workers nor
//! the way in which bytes arrive affect the result.

use std::sync::Arc;

use quarrier_core::source::Memory;
use quarrier_messages::format::csv::Csv;
use quarrier_messages::format::fix::Dictionary;
use quarrier_messages::format::xml::Xml;
use quarrier_messages::{Format, Load, Loaded, Value};

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "formats", run, once: &[], seeds: SEEDS, words: WORDS };

const SEEDS: &[&[u8]] = &[
    b"",
    b"8=FIX.4.4\x019=11\x0135=0\x01112=a\x0110=045\x01\n8=FIX.4.4\x019=11\x0135=0\x01112=b\x0110=045\x01",
    b"8=FIX.4.4\x019=37\x0135=D\x01453=2\x01448=A\x01452=1\x01448=B\x0195=1\x0196=\x01\x0110=000\x01",
    b"BeginString=FIX.4.4\x01BodyLength=10\x01MsgType=0\x01CheckSum=000\x01\nSymbol=A\x01Price=1.5\x01\n",
    b"a;b\r\n1;\"x\r\ny\"\"\"\r\n2;\"\n3;\n",
    b"<?xml version='1.0'?><l>\n<o a='1'><b>&lt;x</b><b/></o><!-- c -->\n<o><![CDATA[>]]></o></l>",
    b"<o a='>'/>\n<o>&#65;</o>\n</o>stray",
    b"ARROW1\0\0",
    b"PAR1\x15\0\x01\0\0\0PAR1",
];

const WORDS: &[&[u8]] = &[
    b"\x01",
    b"=",
    b"\n",
    b"\r",
    b"8=FIX",
    b"9=",
    b"10=",
    b"\x0110=000\x01",
    b"35=D\x01",
    b"453=2\x01",
    b"448=",
    b"95=3\x01",
    b"96=",
    b"Symbol=",
    b",",
    b";",
    b"\t",
    b"\"",
    b"\"\"",
    b"<",
    b">",
    b"</",
    b"/>",
    b"<o>",
    b"</o>",
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"]]>",
    b"<!DOCTYPE",
    b"<?",
    b"?>",
    b"&",
    b"&amp;",
    b"&#x",
    b"'",
    b" a='1'",
    b"1.50",
    b"007",
    b"\xFF\xFF\xFF\xFF",
    b"\xC3\xA9",
    b"\xEF\xBB\xBF",
];

const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Loads `bytes` as every format.
///
/// # Panics
/// If two ways of loading them differ.
pub fn run(bytes: &[u8]) -> Verdict {
    if bytes.len() > INPUT_BYTES_MAX {
        return Verdict::Skipped;
    }
    let dictionary = Arc::new(Dictionary::builtin());
    let formats = [
        Format::Fix(Arc::clone(&dictionary)),
        Format::Nvfix(dictionary),
        Format::Csv(Csv::default()),
        Format::Xml(Xml::default()),
    ];
    let source = Memory::new("fuzz", bytes);
    for format in formats {
        let loaded = Load::new(format.clone()).workers(1).run(&[&source]).expect("memory is read");
        let twice = Load::new(format).workers(2);
        let streamed = twice.run_stream("fuzz", &mut &*bytes).expect("memory is read");
        assert_eq!(shown(&streamed), shown(&loaded));
        assert_eq!(streamed.rejects, loaded.rejects);
    }
    for format in [Format::Arrow, Format::Parquet] {
        // Most inputs are refused; none may panic.
        let _ = Load::new(format).parquet(&quarrier_parquet::Reader).workers(2).run(&[&source]);
    }
    Verdict::Checked
}

/// Formats the values, with NaN as NaN.
fn shown(loaded: &Loaded) -> String {
    let columns = loaded.table.schema().fields.len();
    let row = |row| (0..columns).map(move |column| loaded.table.value(row, column)).collect();
    let rows: Vec<Vec<Value>> = (0..loaded.table.rows()).map(row).collect();
    format!("{rows:?}")
}
