//! Objects of buckets that a name matches.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use glob::{MatchOptions, Pattern};
use quarrier_core::source::SplitSource;
use quarrier_images::ewf::segments_among;
use quarrier_remote::{Error as RemoteError, ListedObject, Remote, is_bucket};

use super::{Named, Opener, Sources};
use crate::{Error, Result};

/// Maximum size of the names of one listing, in bytes.
const NAMES_BYTES_MAX: usize = 512 << 20;

/// Approximate size of a name without its characters.
const NAME_BYTES: usize = 64;

/// A `*` matches no slash, as in names of files.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// The names that a listing selects.
#[derive(Debug)]
struct Wanted<'w> {
    /// The URL of the bucket, with a slash.
    bucket: &'w str,
    /// The part of the URL after the bucket.
    key: &'w str,
    /// `None` for all objects below the prefix `key`.
    glob: Option<Pattern>,
}

/// Whether `text` names objects of a bucket by a glob, or by a prefix that ends with a slash.
pub(super) fn is_listing(text: &str) -> bool {
    Wanted::of(text).is_some()
}

/// Whether the object at `url` is one of those that `name` selects by a glob or a prefix.
pub fn selects(name: &str, url: &str) -> bool {
    Wanted::of(name).is_some_and(|wanted| {
        let (Some((scheme, bucket)), Some((other, rest))) =
            (wanted.bucket.split_once("://"), url.split_once("://"))
        else {
            return false;
        };
        let key = rest.strip_prefix(bucket).filter(|_| scheme.eq_ignore_ascii_case(other));
        key.is_some_and(|key| key.starts_with(wanted.prefix().0) && wanted.has(key))
    })
}

impl<'w> Wanted<'w> {
    fn of(url: &'w str) -> Option<Self> {
        let names = is_bucket(url).then(|| url.find("://").map(|at| at + 3))??;
        let slash = names + url[names..].find('/').filter(|&at| at > 0)?;
        let (bucket, key) = url.split_at(slash + 1);
        let is_folder = key.is_empty() || key.ends_with('/');
        if !has_glob(key) {
            return is_folder.then_some(Wanted { bucket, key, glob: None });
        }
        let below = if is_folder { "**" } else { "" };
        // A key that is no glob is used verbatim.
        let glob = Pattern::new(&format!("{key}{below}")).ok()?;
        Some(Wanted { bucket, key, glob: Some(glob) })
    }

    /// The beginning of all matching keys, and whether no slash follows it in any of them.
    fn prefix(&self) -> (&'w str, bool) {
        if self.glob.is_none() {
            return (self.key, false);
        }
        let (prefix, rest) = self.key.split_at(self.key.find(GLOB).unwrap_or(self.key.len()));
        let is_deep = rest.contains('/') || rest.contains("**");
        (prefix, !is_deep)
    }

    fn has(&self, key: &str) -> bool {
        self.glob.as_ref().is_none_or(|glob| glob.matches_with(key, MATCHING))
    }

    /// The order of local files, except those of a `**`: a glob goes through folders one by one, and a
    /// folder's files are in the order of their paths.
    fn order(&self, one: &str, other: &str) -> Ordering {
        match self.glob {
            Some(_) => one.split('/').cmp(other.split('/')),
            None => one.cmp(other),
        }
    }
}

const GLOB: [char; 3] = ['*', '?', '['];

fn has_glob(key: &str) -> bool {
    key.contains(GLOB)
}

