//! The kit escapes any text, and keeps its meaning.

use maud::{Markup, html};
use proptest::prelude::*;
use quarrier_report::chart::{Axis, Bar, Chart, Point, Side, bars};
use quarrier_report::page::{
    Fold, Key, cells, cut, details, facts, figure, folded, header, legend, note, page, section,
    table,
};
use quarrier_report::{Colour, visible};

use crate::well_formed::check_page;

/// A page that has `text` wherever the kit takes text.
fn everywhere(text: &str) -> String {
    let axis = Axis::linear(0.0, 1.0, Vec::new());
    let mut chart = Chart::new(text, 50, &axis, &axis).lane(text);
    let at = Point { at: 0.5, value: 0.5, spread: (0.4, 0.6), is_hollow: true, title: text.into() };
    chart.line(Colour::BLUE, &[at]);
    chart.marks(&[(0.5, text)]);
    chart.span(Colour::BLUE, (0.1, 0.2), 0.5, text);
    chart.text((0.5, 0.5), Side::On, text);
    chart.tip((0.5, 0.5), text);
    chart.tips(&[text.to_string()], 1.0, |_| text.to_string());
    let bar = Bar {
        name: text.into(),
        under: text.into(),
        value: 1.0,
        spread: 0.5,
        value_text: html! { (text) },
        colour: Colour::BLUE,
    };
    let rows = html! { tr { td title=(text) { (text) } (cells([text])) } };
    let parts: [Markup; 9] = [
        header(text, text, true, &html! {}),
        facts(&[(text, text)]),
        section("one", text, &note(text)),
        folded("two", text, Fold::Closed, &html! { (text) }),
        details(text, true, &html! { a href=(text) { (text) } }),
        table(text, &["a", "#b", "="], &rows),
        figure(true, &html! { (text) }, chart),
        bars(&[bar]),
        legend(&[(Some(Key::Bad), html! { (text) })]),
    ];
    page(text, &[], &parts)
}

/// The text that a browser shows for markup without elements.
fn unescaped(markup: &str) -> String {
    let text = markup.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&amp;", "&")
}

proptest! {
    #[test]
    fn any_text_anywhere_is_harmless_and_stays_itself(
        text in r#"(\PC|[<>&"'=/\\ -]|\p{Cc}|\p{Cf}|\p{Zl}|[\x{e0000}-\x{e01ef}\x{fe00}-\x{fe0f}]){0,40}"#
    ) {
        let page = everywhere(&text);
        check_page(&page);
        prop_assert_eq!(page.matches("<script").count(), 0);
        let (_, title) = page.split_once("<title>").unwrap();
        let (title, _) = title.split_once("</title>").unwrap();
        prop_assert_eq!(unescaped(title), visible(&text));
    }

    #[test]
    fn cutting_keeps_what_comes_first(text in "\\PC{0,20}", most in 0usize..25) {
        let shown = cut(&text, most);
        prop_assert!(shown.chars().count() <= most + 1);
        prop_assert!(text.starts_with(shown.trim_end_matches('…')));
        prop_assert_eq!(text.chars().count() > most, shown.len() != text.len() || shown != text);
    }
}

#[test]
fn known_attacks_are_rendered_as_text() {
    let evil = "</title><script>alert(1)</script>\" onload='x' &amp;\0\n\x1b[31m\u{202e}gpj.exe";
    let page = everywhere(evil);
    check_page(&page);
    assert!(!page.contains("<script") && !page.contains("\" onload"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload='x' &amp;amp;"));
    assert!(page.contains("\\x00\\n\\x1b[31m\\u{202e}gpj.exe"));
}
