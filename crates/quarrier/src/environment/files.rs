//! The files in which users keep credentials: profiles of AWS, and netrc. They are read when a source that
//! may need them is opened, and once.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use quarrier_remote::{Credentials, Login};

use super::netrc::Netrc;
use super::profile::{self, Profiles};

/// Maximum size of such a file.
const BYTES_MAX: u64 = 1 << 20;

/// Where the files are, unless variables of AWS name others.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) home: Option<PathBuf>,
    pub(super) netrc: Option<PathBuf>,
}

/// The files, read when they are needed.
pub(super) struct CredentialFiles {
    places: Places,
    netrc: OnceLock<Result<Netrc, String>>,
    profiles: OnceLock<Result<Profiles, String>>,
}

impl fmt::Debug for CredentialFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialFiles").finish_non_exhaustive()
    }
}

impl CredentialFiles {
    pub(super) fn new(places: Places) -> Self {
        CredentialFiles { places, netrc: OnceLock::new(), profiles: OnceLock::new() }
    }

    fn read_netrc(&self) -> Result<Netrc, String> {
        match self.text_of(self.places.netrc.as_deref(), ".netrc")? {
            Some((path, text)) => Netrc::parse(&text).map_err(|wrong| located(&path, &wrong)),
            None => Ok(Netrc::default()),
        }
    }

    fn read_profiles(&self, given: &[(String, String)]) -> Result<Profiles, String> {
        let mut profiles = Profiles::default();
        for (variable, name, is_config) in [
            ("AWS_CONFIG_FILE", ".aws/config", true),
            ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", false),
        ] {
            let named = profile::setting(given, variable).map(|path| self.expanded(path));
            if let Some((path, text)) = self.text_of(named.as_deref(), name)? {
                let added = profiles.add(&text, is_config);
                added.map_err(|wrong| located(&path, &wrong))?;
            }
        }
        Ok(profiles)
    }

    /// A path in which `~` is the home folder, as the AWS command line reads it.
    fn expanded(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.places.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }

    /// The text of a file, and its path: the `named` one, or the one of this name in the home folder. `None`
    /// if there is none.
    fn text_of(
        &self,
        named: Option<&Path>,
        name: &str,
    ) -> Result<Option<(PathBuf, String)>, String> {
        let in_home = || self.places.home.as_ref().map(|home| home.join(name));
        let Some(path) = named.map(Path::to_path_buf).or_else(in_home) else { return Ok(None) };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            // The home folder may be that of another user, as in a container.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && named.is_none() => {
                return Ok(None);
            }
            Err(error) => return Err(located(&path, &error)),
        };
        let mut bytes = Vec::new();
        if let Err(error) = file.take(BYTES_MAX + 1).read_to_end(&mut bytes) {
            return Err(located(&path, &error));
        }
        if bytes.len() as u64 > BYTES_MAX {
            return Err(located(&path, &"is larger than 1 MiB"));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some((path, text))),
            Err(_) => Err(located(&path, &"is not UTF-8")),
        }
    }
}

impl Credentials for CredentialFiles {
    fn s3_settings(&self, given: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
        if !profile::has_gaps(given) {
            return Ok(given.to_vec());
        }
        match self.profiles.get_or_init(|| self.read_profiles(given)) {
            Ok(profiles) => profile::settings(given, profiles),
            Err(reason) => Err(reason.clone()),
        }
    }

    fn login(&self, host: &str) -> Result<Option<Login>, String> {
        match self.netrc.get_or_init(|| self.read_netrc()) {
            Ok(netrc) => Ok(netrc.login(host)),
            Err(reason) => Err(reason.clone()),
        }
    }
}

fn located(path: &Path, wrong: &dyn fmt::Display) -> String {
    format!("{}: {wrong}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(home: &Path, netrc: Option<&str>) -> CredentialFiles {
        let places = Places { home: Some(home.to_path_buf()), netrc: netrc.map(PathBuf::from) };
        CredentialFiles::new(places)
    }

    fn variable(name: &str, value: impl fmt::Display) -> (String, String) {
        (name.to_string(), value.to_string())
    }

    #[test]
    fn files_are_read_once_and_may_be_missing() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(files(home.path(), None).login("h"), Ok(None));
        let given = vec![variable("AWS_ENDPOINT_URL", "http://h")];
        assert_eq!(files(home.path(), None).s3_settings(&given), Ok(given));

        let path = home.path().join(".netrc");
        std::fs::write(&path, "machine h login me password hidden").unwrap();
        let read = files(home.path(), None);
        assert_eq!(read.login("h").unwrap().unwrap().password, "hidden");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.login("H").unwrap().unwrap().user, "me");
        assert!(!format!("{read:?}").contains("hidden"));
    }

    #[test]
    fn variables_name_other_files_and_the_home_folder() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("c"), "[default]\nregion = eu-west-1\n").unwrap();
        let other = home.path().join("keys");
        std::fs::write(
            &other,
            "[default]\naws_access_key_id = a\naws_secret_access_key = hidden\n",
        )
        .unwrap();
        let given = [
            variable("AWS_CONFIG_FILE", "~/c"),
            variable("AWS_SHARED_CREDENTIALS_FILE", other.display()),
        ];
        let settings = files(home.path(), None).s3_settings(&given).unwrap();
        assert_eq!(profile::setting(&settings, "AWS_REGION"), Some("eu-west-1"));
        assert_eq!(profile::setting(&settings, "AWS_SECRET_ACCESS_KEY"), Some("hidden"));
    }

    #[test]
    fn unusable_files_are_errors_without_their_content() {
        let home = tempfile::tempdir().unwrap();
        let netrc = home.path().join(".netrc");
        let aws = home.path().join(".aws");
        std::fs::create_dir(&aws).unwrap();
        let large = "#".repeat((BYTES_MAX + 1) as usize);
        for (bytes, words) in [
            (b"hidden hidden".as_slice(), "line 1: "),
            (b"\xffhidden", "is not UTF-8"),
            (large.as_bytes(), "is larger than 1 MiB"),
        ] {
            std::fs::write(&netrc, bytes).unwrap();
            std::fs::write(aws.join("credentials"), bytes).unwrap();
            for error in [
                files(home.path(), None).login("h").unwrap_err(),
                files(home.path(), None).s3_settings(&[]).unwrap_err(),
            ] {
                assert!(error.contains(words) && !error.contains("hidden"), "{error}");
            }
        }
        let named = files(home.path(), Some("/")).login("h").unwrap_err();
        assert!(named.starts_with("/: "), "{named}");
        std::fs::write(&netrc, vec![b'\n'; BYTES_MAX as usize]).unwrap();
        assert_eq!(files(home.path(), None).login("h"), Ok(None));
    }
}
