//! Profiles of AWS: sections of `~/.aws/credentials` and `~/.aws/config`.
//!
//! A small parser of our own: the format is not quite INI, since an indented line belongs to the key above
//! it, and neither quotes nor backslashes mean anything.

/// The sections of the two files.
#[derive(Default)]
pub(super) struct Profiles {
    sections: Vec<Section>,
}

struct Section {
    /// Whether it is of the file of settings, rather than of credentials.
    is_config: bool,
    kind: Kind,
    name: String,
    /// Keys in lower case; that of an indented line is behind the key above it and a dot.
    entries: Vec<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Profile,
    /// Addresses of services.
    Services,
    Other,
}

/// What is wrong in a line, without anything of the line.
type Wrong = String;

impl Profiles {
    /// Adds the sections of a file: of settings, or of credentials.
    pub(super) fn add(&mut self, text: &str, is_config: bool) -> Result<(), Wrong> {
        let first = self.sections.len();
        for (line, number) in text.trim_start_matches('\u{feff}').lines().zip(1usize..) {
            let wrong = |what: &str| Err(format!("line {number}: {what}"));
            let is_indented = line.starts_with([' ', '\t']);
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(header) = line.strip_prefix('[').filter(|_| !is_indented) {
                let Some((header, _)) = header.split_once(']') else {
                    return wrong("a section has no ']'");
                };
                self.sections.push(Section::new(header, is_config));
                continue;
            }
            let section = self.sections.get_mut(first..).and_then(<[Section]>::last_mut);
            let Some(section) = section else { return wrong("no section begins before it") };
            let entry = line.split_once(['=', ':']);
            match (is_indented, entry) {
                (false, Some((key, value))) => {
                    let key = key.trim().to_ascii_lowercase();
                    section.entries.push((key, without_comment(value).to_string()));
                }
                (true, Some((key, value))) => section.add_below(key.trim(), without_comment(value)),
                // The rest of a value, of none that matters.
                (true, None) => {}
                (false, None) => return wrong("expected 'key = value' or '[section]'"),
            }
        }
        Ok(())
    }

    /// The last value of a key in these sections.
    fn value(&self, is_wanted: impl Fn(&Section) -> bool, key: &str) -> Option<&str> {
        let sections = self.sections.iter().filter(|section| is_wanted(section));
        let entries = sections.flat_map(|section| &section.entries);
        let mut values = entries.filter(|(name, value)| name == key && !value.is_empty());
        values.next_back().map(|(_, value)| value.as_str())
    }

    fn profile<'p>(&'p self, name: &'p str) -> Profile<'p> {
        Profile { profiles: self, name }
    }
}

impl Section {
    /// A section with this header: `default`, `profile NAME` or `services NAME` among settings, and the
    /// name of a profile among credentials.
    fn new(header: &str, is_config: bool) -> Self {
        let header = header.trim();
        let (word, rest) = header.split_once([' ', '\t']).unwrap_or((header, ""));
        let (kind, name) = match (is_config, word, rest) {
            (false, ..) => (Kind::Profile, header),
            (true, "default", "") => (Kind::Profile, "default"),
            (true, "profile", name) => (Kind::Profile, unquoted(name.trim())),
            (true, "services", name) => (Kind::Services, unquoted(name.trim())),
            (true, ..) => (Kind::Other, header),
        };
        Section { is_config, kind, name: name.to_string(), entries: Vec::new() }
    }

    /// Adds an indented entry, below the last key if that has no value.
    fn add_below(&mut self, key: &str, value: &str) {
        let owner = self.entries.iter().rev().find(|(name, _)| !name.contains('.'));
        if let Some((owner, of_owner)) = owner
            && of_owner.is_empty()
        {
            let key = format!("{owner}.{}", key.to_ascii_lowercase());
            self.entries.push((key, value.to_string()));
        }
    }
}

fn unquoted(name: &str) -> &str {
    let inner = |quote: char| name.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(name)
}

/// Returns a value without its trailing comment, which begins after a space.
fn without_comment(value: &str) -> &str {
    let ends = value
        .char_indices()
        .zip(value.chars().skip(1))
        .find(|((_, space), mark)| matches!(space, ' ' | '\t') && matches!(mark, '#' | ';'));
    ends.map_or(value, |((at, _), _)| &value[..at]).trim()
}

/// One profile of both files.
struct Profile<'p> {
    profiles: &'p Profiles,
    name: &'p str,
}

