//! Output folders that are written while a source is read.

use std::path::Path;

use quarrier_core::name;
use quarrier_core::source::Source;

use crate::{Error, Result};

/// Refuses an output folder on the device to carve: writing there would overwrite the bytes to recover.
pub(crate) fn refuse_folder_on_source(folder: &Path, source: &dyn Source) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let beside = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let holder =
        std::fs::metadata(folder).or_else(|_| std::fs::metadata(beside.unwrap_or(Path::new("."))));
    let device = std::fs::metadata(name::path_of(source.name()));
    let (Ok(device), Ok(holder)) = (device, holder) else { return Ok(()) };
    match device.rdev() != 0 && device.rdev() == holder.dev() {
        true => Err(Error::Request(format!(
            "{}: is on {}, the device to carve; name a folder on another disk",
            name::of_path(folder),
            source.name()
        ))),
        false => Ok(()),
    }
}
