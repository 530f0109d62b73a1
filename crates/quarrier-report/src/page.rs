//! The frame of every page: one file that loads nothing, with a policy that says so.

use std::fmt::Write;

use crate::escape_cut;

/// Characters of a title: enough for a long command line.
const TITLE_CHARS_MAX: usize = 1000;

/// A script, with the hash by which the page's policy allows it and no other.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    /// The text.
    pub text: &'static str,
    /// SHA-256 of the text, in base64.
    pub sha256: &'static str,
}

/// What the browser may do: nothing is loaded from anywhere, and only these scripts run, whatever a
/// name in the page may try. Plots carry their places in attributes, hence the styles.
fn policy(scripts: &[Script]) -> String {
    let mut policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:".to_string();
    if !scripts.is_empty() {
        policy.push_str("; script-src");
        for script in scripts {
            policy.push_str(&format!(" 'sha256-{}'", script.sha256));
        }
    }
    policy
}

/// Everything before the page's own header; `title` is plain text.
pub fn head(out: &mut String, title: &str, styles: &[&str], scripts: &[Script]) {
    // A String takes whatever is written to it.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"quarrier {}\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
        policy(scripts),
        env!("CARGO_PKG_VERSION"),
        escape_cut(title, TITLE_CHARS_MAX),
        styles.concat(),
    );
}

/// Everything after the last section; the scripts are those of [`head`].
pub fn foot(out: &mut String, scripts: &[Script]) {
    let _ = write!(
        out,
        "<footer>Written by quarrier {}. This page loads nothing from the network.</footer>\n\
         </main>\n",
        env!("CARGO_PKG_VERSION"),
    );
    for script in scripts {
        // The hash is that of all between the tags.
        let _ = writeln!(out, "<script>{}</script>", script.text);
    }
    out.push_str("</body>\n</html>\n");
}

#[cfg(test)]
mod tests {
    use super::{Script, foot, head};

    #[test]
    fn only_scripts_of_the_page_may_run() {
        let scripts = [Script { text: "f()", sha256: "abc=" }, Script { text: "g()", sha256: "d" }];
        let mut page = String::new();
        head(&mut page, "</title>\u{202e}", &["a {}\n"], &scripts);
        foot(&mut page, &scripts);
        assert!(page.contains("; script-src 'sha256-abc=' 'sha256-d'\">"), "{page}");
        assert!(page.contains("<script>f()</script>\n<script>g()</script>"), "{page}");
        assert!(page.contains("<title>&lt;/title&gt;\\u{202e}</title>"), "{page}");
    }

    #[test]
    fn pages_without_a_script_allow_none() {
        let mut page = String::new();
        head(&mut page, "a", &[], &[]);
        assert!(page.contains("default-src 'none'") && !page.contains("script-src"), "{page}");
    }
}
