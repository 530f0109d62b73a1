//! Built-in scanners: a regex finds candidates, a judge validates them.
//!
//! | feature | valid where |
//! |---|---|
//! | `email`, `domain` | labels are well formed, and the last is a country or a common top-level domain |
//! | `url` | a host follows the scheme |
//! | `ipv4`, `ipv6`, `mac` | each number is in its range, and the address is not part of a longer one |
//! | `card` | an issuer has numbers of this beginning and length, and the check digit is right |
//! | `iban` | the country has this length, and the check digits are right |
//! | `phone` | international: `+`, and 8 to 15 digits |
//! | `bitcoin` | the checksum (Base58Check, Bech32, Bech32m) is right |
//! | `ethereum` | letters have one case, and the digits differ |
//! | `jwt` | the header decodes to JSON with `alg` |
//! | `private-key` | PEM from its first line to its last |
//! | `gps` | a sentence of NMEA 0183 whose checksum is right |

mod coins;
mod net;
mod numbers;
mod secrets;

use quarrier_core::pipeline::Chunk;
use quarrier_search::{Finding, Pattern};

/// Bytes around a match that a judge sees.
pub(super) const CONTEXT_BYTES: usize = 2;

/// A match with the bytes around it, copied because others may change the bytes of a chunk.
pub(super) struct Seen<'s> {
    before: &'s [u8],
    found: &'s [u8],
    after: &'s [u8],
}

/// Returns the length of the valid prefix of a match; `None` if the match is invalid.
pub(super) type Judge = fn(&Seen<'_>) -> Option<usize>;

/// A built-in scanner.
#[derive(Debug)]
pub struct Feature {
    /// The name of the scanner, and of the pattern in its rows.
    pub name: &'static str,
    regex: &'static str,
    pub(super) judge: Judge,
}

static ALL: &[Feature] = &[
    Feature {
        name: "email",
        regex: r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}",
        judge: net::email,
    },
    Feature {
        name: "url",
        regex: r#"(?i:https?|ftp)://[!#-;=?-\[\]_a-z~]{3,2048}"#,
        judge: net::url,
    },
    Feature {
        name: "domain",
        regex: r"\b(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b",
        judge: net::domain,
    },
    Feature {
        name: "ipv4",
        regex: r"\b[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\b",
        judge: net::ipv4,
    },
    Feature {
        name: "ipv6",
        regex: r"[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{1,30}",
        judge: net::ipv6,
    },
    Feature { name: "mac", regex: r"\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b", judge: net::mac },
    Feature {
        name: "card",
        regex: r"\b[2-6][0-9]{3}(?:[ -]?[0-9]{1,6}){2,4}\b",
        judge: numbers::card,
    },
    Feature {
        name: "iban",
        regex: r"\b[A-Z]{2}[0-9]{2}(?:[0-9A-Z]{11,30}|(?: [0-9A-Z]{4}){2,7}(?: [0-9A-Z]{1,3})?)\b",
        judge: numbers::iban,
    },
    Feature { name: "phone", regex: r"\+[1-9][0-9 ().-]{6,20}[0-9]\b", judge: numbers::phone },
    Feature {
        name: "bitcoin",
        regex: r"\b(?:bc1[02-9ac-hj-np-z]{11,87}|[13][1-9A-HJ-NP-Za-km-z]{25,34})\b",
        judge: coins::bitcoin,
    },
    Feature { name: "ethereum", regex: r"\b0x[0-9A-Fa-f]{40}\b", judge: coins::ethereum },
    Feature {
        name: "jwt",
        regex: r"\beyJ[0-9A-Za-z_-]{8,2048}\.[0-9A-Za-z_-]{2,8192}\.[0-9A-Za-z_-]{0,2048}",
        judge: secrets::jwt,
    },
    Feature {
        name: "private-key",
        regex: r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----[\t\n\r -~]{16,8192}?-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
        judge: secrets::private_key,
    },
    Feature {
        name: "gps",
        regex: r"\$G[A-Z]{1,2}(?:GGA|GLL|RMC)[ -)+-~]{10,100}\*[0-9A-Fa-f]{2}",
        judge: secrets::gps,
    },
];

impl Feature {
    /// Parses a list of scanner names, separated by commas; `all` selects all of them.
    ///
    /// # Errors
    /// A message for the user, for an unknown name or an empty list.
    pub fn parse(list: &str) -> Result<Vec<&'static Feature>, String> {
        let mut wanted: Vec<&'static Feature> = Vec::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let all = ALL.iter().filter(|feature| name == "all" || feature.name == name);
            let before = wanted.len();
            let is_new = |feature: &&Feature| wanted.iter().all(|one| one.name != feature.name);
            let new: Vec<&'static Feature> = all.clone().filter(is_new).collect();
            wanted.extend(new);
            if before == wanted.len() && all.count() == 0 {
                let names: Vec<&str> = ALL.iter().map(|feature| feature.name).collect();
                return Err(match name {
                    "aes-key" => "the feature 'aes-key' is not available yet".to_string(),
                    _ => format!("no feature '{name}'; there are: all, {}", names.join(", ")),
                });
            }
        }
        match wanted.is_empty() {
            true => Err("no feature is named; 'all' selects all of them".to_string()),
            false => Ok(wanted),
        }
    }

    /// The pattern that finds its candidates.
    ///
    /// # Errors
    /// Never, as long as the regexes here are valid, which a test verifies.
    pub(super) fn pattern(&self) -> quarrier_search::Result<Pattern> {
        Ok(Pattern::regex(self.regex)?.named(self.name))
    }
}

