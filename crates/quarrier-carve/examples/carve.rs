//! Carves an image and lists the files found: `carve IMAGE [FOLDER]`. With FOLDER it also writes
//! them.

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use quarrier_carve::{Carved, Carver, Keep, View};
use quarrier_core::sync::{into_inner, lock};
use sha2::{Digest, Sha256};

/// Writes files if there is a folder, and keeps a row for each.
struct Rows {
    folder: Option<PathBuf>,
    rows: Mutex<Vec<(u64, String)>>,
}

impl Keep for Rows {
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()> {
        let mut hash = Sha256::new();
        let mut bytes = Vec::new();
        view.each(0..carved.length(), |piece| {
            hash.update(piece);
            if self.folder.is_some() {
                bytes.extend_from_slice(piece);
            }
        });
        let path = format!("{}/{:012x}.{}", carved.kind, carved.offset(), carved.extension);
        if let Some(folder) = &self.folder {
            let path = folder.join(&path);
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            std::fs::write(path, bytes)?;
        }
        let extents: Vec<_> = carved.extents.iter().map(|e| (e.offset, e.length)).collect();
        let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let row = serde_json::json!({
            "type": carved.kind, "offset": carved.offset(), "length": carved.length(),
            "extents": extents, "status": carved.status.name(), "reason": carved.reason,
            "sha256": digest, "path": path,
        });
        let mut rows = lock(&self.rows);
        rows.push((carved.offset(), row.to_string()));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let image = words.next().ok_or("usage: carve IMAGE [FOLDER]")?;
    let source = quarrier_core::source::open(&image)?;
    let rows = Rows { folder: words.next(), rows: Mutex::default() };
    let summary = Carver::new().run(&*source, &rows)?;
    let mut sorted = into_inner(rows.rows);
    sorted.sort();
    use io::Write;
    let mut out = io::stdout().lock();
    for (_, row) in sorted {
        writeln!(out, "{row}")?;
    }
    writeln!(io::stderr(), "{summary:?}")?;
    Ok(())
}
