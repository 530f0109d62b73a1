//! Pages: one file that loads nothing, with a policy that enforces this, and the elements of pages.
//!
//! ```text
//!  parts (maud) ──→ header, section, facts, table, figure … ──→ page ──→ the file
//!                                                               └ every part through `visible`
//! ```
//!
//! No text bypasses the table of harmful characters: [`html!`](maud::html) escapes markup in everything
//! it contains, and [`page`] escapes the remaining harmful characters of a part, in text, attributes
//! and titles.

mod kit;

pub use kit::{
    Fold, Key, cells, details, facts, figure, folded, header, legend, note, section, table,
};

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::visible;

/// Maximum length of a title in characters: enough for a long command line.
pub(crate) const TITLE_CHARS_MAX: usize = 1000;

/// The style of all pages, and its SHA-256 in base64, with which the policy allows only this style.
const STYLE: &str = include_str!("page.css");
const STYLE_SHA256: &str = "K+LCwAGnsvbiJ3wqlfbGS1gEh0f37YEQA1NjPmvfUhQ=";

/// A script, with the hash by which the page's policy allows only this script.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    /// The text.
    pub text: &'static str,
    /// SHA-256 of the text, in base64.
    pub sha256: &'static str,
}

/// The browser's policy: load nothing, and apply only this style and these scripts, even if a name in
/// the page contains others.
fn policy(scripts: &[Script]) -> String {
    let mut policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; \
         style-src 'sha256-{STYLE_SHA256}'"
    );
    if !scripts.is_empty() {
        policy.push_str("; script-src");
        for script in scripts {
            policy.push_str(&format!(" 'sha256-{}'", script.sha256));
        }
    }
    policy
}

/// Renders the whole page: `parts` in order, with every harmful character escaped as by [`visible`].
pub fn page(title: &str, scripts: &[Script], parts: &[Markup]) -> String {
    let foot = "This page loads nothing from the network.";
    framed(title, &policy(scripts), scripts, parts, foot)
}

/// Like [`page`], for a page from a server: its scripts may contact only that server.
pub fn live_page(title: &str, scripts: &[Script], parts: &[Markup]) -> String {
    let policy = policy(scripts) + "; connect-src 'self'";
    framed(title, &policy, scripts, parts, "This page contacts only its own server.")
}

fn framed(title: &str, policy: &str, scripts: &[Script], parts: &[Markup], foot: &str) -> String {
    let title = cut(title, TITLE_CHARS_MAX);
    let head = html! {
        meta charset="utf-8";
        meta http-equiv="Content-Security-Policy" content=(policy);
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        meta name="generator" content={ "quarrier " (env!("CARGO_PKG_VERSION")) };
        title { (title) }
    };
    let foot = html! {
        footer {
            "Written by quarrier " (env!("CARGO_PKG_VERSION"))
            ". " (foot)
        }
    };
    let body: String = parts.iter().map(|part| visible(&part.0) + "\n").collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (PreEscaped(visible(&head.0)))
                // The hashes cover everything between the tags.
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (PreEscaped(body)) (foot) }
                @for script in scripts { script { (PreEscaped(script.text)) } }
            }
        }
    };
    page.into_string() + "\n"
}

/// Cuts `text` to `chars_max` characters, with an ellipsis if more follow.
pub fn cut(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Embeds a picture of type `image/{media}`; browsers decode it when it scrolls into view.
pub fn picture(media: &str, bytes: &[u8]) -> Markup {
    let source = format!("data:image/{media};base64,{}", BASE64_STANDARD.encode(bytes));
    html! { img loading="lazy" decoding="async" alt="" src=(source); }
}

#[cfg(test)]
mod tests {
    use maud::html;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_allows_the_style_by_its_hash() {
        let hash = BASE64_STANDARD.encode(Sha256::digest(STYLE));
        assert_eq!(STYLE_SHA256, hash, "put the new hash beside the style that changed");
        let page = page("a", &[], &[]);
        assert!(page.contains(&format!("<style>{STYLE}</style>")));
        assert!(page.contains("default-src 'none'") && !page.contains("script-src"), "{page}");
        assert!(!page.contains("unsafe-inline"));
    }

    #[test]
    fn only_scripts_of_the_page_may_run() {
        let scripts = [Script { text: "f()", sha256: "abc=" }, Script { text: "g()", sha256: "d" }];
        let page = page("</title>\u{202e}", &scripts, &[]);
        assert!(page.contains("; script-src 'sha256-abc=' 'sha256-d'\">"), "{page}");
        assert!(page.contains("<script>f()</script><script>g()</script>"), "{page}");
        assert!(page.contains("<title>&lt;/title&gt;\\u{202e}</title>"), "{page}");
    }

    #[test]
    fn parts_of_a_page_are_always_escaped() {
        let evil = "</p><a href='\"'>&\n\x1b\u{202e}日";
        let page = page("t", &[], &[html! { p title=(evil) { (evil) } }]);
        let harmless = "&lt;/p&gt;&lt;a href='&quot;'&gt;&amp;\\n\\x1b\\u{202e}日";
        assert!(page.contains(&format!("<p title=\"{harmless}\">{harmless}</p>")), "{page}");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(cut("日本語", 2), "日本…");
        assert_eq!(cut("ab", 2), "ab");
    }
}
