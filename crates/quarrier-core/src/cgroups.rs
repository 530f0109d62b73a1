//! The control groups of a process, in either version.

use std::path::{Path, PathBuf};

/// Returns the folders of a process's group and its parents for a controller such as `memory`, the
/// innermost first. `groups` is the content of `/proc/PID/cgroup`, and `root` usually
/// `/sys/fs/cgroup`. Version 1 has a hierarchy for each controller, version 2 one for all.
///
/// ```
/// use std::path::Path;
/// let root = Path::new("/sys/fs/cgroup");
/// let folders = quarrier_core::cgroups::folders("0::/a/b", root, "memory");
/// assert_eq!(folders, ["a/b", "a", ""].map(|folder| root.join(folder)));
/// ```
pub fn folders(groups: &str, root: &Path, controller: &str) -> Vec<PathBuf> {
    let folders = groups.lines().filter_map(|line| {
        // hierarchy:controllers:path
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let top = match controllers.split(',').any(|name| name == controller) {
            true => root.join(controller),
            false if controllers.is_empty() => root.to_path_buf(),
            false => return None,
        };
        let group = top.join(path.trim_start_matches('/'));
        let above = group.ancestors().take_while(|above| above.starts_with(&top));
        Some(above.map(Path::to_path_buf).collect::<Vec<_>>())
    });
    folders.flatten().collect()
}
