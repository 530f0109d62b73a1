//! The page at `/`: the current state of the server, and a form for queries.

use std::sync::OnceLock;

use maud::html;
use quarrier_report::page::{Script, header, live_page, note, section, table};

/// The page's script, and its SHA-256 in base64: the page's policy allows no other script.
const SCRIPT: &str = include_str!("page.js");
const SCRIPT_SHA256: &str = "7MMkRfF/Gj1Ygef4AOInigazE3y6qfTRvENDS+g2z9c=";

pub(super) fn page() -> String {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(made).clone()
}

fn made() -> String {
    let rest = html! { p.note #state { "…" } };
    let header = header("quarrier serve", "Current state of this server", false, &rest);
    let rates = section(
        "rates",
        "Rates",
        &html! {
            dl.facts {
                @for (id, label) in [
                    ("messages", "messages in"), ("rows", "rows out"), ("statements", "statements"),
                    ("sent", "sent"), ("failed", "statements failed"),
                    ("rejected", "messages rejected"),
                ] { div { dt { (label) } dd id=(id) { "…" } } }
            }
            figure.whole {
                figcaption #top { "statements/s" }
                svg.live viewBox="0 0 595 60" preserveAspectRatio="none" role="img"
                    aria-label="statements per second" {
                    polyline #line points="" fill="none" stroke="currentColor" stroke-width="1.5"
                        vector-effect="non-scaling-stroke" {}
                }
            }
        },
    );
    let none = html! {};
    let listed = |id: &str, columns: &[&str], nothing: &str| {
        html! {
            p.note id={ (id) "-none" } { (nothing) }
            div id=(id) hidden { (table("", columns, &none)) }
        }
    };
    let running =
        listed("running", &["#for", "#rows", "user", "statement"], "No running statements.");
    let tables = listed("tables", &["table", "#rows", "#memory", "columns"], "No tables.");
    let clients =
        listed("clients", &["user", "application", "from", "#for"], "No connected clients.");
    let ask = section(
        "box",
        "Query",
        &html! {
            p { textarea #sql rows="4" spellcheck="false" autocomplete="off"
                aria-label="SQL statement" { "SELECT 1 AS one" } }
            p { button #ask type="button" { "Run" } " "
                button #subscribe type="button" { "Subscribe" } " " span #said.note { "Ctrl+Enter also runs it." } }
            div.wide { table #answer {} }
        },
    );
    let parts = [
        header,
        rates,
        ask,
        section("now", "Running", &running),
        section("kept", "Tables", &tables),
        section(
            "here",
            "Clients",
            &html! { (clients) (note("Clients of PostgreSQL's protocol.")) },
        ),
    ];
    live_page("quarrier serve", &[Script { text: SCRIPT, sha256: SCRIPT_SHA256 }], &parts)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_allows_the_script_by_its_hash() {
        let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
        assert_eq!(SCRIPT_SHA256, hash, "update the hash when the script changes");
        let page = page();
        assert!(page.contains("connect-src 'self'") && !page.contains("://"), "{page}");
    }
}