/// The finding, cut to its valid prefix.
pub(super) fn judged(judge: Judge, chunk: &Chunk<'_>, finding: &Finding) -> Option<Finding> {
    let start = usize::try_from(finding.offset.checked_sub(chunk.offset)?).ok()?;
    let end = start.checked_add(finding.length as usize)?;
    let (first, last) = (start.saturating_sub(CONTEXT_BYTES), end.saturating_add(CONTEXT_BYTES));
    let copy = chunk.data.get(first..last.min(chunk.data.len()))?.to_vec();
    let (before, rest) = copy.split_at_checked(start - first)?;
    let (found, after) = rest.split_at_checked(end - start)?;
    let length = judge(&Seen { before, found, after })?;
    Some(Finding { length: u32::try_from(length).ok()?.min(finding.length), ..*finding })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The matches of a feature in a string.
    pub(super) fn found(name: &str, text: &str) -> Vec<String> {
        let feature = Feature::parse(name).unwrap()[0];
        let patterns = vec![feature.pattern().unwrap()];
        let built = quarrier_search::Searcher::builder().context(CONTEXT_BYTES).build(patterns);
        let found = built.unwrap().find_all(text.as_bytes()).unwrap();
        let chunk = Chunk::whole(text.as_bytes());
        let valid = found.iter().filter_map(|finding| judged(feature.judge, &chunk, finding));
        let text = |f: Finding| text[f.offset as usize..][..f.length as usize].to_string();
        valid.map(text).collect()
    }

    #[test]
    fn features_are_known_by_name_and_their_regexes_compile() {
        assert_eq!(Feature::parse("all").unwrap().len(), ALL.len());
        let two: Vec<&str> =
            Feature::parse("mac, email,mac").unwrap().iter().map(|f| f.name).collect();
        assert_eq!(two, ["mac", "email"]);
        assert!(Feature::parse("emial").unwrap_err().contains("there are: all, email"));
        assert!(Feature::parse("aes-key").unwrap_err().contains("not available yet"));
        assert!(Feature::parse("").is_err());
        let all = ALL.iter().map(|feature| feature.pattern().unwrap()).collect();
        assert!(quarrier_search::Searcher::builder().build(all).is_ok());
    }

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[&str]) {
        assert_eq!(found(name, text), expected, "{name}: {text}");
    }

    #[test]
    fn names_and_addresses_of_the_net() {
        check("email", "x ann@example.org, a..b@c.com b@-x.com c@d.txt", &["ann@example.org"]);
        check("email", "<A.B+c@mail.example.co.uk>.", &["A.B+c@mail.example.co.uk"]);
        check(
            "url",
            "see https://example.org/a?b=c#d. or ftp://x",
            &["https://example.org/a?b=c#d"],
        );
        check("url", "HTTP://EXAMPLE.ORG/(a) http://...", &["HTTP://EXAMPLE.ORG/(a)"]);
        check(
            "domain",
            "at www.example.org. a.txt main.rs -a.com",
            &["www.example.org", "main.rs"],
        );
        check(
            "ipv4",
            "10.0.0.1 256.1.1.1 1.2.3.4.5 v1.2.3.4 01.2.3.4 (8.8.8.8).",
            &["10.0.0.1", "8.8.8.8"],
        );
        check(
            "ipv6",
            "2001:db8::1 12:30:45 ::1 fe80::1%eth0 1:2:3:4:5:6:7:8 ::",
            &["2001:db8::1", "fe80::1", "1:2:3:4:5:6:7:8"],
        );
        check(
            "mac",
            "00:1a:2B:3c:4d:5e 00-1a:2b:3c:4d:5e ff:ff:ff:ff:ff:ff 00:1a:2b:3c:4d:5e:6f",
            &["00:1a:2B:3c:4d:5e"],
        );
    }

    #[test]
    fn numbers_with_check_digits() {
        check(
            "card",
            "4111 1111 1111 1111, 4111111111111112 378282246310005",
            &["4111 1111 1111 1111", "378282246310005"],
        );
        check(
            "card",
            "5555-5555-5555-4444 4444444444444444 6011000990139424",
            &["5555-5555-5555-4444", "6011000990139424"],
        );
        check(
            "iban",
            "GB82 WEST 1234 5698 7654 32 DE89370400440532013000.",
            &["GB82 WEST 1234 5698 7654 32", "DE89370400440532013000"],
        );
        check("iban", "GB83 WEST 1234 5698 7654 32 and DE8937040044053201300", &[]);
        check(
            "phone",
            "+44 20 7946 0958, +1 (212) 555-0100 +12 34",
            &["+44 20 7946 0958", "+1 (212) 555-0100"],
        );
    }

    #[test]
    fn coins_keys_and_tokens() {
        check(
            "bitcoin",
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
            &["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"],
        );
        check(
            "bitcoin",
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4 bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
            &["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"],
        );
        check(
            "bitcoin",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            &["bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"],
        );
        let address = "0x52908400098527886e0f7030069857d2e4169ee7";
        check("ethereum", &format!("{address} 0x{}", "0".repeat(40)), &[address]);
        let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
        check("jwt", &format!("Bearer {token} eyJhbGciXXXXXXXXXX.eyJ9.a"), &[token]);
        let key =
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----";
        check("private-key", &format!("{key} -----BEGIN PUBLIC KEY-----"), &[key]);
        let place = "$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47";
        check("gps", &format!("{place}\n{}", place.replace("*47", "*48")), &[place]);
    }
}