impl<'p> Profile<'p> {
    fn is_own(&self, section: &Section) -> bool {
        section.kind == Kind::Profile && section.name == self.name
    }

    fn exists(&self) -> bool {
        self.profiles.sections.iter().any(|section| self.is_own(section))
    }

    /// A value, rather of the credentials than of the settings.
    fn value(&self, key: &str) -> Option<&'p str> {
        self.credential(key, false).or_else(|| self.credential(key, true))
    }

    fn credential(&self, key: &str, is_config: bool) -> Option<&'p str> {
        let is_wanted = |section: &Section| self.is_own(section) && section.is_config == is_config;
        self.profiles.value(is_wanted, key)
    }

    /// The address of S3: that of the services of the profile, else that of all services.
    fn endpoint(&self) -> Option<&'p str> {
        if self.value("ignore_configured_endpoint_urls").is_some_and(is_true) {
            return None;
        }
        let services = self.value("services").and_then(|name| {
            let is_wanted =
                |section: &Section| section.kind == Kind::Services && section.name == name;
            self.profiles.value(is_wanted, "s3.endpoint_url")
        });
        services.or_else(|| self.value("endpoint_url"))
    }

    /// The keys, if it has some. Looks for them in the order of the AWS command line.
    fn keys(&self) -> Result<Option<[(&'static str, &'p str); 3]>, String> {
        if self.value("role_arn").is_some() {
            return Err(self.needs("a role"));
        }
        let sso = ["sso_session", "sso_start_url", "sso_account_id", "login_session"];
        if sso.iter().any(|key| self.value(key).is_some()) {
            return Err(self.needs("a sign-in (SSO)"));
        }
        for is_config in [false, true] {
            if is_config && self.value("credential_process").is_some() {
                return Err(self.needs("a program (credential_process)"));
            }
            let value = |key: &str| self.credential(key, is_config);
            match (value("aws_access_key_id"), value("aws_secret_access_key")) {
                (Some(id), Some(secret)) => {
                    return Ok(Some([
                        ("AWS_ACCESS_KEY_ID", id),
                        ("AWS_SECRET_ACCESS_KEY", secret),
                        ("AWS_SESSION_TOKEN", value("aws_session_token").unwrap_or_default()),
                    ]));
                }
                (None, None) => {}
                _ => {
                    return Err(format!(
                        "the AWS profile '{}' has only one of aws_access_key_id and \
                         aws_secret_access_key",
                        self.name
                    ));
                }
            }
        }
        Ok(None)
    }

    fn needs(&self, what: &str) -> String {
        format!(
            "the AWS profile '{0}' gets its keys by {what}, which quarrier does not use; set the \
             variables that 'aws configure export-credentials --profile {0} --format env' prints",
            self.name
        )
    }
}

fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true") || value == "1"
}

/// The value of a variable, unless it is empty.
pub(super) fn setting<'s>(settings: &'s [(String, String)], name: &str) -> Option<&'s str> {
    let known = settings.iter().find(|(key, value)| key == name && !value.is_empty());
    known.map(|(_, value)| value.as_str())
}

fn has_any(settings: &[(String, String)], names: &[&str]) -> bool {
    names.iter().any(|name| setting(settings, name).is_some())
}

