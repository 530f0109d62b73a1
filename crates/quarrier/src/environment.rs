//! Settings from the environment of the process, for sources and for this machine.

mod files;
mod netrc;
mod profile;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::{CredentialFiles, Places};

/// Proxies, credentials and the cache folder, read once and passed in: nothing else in the library
/// reads the environment.
///
/// `HTTP_PROXY` in capitals is ignored, since a web server sets it from a header of its clients.
/// Credentials are also in files, which are read when a source that may need them is opened: profiles of
/// AWS in `~/.aws`, and `~/.netrc` or the file that `NETRC` names.
/// `TMPDIR` names the folder for temporary files,
/// `QUARRIER_CACHE` the folder for fetched bytes; `QUARRIER_OFFLINE`, unless it is empty or 0,
/// forbids requests.
#[derive(Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Environment {
    remote: Vec<(String, String)>,
    /// Where files of credentials are, unless none are read.
    files: Option<Places>,
    cache_folder: Option<PathBuf>,
    remote_cache: Option<PathBuf>,
    temporary: Option<PathBuf>,
    is_offline: bool,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn of_process() -> Self {
        // The base directory specification ignores a relative path.
        let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|p| p.is_absolute());
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = std::env::var_os("XDG_CACHE_HOME").and_then(absolute);
        let home = std::env::var_os("HOME").and_then(absolute);
        let in_home = home.as_ref().map(|home| home.join(".cache"));
        let netrc = set("NETRC").map(PathBuf::from);
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Environment {
            remote: variables
                .filter(|(name, _)| quarrier_remote::Options::concerns(name))
                .collect(),
            files: Some(Places { home, netrc }),
            cache_folder: cache.or(in_home).map(|folder| folder.join("quarrier")),
            remote_cache: set("QUARRIER_CACHE").map(PathBuf::from),
            temporary: set("TMPDIR").map(PathBuf::from),
            is_offline: set("QUARRIER_OFFLINE").is_some_and(|value| value != "0"),
        }
    }

    /// These variables alone, for programs that hold credentials elsewhere: proxies, and the settings of
    /// buckets.
    pub fn of_variables(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let is_known = |(name, _): &(String, String)| quarrier_remote::Options::concerns(name);
        let remote = variables.into_iter().filter(is_known).collect();
        Environment { remote, ..Environment::default() }
    }

    /// The folder for data that quarrier can rebuild; it may not exist. `None` if the environment names
    /// neither a cache folder nor a home folder.
    pub fn cache_folder(&self) -> Option<&PathBuf> {
        self.cache_folder.as_ref()
    }

    /// The folder for bytes of remote sources if `QUARRIER_CACHE` names none.
    pub fn default_remote_cache(&self) -> Option<PathBuf> {
        self.cache_folder.as_ref().map(|folder| folder.join("remote"))
    }

    /// The folder for bytes of remote sources, if the environment names one.
    pub fn remote_cache(&self) -> Option<&PathBuf> {
        self.remote_cache.as_ref()
    }

    /// The folder for temporary files, which may be as large as a disk: the one that `TMPDIR` names, or
    /// `/var/tmp`, since `/tmp` is often in memory.
    pub fn temporary_folder(&self) -> &Path {
        let default = || [Path::new("/var/tmp"), Path::new("/tmp")];
        let found = || default().into_iter().find(|folder| folder.is_dir());
        self.temporary.as_deref().or_else(found).unwrap_or(Path::new("/tmp"))
    }

    /// Whether the environment forbids requests.
    pub(crate) fn is_offline(&self) -> bool {
        self.is_offline
    }

    /// The options for remote sources.
    pub(crate) fn remote_options(&self) -> quarrier_remote::Options {
        let mut options = quarrier_remote::Options::of_environment(&self.remote);
        if let Some(places) = &self.files {
            options.credentials = Some(Arc::new(CredentialFiles::new(places.clone())));
        }
        options
    }
}

impl std::fmt::Debug for Environment {
    /// Prints names without values: some values are secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.remote.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Environment")
            .field("remote", &names)
            .field("cache_folder", &self.cache_folder)
            .field("remote_cache", &self.remote_cache)
            .field("temporary", &self.temporary)
            .field("is_offline", &self.is_offline)
            .finish()
    }
}