impl Opener {
    /// The source, or the objects that it stands for.
    pub(super) fn listed<'n>(&self, named: &'n Named) -> Vec<Cow<'n, Named>> {
        let Named::Objects(url) = named else { return vec![Cow::Borrowed(named)] };
        let listed = self.objects(url).unwrap_or_else(|named| vec![named]);
        listed.into_iter().map(Cow::Owned).collect()
    }

    /// Resolves `name` to one source, like [`Sources::only`]; lists a bucket if `name` is a glob.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the name resolves to several sources.
    pub fn only(&self, name: impl Into<OsString>) -> Result<Named> {
        match Sources::only(name)? {
            Named::Objects(url) => self.only_object(&url),
            named => Ok(named),
        }
    }

    /// The only object that a URL with a glob stands for.
    pub(super) fn only_object(&self, url: &str) -> Result<Named> {
        let mut objects = self.objects(url).unwrap_or_else(|named| vec![named]);
        match (objects.pop(), objects.len()) {
            (Some(one), 0) => Ok(one),
            (_, more) => {
                let reason = format!("names {} objects; use them one at a time", more + 1);
                Err(Error::Unsupported { name: url.to_string(), reason })
            }
        }
    }

    /// The URLs of segments of a log, in the folder of the one at `url`, whose names begin like this. None if the
    /// folder cannot be listed because it is not one of a bucket.
    ///
    /// # Errors
    /// It cannot be listed.
    pub(super) fn segments_beside(&self, url: &str, beginning: &str) -> Result<Vec<String>> {
        let Some((folder, _)) = url.rsplit_once('/').filter(|_| is_bucket(url)) else {
            return Ok(Vec::new());
        };
        let glob = format!("{}/{beginning}*.qlog", Pattern::escape(folder));
        Ok(list(self.client()?, &glob, NAMES_BYTES_MAX, self.stop())?)
    }

    /// The objects that a URL stands for; the error is a source that reports it.
    fn objects(&self, url: &str) -> std::result::Result<Vec<Named>, Named> {
        let name = url.to_string();
        let listed = match self.client() {
            Ok(remote) => list(remote, url, NAMES_BYTES_MAX, self.stop()),
            Err(Error::Remote(error)) => Err(error),
            Err(error) => return Err(Named::Refused { name, reason: error.to_string() }),
        };
        match listed {
            Ok(urls) if urls.is_empty() => Err(Named::Missing(name)),
            Ok(urls) => Ok(without_parts(urls).into_iter().map(Named::Url).collect()),
            Err(error) => Err(Named::Unlisted(error)),
        }
    }
}

/// Lists the URLs of matching objects, in order.
fn list(
    remote: &Remote,
    url: &str,
    names_bytes_max: usize,
    stop: &AtomicBool,
) -> std::result::Result<Vec<String>, RemoteError> {
    let Some(wanted) = Wanted::of(url) else { return Ok(Vec::new()) };
    let (prefix, is_flat) = wanted.prefix();
    let folder = remote.folder(&format!("{}{prefix}", wanted.bucket))?.named(url);
    let mut chosen = Chosen::new(wanted, names_bytes_max);
    folder.list(is_flat, stop, &mut |object| chosen.take(object))?;
    chosen.finish(url)
}

/// The keys that a listing has selected so far.
#[derive(Debug)]
struct Chosen<'w> {
    wanted: Wanted<'w>,
    keys: Vec<String>,
    /// The memory left for names; `None` if the next one did not fit.
    bytes_left: Option<usize>,
    /// Whether an object has the name of the glob.
    is_literal: bool,
}

impl<'w> Chosen<'w> {
    fn new(wanted: Wanted<'w>, bytes_max: usize) -> Self {
        Chosen { wanted, keys: Vec::new(), bytes_left: Some(bytes_max), is_literal: false }
    }

    fn take(&mut self, object: ListedObject<'_>) -> ControlFlow<()> {
        // As for files, a name that exists is no glob.
        if self.wanted.glob.is_some() && object.key == self.wanted.key {
            self.is_literal = true;
            return ControlFlow::Break(());
        }
        if object.length > 0 && self.wanted.has(object.key) {
            let bytes = object.key.len() + self.wanted.bucket.len() + NAME_BYTES;
            self.bytes_left = self.bytes_left.and_then(|left| left.checked_sub(bytes));
            if self.bytes_left.is_none() {
                return ControlFlow::Break(());
            }
            self.keys.push(object.key.to_string());
        }
        ControlFlow::Continue(())
    }

    /// The URLs, in order. Errors are named `url`.
    fn finish(mut self, url: &str) -> std::result::Result<Vec<String>, RemoteError> {
        if self.is_literal {
            return Ok(vec![url.to_string()]);
        }
        if self.bytes_left.is_none() {
            let reason = format!(
                "more than {} objects match, and their names take more memory than a listing may; \
                 name fewer at a time",
                self.keys.len()
            );
            return Err(RemoteError::Unusable { source_name: url.to_string(), reason });
        }
        let wanted = &self.wanted;
        self.keys.sort_unstable_by(|one, other| wanted.order(one, other));
        // An object that is written during a listing may be on two pages.
        self.keys.dedup();
        Ok(self.keys.into_iter().map(|key| format!("{}{key}", wanted.bucket)).collect())
    }
}