/// Whether the variables decide about keys. As for the AWS command line, they precede a profile, even one
/// that `AWS_PROFILE` names.
fn has_keys(given: &[(String, String)]) -> bool {
    let is_anonymous = setting(given, "AWS_SKIP_SIGNATURE").is_some_and(is_true);
    is_anonymous
        || has_any(given, &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
        || has_any(given, &["AWS_WEB_IDENTITY_TOKEN_FILE"])
}

fn has_region(given: &[(String, String)]) -> bool {
    has_any(given, &["AWS_REGION", "AWS_DEFAULT_REGION"])
}

fn has_endpoint(given: &[(String, String)]) -> bool {
    let ignored = setting(given, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").is_some_and(is_true);
    ignored || has_any(given, &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"])
}

/// Whether a profile can add something to these variables.
pub(super) fn has_gaps(given: &[(String, String)]) -> bool {
    !(has_keys(given) && has_region(given) && has_endpoint(given))
}

/// These variables, with those of the profile that they name, or of `default`.
pub(super) fn settings(
    given: &[(String, String)],
    profiles: &Profiles,
) -> Result<Vec<(String, String)>, String> {
    let named = setting(given, "AWS_PROFILE").or_else(|| setting(given, "AWS_DEFAULT_PROFILE"));
    let profile = profiles.profile(named.unwrap_or("default"));
    let mut settings = given.to_vec();
    let mut add = |name: &str, value: &str| settings.push((name.to_string(), value.to_string()));
    if !has_region(given)
        && let Some(region) = profile.value("region")
    {
        add("AWS_REGION", region);
    }
    if !has_endpoint(given)
        && let Some(url) = profile.endpoint()
    {
        add("AWS_ENDPOINT_URL", url);
    }
    if has_keys(given) {
        return Ok(settings);
    }
    if let Some(name) = named
        && !profile.exists()
    {
        return Err(format!(
            "AWS_PROFILE names the profile '{name}', which is neither in the file of credentials nor in \
             that of settings; 'aws configure list-profiles' lists them"
        ));
    }
    if let Some(keys) = profile.keys()? {
        // A token of the environment belongs to other keys.
        settings.retain(|(name, _)| name != "AWS_SESSION_TOKEN");
        let keys = keys.iter().filter(|(_, value)| !value.is_empty());
        settings.extend(keys.map(|&(name, value)| (name.to_string(), value.to_string())));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CREDENTIALS: &str = "\u{feff}\
# aws_access_key_id = no
[default]
aws_access_key_id=DEFAULT
aws_secret_access_key = de=fault/+: ; comment

[dev]
aws_access_key_id = DEV
aws_secret_access_key = dev#1
aws_session_token = token
region = eu-central-1

[half]
aws_access_key_id = HALF
";
    const CONFIG: &str = "\
[default]
region = us-west-2
s3 =
    endpoint_url = https://nested.example
    max_concurrent_requests = 20
[profile dev]
region = never
aws_access_key_id = NEVER
Endpoint_URL = https://dev.example
[profile \"with space\"]
services = local
endpoint_url = https://not.this
aws_access_key_id = SPACE
aws_secret_access_key = space
[services local]
dynamodb =
  endpoint_url = https://other.example
s3 =
  endpoint_url = https://local.example
[profile sso]
sso_session = corp
[sso-session corp]
sso_start_url = https://corp
[profile role]
role_arn = arn:aws:iam::1:role/a
source_profile = default
[profile process]
credential_process = /bin/print secrets
region = eu-north-1
[dev2]
aws_access_key_id = NO
";

    fn profiles() -> Profiles {
        let mut profiles = Profiles::default();
        profiles.add(CONFIG, true).unwrap();
        profiles.add(CREDENTIALS, false).unwrap();
        profiles
    }

    fn found(given: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        settings(&given.iter().map(owned).collect::<Vec<_>>(), &profiles())
    }

    /// The id, secret, token, region and endpoint.
    fn all(given: &[(&str, &str)]) -> [String; 5] {
        let found = found(given).unwrap();
        [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_REGION",
            "AWS_ENDPOINT_URL",
        ]
        .map(|name| setting(&found, name).unwrap_or_default().to_string())
    }

    #[test]
    fn a_profile_gives_what_the_variables_do_not() {
        assert_eq!(all(&[]), ["DEFAULT", "de=fault/+:", "", "us-west-2", ""]);
        assert_eq!(
            all(&[("AWS_PROFILE", "dev")]),
            ["DEV", "dev#1", "token", "eu-central-1", "https://dev.example"]
        );
        assert_eq!(
            all(&[("AWS_DEFAULT_PROFILE", "with space")]),
            ["SPACE", "space", "", "", "https://local.example"]
        );
        let token = ("AWS_SESSION_TOKEN", "of other keys");
        assert_eq!(all(&[token]), ["DEFAULT", "de=fault/+:", "", "us-west-2", ""]);
    }

    #[test]
    fn variables_precede_a_profile_even_one_that_they_name() {
        let keys = [("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "env")];
        let token = ("AWS_SESSION_TOKEN", "t");
        assert_eq!(all(&[keys[0], keys[1], token]), ["ENV", "env", "t", "us-west-2", ""]);
        assert_eq!(
            all(&[keys[0], keys[1], ("AWS_PROFILE", "dev"), ("AWS_REGION", "r")]),
            ["ENV", "env", "", "r", "https://dev.example"]
        );
        let region = found(&[("AWS_DEFAULT_REGION", "r")]).unwrap();
        assert_eq!(setting(&region, "AWS_REGION"), None);
        assert_eq!(all(&[("AWS_PROFILE", "dev"), ("AWS_ENDPOINT_URL", "e")])[4], "e");
        for name in ["AWS_ENDPOINT_URL_S3", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] {
            assert_eq!(all(&[("AWS_PROFILE", "dev"), (name, "true")])[4], "", "{name}");
        }
        assert_eq!(all(&[("AWS_PROFILE", "sso"), ("AWS_SKIP_SIGNATURE", "true")])[0], "");
        assert_eq!(all(&[("AWS_WEB_IDENTITY_TOKEN_FILE", "f")])[0], "");
        // Half a pair is not completed by another.
        assert_eq!(all(&[keys[0]])[1], "");
    }

    #[test]
    fn keys_that_need_more_than_the_files_are_an_error_that_says_what_to_do() {
        for (name, words) in [
            ("sso", "'aws configure export-credentials --profile sso --format env'"),
            ("role", "a role"),
            ("process", "credential_process"),
            ("half", "only one of"),
            ("dev2", "'aws configure list-profiles'"),
        ] {
            let error = found(&[("AWS_PROFILE", name)]).unwrap_err();
            assert!(error.contains(words) && error.contains(name), "{error}");
            assert!(!error.contains("/bin/print") && !error.contains("HALF"), "{error}");
            let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
            assert!(found(&[("AWS_PROFILE", name), keys[0], keys[1]]).is_ok());
        }
    }

    #[test]
    fn a_malformed_line_is_an_error_without_its_content() {
        for (text, line) in [("hidden = 1", 1), ("[a]\n\nhidden", 3), ("[hidden\n", 1)] {
            let wrong = Profiles::default().add(text, false).unwrap_err();
            assert!(wrong.starts_with(&format!("line {line}: ")), "{wrong}");
            assert!(!wrong.contains("hidden"), "{wrong}");
        }
    }

    #[test]
    fn complete_variables_need_no_profile() {
        let owned = |names: &[&str]| {
            names.iter().map(|name| (name.to_string(), "v".to_string())).collect::<Vec<_>>()
        };
        let keys = ["AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_ENDPOINT_URL"];
        assert!(!has_gaps(&owned(&keys)) && has_gaps(&owned(&keys[..2])) && has_gaps(&[]));
    }

    proptest! {
        #[test]
        fn no_text_panics_or_is_shown(
            words in prop::collection::vec(
                prop_oneof![
                    Just("[".to_string()), Just("]".to_string()), Just("\n".to_string()),
                    Just("profile ".to_string()), Just("default".to_string()), Just(" = ".to_string()),
                    Just("aws_access_key_id".to_string()), Just("\n  ".to_string()), Just(" #".to_string()),
                    Just("\"".to_string()), Just("Zq7".to_string()), "(?s).{0,4}",
                ],
                0..30,
            ),
            is_config in any::<bool>(),
        ) {
            let mut profiles = Profiles::default();
            match profiles.add(&words.concat(), is_config) {
                Ok(()) => {
                    if let Err(reason) = settings(&[], &profiles) {
                        prop_assert!(!reason.contains("Zq7"));
                    }
                }
                Err(wrong) => prop_assert!(!wrong.contains("Zq7")),
            }
        }

        #[test]
        fn written_values_are_read_again(
            values in prop::collection::vec(("[a-z_]{1,8}", "[!-~]([ -~]{0,8}[!-~])?"), 0..8),
        ) {
            // A trailing comment is not part of the value.
            let values: Vec<_> = values
                .into_iter()
                .map(|(key, value)| (key, value.replace(" #", "-#").replace(" ;", "-;")))
                .collect();
            let lines: Vec<_> =
                values.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
            let text = lines.concat();
            let mut profiles = Profiles::default();
            profiles.add(&format!("[p]\n{text}"), false).unwrap();
            for (key, _) in &values {
                let last = values.iter().rev().find(|(name, _)| name == key).unwrap();
                // A value that begins with a mark is behind a space, so it is a comment.
                let expected = Some(last.1.as_str()).filter(|value| !value.starts_with(['#', ';']));
                if values.iter().all(|(_, value)| !value.starts_with(['#', ';'])) {
                    prop_assert_eq!(profiles.profile("p").value(key), expected);
                }
            }
        }
    }
}
