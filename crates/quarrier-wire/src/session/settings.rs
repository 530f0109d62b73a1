//! Settings of a connection. Few have an effect; clients set many, and read them back.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::failure::{Failure, Result, state};
use crate::sql::milliseconds;

/// The version reported to clients: they adapt their catalog queries to it.
pub(crate) const VERSION: &str = "15.13";

/// The settings reported to clients at their start and after changes, spelled as clients expect.
const REPORTED: &[&str] = &[
    "server_version",
    "server_encoding",
    "client_encoding",
    "application_name",
    "default_transaction_read_only",
    "in_hot_standby",
    "is_superuser",
    "session_authorization",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
];

const USUAL: &[(&str, &str)] = &[
    ("server_version", VERSION),
    ("server_version_num", "150013"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("application_name", ""),
    ("default_transaction_read_only", "off"),
    ("default_transaction_isolation", "read committed"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "off"),
    ("in_hot_standby", "off"),
    ("is_superuser", "off"),
    ("session_authorization", ""),
    ("datestyle", "ISO, MDY"),
    ("intervalstyle", "postgres"),
    ("timezone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("search_path", "\"$user\", public"),
    ("extra_float_digits", "1"),
    ("statement_timeout", "0"),
    ("max_identifier_length", "63"),
    ("bytea_output", "hex"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("lc_messages", "C"),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
    ("client_min_messages", "notice"),
    ("jit", "off"),
    ("synchronous_commit", "on"),
];

/// Maximum number of settings, more than any client needs.
const SETTINGS_MAX: usize = 256;
/// Maximum bytes of a value.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// Settings of a connection, by their names in lower case.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    at_start: BTreeMap<String, String>,
    now: BTreeMap<String, String>,
}

impl Settings {
    /// Makes the settings of a user, including those that the client requested.
    pub(super) fn new(user: &str, parameters: &[(String, String)]) -> Result<Self> {
        let usual = USUAL.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let mut settings = Settings { at_start: BTreeMap::new(), now: usual.collect() };
        settings.now.insert("session_authorization".to_string(), user.to_string());
        for (name, value) in parameters {
            if matches!(name.as_str(), "user" | "database" | "replication" | "options")
                || name.starts_with("_pq_.")
            {
                continue;
            }
            settings.set(&name.to_ascii_lowercase(), value)?;
        }
        settings.at_start = settings.now.clone();
        Ok(settings)
    }

    /// Yields the names and values of the settings that the server reports to clients.
    pub(super) fn reported(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let value = |name: &str| self.now.get(&name.to_ascii_lowercase()).map(String::as_str);
        REPORTED.iter().map(move |name| (*name, value(name).unwrap_or_default()))
    }

    /// Returns a setting in the form for clients, if it exists.
    pub(super) fn report(&self, name: &str) -> Option<(&'static str, &str)> {
        self.reported().find(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    pub(super) fn get(&self, name: &str) -> Result<&str> {
        self.now.get(&name.to_ascii_lowercase()).map(String::as_str).ok_or_else(|| {
            let said = format!("unrecognized configuration parameter \"{name}\"");
            Failure::new("42704", said)
        })
    }

    /// Sets a setting. Unknown names are stored, so that clients can read them back.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let refused = |what: &str| {
            let said = format!("invalid value for parameter \"{name}\": \"{value}\"; {what}");
            Failure::new(state::PARAMETER, said)
        };
        let fixed = [
            "server_version",
            "server_version_num",
            "server_encoding",
            "integer_datetimes",
            "is_superuser",
            "max_identifier_length",
            "in_hot_standby",
        ];
        if fixed.contains(&name) {
            let said = format!("parameter \"{name}\" cannot be changed");
            return Err(Failure::new("55P02", said));
        }
        if value.len() > VALUE_BYTES_MAX {
            return Err(Failure::new(state::PARAMETER, format!("\"{name}\" is too long")));
        }
        if value.eq_ignore_ascii_case("default") {
            self.reset(name);
            return Ok(());
        }
        let lower = value.to_ascii_lowercase();
        match name {
            "client_encoding" => {
                let plain: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
                if !matches!(plain.as_str(), "utf8" | "unicode") {
                    return Err(refused("only UTF8 is supported"));
                }
                self.now.insert(name.to_string(), "UTF8".to_string());
                return Ok(());
            }
            "datestyle" if !lower.starts_with("iso") => {
                return Err(refused("only ISO is supported"));
            }
            "datestyle" => {
                self.now.insert(name.to_string(), "ISO, MDY".to_string());
                return Ok(());
            }
            "standard_conforming_strings" if lower != "on" => {
                return Err(refused("only on is supported"));
            }
            "bytea_output" if lower != "hex" => return Err(refused("only hex is supported")),
            "statement_timeout" if milliseconds(&lower).is_none() => {
                return Err(refused(
                    "expected milliseconds, or a number with a unit: ms, s, min, h",
                ));
            }
            _ => {}
        }
        if self.now.len() >= SETTINGS_MAX && !self.now.contains_key(name) {
            return Err(Failure::new(state::LIMIT, "too many settings"));
        }
        self.now.insert(name.to_string(), value.to_string());
        Ok(())
    }

    /// Restores the value at the start of the session.
    pub(super) fn reset(&mut self, name: &str) {
        let usual = USUAL.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        match self.at_start.get(name).map(String::as_str).or(usual) {
            Some(value) => drop(self.now.insert(name.to_string(), value.to_string())),
            None => drop(self.now.remove(name)),
        }
    }

    pub(super) fn reset_all(&mut self) {
        self.now = self.at_start.clone();
    }

    /// Returns the maximum time of a statement, if set.
    pub(super) fn statement_time(&self) -> Option<Duration> {
        let value = self.now.get("statement_timeout")?;
        milliseconds(&value.to_ascii_lowercase())
            .filter(|milliseconds| *milliseconds > 0)
            .map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_set_read_and_reset() {
        let start = [("application_name".to_string(), "a".to_string())];
        let mut settings = Settings::new("ann", &start).unwrap();
        settings.set("statement_timeout", "2s").unwrap();
        assert_eq!(settings.statement_time(), Some(Duration::from_secs(2)));
        settings.set("my.own", "x").unwrap();
        assert_eq!(settings.get("My.Own"), Ok("x"));
        settings.set("application_name", "b").unwrap();
        settings.reset("application_name");
        assert_eq!(settings.get("application_name"), Ok("a"));
        settings.reset_all();
        assert!(settings.get("my.own").is_err() && settings.statement_time().is_none());
        for (name, value) in [
            ("client_encoding", "LATIN1"),
            ("datestyle", "German"),
            ("statement_timeout", "soon"),
            ("server_version", "17"),
        ] {
            assert!(settings.set(name, value).is_err(), "{name}");
        }
    }
}