/// Removes further segments and parts of images, which their first one stands for.
fn without_parts(urls: Vec<String>) -> Vec<String> {
    let is_ewf = |url: &&String| quarrier_images::ewf::is_ewf(Path::new(url));
    let is_split = |url: &&String| SplitSource::is_first_part(Path::new(url));
    if !urls.iter().any(|url| is_ewf(&url) || is_split(&url)) {
        return urls;
    }
    let all: HashSet<&Path> = urls.iter().map(Path::new).collect();
    let is_listed = |path: &Path| all.contains(path);
    let segments = urls.iter().filter(is_ewf).map(|url| segments_among(Path::new(url), is_listed));
    let mut taken: HashSet<PathBuf> =
        segments.flat_map(|files| files.into_iter().skip(1)).collect();
    for first in urls.iter().filter(is_split).map(Path::new) {
        // In order: the second part of one may look like the first of another.
        if !taken.contains(first) {
            taken.extend(SplitSource::parts_among(first, is_listed).into_iter().skip(1));
        }
    }
    drop(all);
    urls.into_iter().filter(|url| !taken.contains(Path::new(url))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_and_prefixes_are_listings_and_other_names_are_not() {
        for text in
            ["s3://b/", "gs://b/a/", "AZ://b/*", "s3://b/a?", "s3://b/**/*.dd", "s3://b/[a]"]
        {
            assert!(is_listing(text), "{text}");
        }
        let not =
            ["s3://b", "s3://", "s3:///", "s3:///*", "s3://b/a", "s3://b/[a", "http://h/*", "a*"];
        for text in not {
            assert!(!is_listing(text), "{text}");
        }
    }

    #[test]
    fn a_listing_requests_only_keys_with_the_prefix_of_the_glob() {
        let prefix = |url| Wanted::of(url).map(|wanted| wanted.prefix());
        assert_eq!(prefix("s3://b/"), Some(("", false)));
        assert_eq!(prefix("s3://b/a/"), Some(("a/", false)));
        assert_eq!(prefix("s3://b/a/x*.dd"), Some(("a/x", true)));
        assert_eq!(prefix("s3://b/a*/x"), Some(("a", false)));
        assert_eq!(prefix("s3://b/a/**"), Some(("a/", false)));
    }

    #[test]
    fn a_glob_selects_keys_as_it_selects_paths() {
        let has = |url, key| Wanted::of(url).is_some_and(|wanted| wanted.has(key));
        assert!(has("s3://b/a/*.dd", "a/x.dd") && !has("s3://b/a/*.dd", "a/b/x.dd"));
        assert!(has("s3://b/**/*.dd", "x.dd") && has("s3://b/**/*.dd", "a/b/x.dd"));
        assert!(has("s3://b/a/**", "a/b/c") && !has("s3://b/a/?", "a//"));
        assert!(selects("s3://b/a/", "s3://b/a/x/y") && !selects("s3://b/a/", "s3://b/ab"));
        assert!(selects("S3://b/a/", "s3://b/a/x") && !selects("s3://b/", "gs://b/a"));
        assert!(selects("s3://b/*.a", "s3://b/x.a") && !selects("s3://b/*.a", "s3://c/x.a"));
        assert!(has("s3://b/a*/", "ab/c/d") && !has("s3://b/a*/", "ab"));
    }

    #[test]
    fn names_take_no_more_memory_than_allowed() {
        let listed = |bytes_max: usize| {
            let mut chosen = Chosen::new(Wanted::of("s3://b/a*").unwrap(), bytes_max);
            let mut count = 0;
            // Neither other names nor objects without bytes count.
            for (key, length) in [("b", 1), ("a1", 0), ("a2", 1), ("x", 1), ("a3", 1), ("a2", 1)] {
                count += 1;
                if chosen.take(ListedObject { key, length }).is_break() {
                    break;
                }
            }
            (count, chosen.finish("s3://b/a*").map_err(|error| error.to_string()))
        };
        let each = "s3://b/".len() + 2 + NAME_BYTES;
        let all = ["s3://b/a2", "s3://b/a3"].map(str::to_string).to_vec();
        assert_eq!(listed(3 * each), (6, Ok(all)));
        let (count, refused) = listed(2 * each - 1);
        let refused = refused.unwrap_err();
        assert_eq!(count, 5);
        assert!(refused.starts_with("s3://b/a*: more than 1 objects match"), "{refused}");
    }

    #[test]
    fn segments_of_an_image_are_one_source() {
        let of = |names: &[&str]| without_parts(names.iter().map(|n| n.to_string()).collect());
        let found =
            of(&["s3://b/a.E01", "s3://b/a.E02", "s3://b/a.E04", "s3://b/b.e01", "s3://b/c"]);
        assert_eq!(found, ["s3://b/a.E01", "s3://b/a.E04", "s3://b/b.e01", "s3://b/c"]);
        let found =
            of(&["s3://b/a.000", "s3://b/a.001", "s3://b/a.003", "s3://b/b.001", "s3://b/b.002"]);
        assert_eq!(found, ["s3://b/a.000", "s3://b/a.003", "s3://b/b.001"]);
    }
}
