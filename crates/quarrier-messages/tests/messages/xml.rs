//! XML: one element per message, with its contents as paths.

use quarrier_messages::format::xml::{Xml, XmlPlace};
use quarrier_messages::{Format, Limits};

use crate::formats::{check, load_within};

fn xml() -> Format {
    Format::Xml(Xml::default())
}

#[test]
fn attributes_and_elements_are_fields_by_their_paths() {
    let cases: [(&str, &[&str]); 12] = [
        (r#"<l><o id="7"><side>B</side></o><o id="8"/></l>"#, &[r#"id=7 side="B""#, "id=8"]),
        ("<o id='1'/>\n<o id='2'/>\n", &["id=1", "id=2"]),
        (r#"<o id="1"/>"#, &["id=1"]),
        ("<l></l>", &[""]),
        (r#"<l><o><leg qty="1"/><leg qty="2"/></o></l>"#, &["leg[0].qty=1 leg[1].qty=2"]),
        ("<l><o><a><b><c> 1.50 </c></b></a></o></l>", &["a.b.c=150/2"]),
        ("<l><o><a x='1'>t</a></o></l>", &[r#"a="t" a.x=1"#]),
        ("<l><o><a/><b></b><c k=''/></o></l>", &[r#"c.k="""#]),
        ("<l><o>&lt;&#65;&#x42;&amp;</o></l>", &[r#"value="<AB&""#]),
        ("<l><o><![CDATA[<x>]]></o></l>", &[r#"value="<x>""#]),
        (
            "<?xml version='1.0'?><!DOCTYPE l [<!ENTITY e \"x>\">]><!-- <o/> -->\n<l xmlns='u'>\n\
             <!-- c --><o a='>'/>\n</l>\n<!-- end -->",
            &[r#"a=">""#],
        ),
        ("<l><o t='true'/><o t='x&quot;y'/></l>", &[r#"t="true""#, r#"t="x\"y""#]),
    ];
    for (text, expected) in cases {
        check(&xml(), text.as_bytes(), expected, &[]);
    }
    let options = |place, lists: &[&str]| {
        let lists = lists.iter().map(|&list| list.into()).collect();
        Format::Xml(Xml { place: Some(place), lists })
    };
    let order = b"<o><leg qty='1'/></o>";
    check(&options(XmlPlace::Outermost, &["leg"]), order, &["leg[0].qty=1"], &[]);
    check(&options(XmlPlace::Within, &[]), order, &["qty=1"], &[]);
}

#[test]
fn invalid_messages_are_listed_and_the_rest_loaded() {
    let cases: [(&[u8], &[&str], &[&str]); 7] = [
        (
            b"<l><o a='1'/>\n<o>&e;</o>\n<o a='2'/></l>",
            &["a=1", "a=2"],
            &["2 14 an entity that XML does not predefine"],
        ),
        (
            b"<l><o a='1'/>\n<o a='1' a='2'/>\n<o a='2'/></l>",
            &["a=1", "a=2"],
            &["2 14 attributes that are not well-formed"],
        ),
        (
            b"<l><o a='1'/>\n<o><b></o></b>\n<o a='2'/></l>",
            &["a=1", "a=2"],
            &["2 14 XML that is not well-formed"],
        ),
        (
            b"<l><o a='1'/>\nstray<o a='2'/></l>",
            &["a=1", "a=2"],
            &["2 14 text outside of elements"],
        ),
        (
            b"<l><o a='1'/>\n<o b='\xFF'/><o a='2'/></l>",
            &["a=1", "a=2"],
            &["2 14 bytes that are not UTF-8"],
        ),
        (b"<l><o a='1'/>\n<o><o a='2'/></l>", &["a=1"], &["2 14 XML that is not well-formed"]),
        (b"<o a='1'/>\n</o>\n<o a='2'/>", &["a=1", "a=2"], &["2 11 XML that is not well-formed"]),
    ];
    for (text, expected, refused) in cases {
        check(&xml(), text, expected, refused);
    }
}

#[test]
fn hostile_elements_have_bounded_cost() {
    let limits = Limits { message_bytes_max: 1 << 20, columns_max: 50, ..Limits::default() };
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    let names: String = (0..50_000).map(|n| format!("<n{n}>1</n{n}>")).collect();
    let open = "<o>".repeat(3 << 20);
    for (hostile, rows) in [(&deep, 2), (&format!("<o>{names}</o>"), 3)] {
        let log = format!("<l><o a='1'/>{hostile}<o a='2'/></l>");
        let loaded = load_within(&xml(), log.as_bytes(), 2, &limits);
        assert_eq!(loaded.table.rows(), rows);
    }
    let loaded = load_within(&xml(), format!("<l><o a='1'/>{open}").as_bytes(), 2, &limits);
    assert_eq!(loaded.table.rows(), 1);
    assert!(loaded.rejected > 0);
}
