//! The netrc file: logins of hosts, in the format that curl reads.
//!
//! A small parser of our own: crates for it accept no quoted values, or show the content in errors.

use std::iter::Peekable;
use std::str::Chars;

use quarrier_remote::Login;

/// The logins in a file.
#[derive(Default)]
pub(super) struct Netrc {
    machines: Vec<Machine>,
}

/// The login of a host, or of all others if it has none.
#[derive(Default)]
struct Machine {
    host: Option<String>,
    login: Option<String>,
    password: Option<String>,
}

/// What is wrong in a line, without anything of the line.
type Wrong = String;

impl Netrc {
    /// Parses a file.
    pub(super) fn parse(text: &str) -> Result<Self, Wrong> {
        let mut words = Words { chars: text.chars().peekable(), line: 1 };
        let mut machines: Vec<Machine> = Vec::new();
        while let Some(keyword) = words.keyword()? {
            match keyword.as_str() {
                "machine" => {
                    let host = Some(words.value("machine")?);
                    machines.push(Machine { host, ..Machine::default() });
                }
                "default" => machines.push(Machine::default()),
                "macdef" => {
                    words.value("macdef")?;
                    words.skip_macro();
                }
                "login" | "password" | "account" => {
                    let value = words.value(&keyword)?;
                    let Some(machine) = machines.last_mut() else {
                        return Err(words.wrong(&format!("'{keyword}' before any 'machine'")));
                    };
                    match keyword.as_str() {
                        "login" => machine.login = Some(value),
                        "password" => machine.password = Some(value),
                        // Only FTP has accounts.
                        _ => {}
                    }
                }
                _ => {
                    return Err(words.wrong(
                        "expected machine, default, login, password, account or macdef; a value with \
                         spaces needs quotes",
                    ));
                }
            }
        }
        Ok(Netrc { machines })
    }

    /// The login of a host: that of the first machine of this name, else the default.
    pub(super) fn login(&self, host: &str) -> Option<Login> {
        let is_host = |machine: &&Machine| {
            machine.host.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(host))
        };
        let default = || self.machines.iter().find(|machine| machine.host.is_none());
        let found = self.machines.iter().find(is_host).or_else(default)?;
        if found.login.is_none() && found.password.is_none() {
            return None;
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Some(Login { user: text(&found.login), password: text(&found.password) })
    }
}

/// The words of a file.
struct Words<'t> {
    chars: Peekable<Chars<'t>>,
    line: usize,
}

impl Words<'_> {
    fn wrong(&self, what: &str) -> Wrong {
        format!("line {}: {what}", self.line)
    }

    fn next(&mut self) -> Option<char> {
        let next = self.chars.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn skip_spaces(&mut self) {
        while self.chars.next_if(|c| c.is_whitespace()).is_some_and(|c| {
            self.line += usize::from(c == '\n');
            true
        }) {}
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {}
    }

    /// The next word where a keyword is expected, so that `#` begins a comment; `None` at the end.
    fn keyword(&mut self) -> Result<Option<String>, Wrong> {
        loop {
            self.skip_spaces();
            match self.chars.peek() {
                None => return Ok(None),
                Some('#') => self.skip_line(),
                Some(_) => return self.word().map(Some),
            }
        }
    }

    /// The word after a keyword.
    fn value(&mut self, keyword: &str) -> Result<String, Wrong> {
        self.skip_spaces();
        match self.chars.peek() {
            Some(_) => self.word(),
            None => Err(self.wrong(&format!("no value after '{keyword}'"))),
        }
    }

    /// A word, or a text in double quotes, in which a backslash protects the next character.
    fn word(&mut self) -> Result<String, Wrong> {
        let mut word = String::new();
        if self.chars.next_if_eq(&'"').is_none() {
            while let Some(c) = self.chars.next_if(|c| !c.is_whitespace()) {
                word.push(c);
            }
            return Ok(word);
        }
        let unclosed = self.wrong("a quote is not closed");
        loop {
            match self.next() {
                Some('"') => return Ok(word),
                Some('\\') => match self.next() {
                    Some('n') => word.push('\n'),
                    Some('r') => word.push('\r'),
                    Some('t') => word.push('\t'),
                    Some(c) => word.push(c),
                    None => return Err(unclosed),
                },
                Some(c) => word.push(c),
                None => return Err(unclosed),
            }
        }
    }

    /// Skips the lines of a macro, which end with an empty one.
    fn skip_macro(&mut self) {
        self.skip_line();
        let mut is_empty = true;
        while let Some(c) = self.next() {
            match c {
                '\n' if is_empty => return,
                '\n' => is_empty = true,
                '\r' => {}
                _ => is_empty = false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn login(text: &str, host: &str) -> Option<(String, String)> {
        let login = Netrc::parse(text).unwrap().login(host)?;
        Some((login.user, login.password))
    }

    fn pair(user: &str, password: &str) -> Option<(String, String)> {
        Some((user.to_string(), password.to_string()))
    }

    #[test]
    fn the_machine_of_the_host_is_used_else_the_default() {
        let text = "# comment machine x\n\
                    machine one.org login me password p#1 # machine\n\
                    \tmachine TWO.org\n login \"a \\\"b\\\\\" password \"\"\n\
                    default login any password all\n\
                    machine one.org login other password other";
        assert_eq!(login(text, "ONE.org"), pair("me", "p#1"));
        assert_eq!(login(text, "two.org"), pair("a \"b\\", ""));
        assert_eq!(login(text, "machine"), pair("any", "all"));
        assert_eq!(login("machine h account a", "h"), None);
        assert_eq!(login("machine h password p", "h"), pair("", "p"));
        assert_eq!(login("machine h login a", "other.h"), None);
        assert_eq!(login("", "h"), None);
    }

    #[test]
    fn a_macro_is_skipped_up_to_an_empty_line() {
        let text =
            "macdef init\nmachine x login y\r\npassword z\r\n\r\nmachine h login a password b";
        assert_eq!(login(text, "h"), pair("a", "b"));
        assert_eq!(login(text, "x"), None);
        assert_eq!(login("machine h login a\nmacdef m\n\nlogin b", "h"), pair("b", ""));
        assert_eq!(login("macdef m", "h"), None);
    }

    #[test]
    fn malformed_files_are_errors_of_a_line_without_content() {
        for (text, line, words) in [
            ("machine h\nlogin a password hid den", 2, "expected machine"),
            ("login hidden", 1, "before any"),
            ("machine h\n\npassword", 3, "no value after 'password'"),
            ("machine", 1, "no value after 'machine'"),
            ("machine h password\n\"hidden\n\n", 2, "not closed"),
        ] {
            let wrong = Netrc::parse(text).err().unwrap();
            assert!(wrong.starts_with(&format!("line {line}: ")), "{wrong}");
            assert!(wrong.contains(words) && !wrong.contains("hid"), "{wrong}");
        }
    }

    fn quoted(value: &str) -> String {
        let mut text = String::from("\"");
        for c in value.chars() {
            match c {
                '\n' => text.push_str("\\n"),
                '"' | '\\' => text.extend(['\\', c]),
                c => text.push(c),
            }
        }
        text + "\""
    }

    proptest! {
        #[test]
        fn written_logins_are_read_again(
            machines in prop::collection::vec(("[a-z.]{1,8}", ".*", "(?s).*"), 0..6),
            between in "[ \t\r\n]{1,3}",
        ) {
            let mut text = String::new();
            for (host, user, password) in &machines {
                for word in ["machine", host, "login", &quoted(user), "password", &quoted(password)] {
                    text += word;
                    text += &between;
                }
            }
            for (host, ..) in &machines {
                let first = machines.iter().find(|(name, ..)| name == host).unwrap();
                prop_assert_eq!(login(&text, host), pair(&first.1, &first.2));
            }
        }

        #[test]
        fn no_text_panics_or_is_shown(
            words in prop::collection::vec(
                prop_oneof![
                    Just("machine".to_string()), Just("default".to_string()), Just("login".to_string()),
                    Just("macdef".to_string()), Just("\n".to_string()), Just("\"".to_string()),
                    Just("#".to_string()), Just("\\".to_string()), "(?s).{0,4}", Just("Zq7".to_string()),
                ],
                0..20,
            ),
            is_joined in any::<bool>(),
        ) {
            match Netrc::parse(&words.join(if is_joined { "" } else { " " })) {
                Ok(netrc) => drop(netrc.login("Zq7")),
                Err(wrong) => prop_assert!(!wrong.contains("Zq7")),
            }
        }
    }
}
