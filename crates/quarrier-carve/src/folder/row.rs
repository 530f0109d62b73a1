//! A file's row in reports.

use serde_json::{Value, json};

use crate::carved::Status;
use crate::view::Extent;

/// A file's row in reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The name of the source.
    pub source: String,
    /// The type of the file.
    pub kind: String,
    /// The offset in the source of the file's first byte; inside an archive, that of the archive.
    pub offset: u64,
    /// The length of the file in bytes.
    pub length: u64,
    /// The places of the file's bytes in the source; empty inside an archive.
    pub extents: Vec<Extent>,
    /// Whether the file is valid, partial, or a header.
    pub status: Status,
    /// Why the file is not valid; empty if it is.
    pub reason: String,
    /// The SHA-256 of the bytes written, in hexadecimal.
    pub sha256: String,
    /// The path of the written file, relative to the folder.
    pub path: String,
    /// The path of the file from the outermost archive, if it was in one:
    /// `"zip@0x1234!word/media/image1.png"`.
    pub container: Option<String>,
    /// The file system entry of the file's first byte, if file systems were examined.
    pub place: Option<RowPlace>,
    /// Whether the file's hash is known, if known hashes were given.
    pub known: Option<bool>,
    /// Other hashes of the bytes written, if requested.
    pub hashes: RowHashes,
}

/// Hashes other than SHA-256, in hexadecimal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowHashes {
    /// MD5.
    pub md5: Option<String>,
    /// SHA-1.
    pub sha1: Option<String>,
    /// BLAKE3.
    pub blake3: Option<String>,
}

impl RowHashes {
    /// Yields the hashes that are set, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [("md5", &self.md5), ("sha1", &self.sha1), ("blake3", &self.blake3)];
        all.into_iter().filter_map(|(name, hash)| Some((name, hash.as_deref()?)))
    }
}

/// The file system entry of a file's first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPlace {
    /// The path of the file that has or had this byte.
    pub file: Option<String>,
    /// The inode number of that file.
    pub inode: Option<u64>,
    /// `allocated`, `deleted`, `slack`, `free`, `metadata` or `outside`.
    pub state: String,
    /// The modification time of that file.
    pub modified: Option<String>,
}

impl Row {
    /// Returns the number of the file inside an archive, as in its name; 0 outside of archives.
    pub fn number(&self) -> u32 {
        let number = || self.path.rsplit_once('-')?.1.split_once('.')?.0.parse().ok();
        self.container.as_ref().and_then(|_| number()).unwrap_or(0)
    }

    /// Formats the row as one JSON object, without a line break.
    pub fn to_json(&self) -> String {
        let extents: Vec<_> = self.extents.iter().map(|e| [e.offset, e.length]).collect();
        let mut object = json!({
            "source": self.source,
            "type": self.kind,
            "offset": self.offset,
            "length": self.length,
            "extents": extents,
            "status": self.status.name(),
            "reason": self.reason,
            "sha256": self.sha256,
            "path": self.path,
        });
        if let Some(container) = &self.container {
            object["container"] = json!(container);
        }
        if let Some(place) = &self.place {
            object["file"] = json!(place.file);
            object["inode"] = json!(place.inode);
            object["state"] = json!(place.state);
            object["modified"] = json!(place.modified);
        }
        if let Some(known) = self.known {
            object["known"] = json!(known);
        }
        for (name, hash) in self.hashes.iter() {
            object[name] = json!(hash);
        }
        object.to_string()
    }

    /// Parses the output of [`to_json`](Row::to_json); `None` for anything else.
    pub fn from_json(text: &str) -> Option<Row> {
        let value: Value = serde_json::from_str(text).ok()?;
        let field = |name: &str| value.get(name)?.as_str().map(str::to_string);
        Some(Row {
            source: field("source")?,
            kind: field("type")?,
            offset: value.get("offset")?.as_u64()?,
            length: value.get("length")?.as_u64()?,
            extents: extents_of(value.get("extents")?)?,
            status: Status::from_name(value.get("status")?.as_str()?)?,
            reason: field("reason")?,
            sha256: field("sha256")?,
            path: field("path")?,
            container: field("container"),
            place: field("state").map(|state| RowPlace {
                file: field("file"),
                inode: value.get("inode").and_then(Value::as_u64),
                state,
                modified: field("modified"),
            }),
            known: value.get("known").and_then(Value::as_bool),
            hashes: RowHashes { md5: field("md5"), sha1: field("sha1"), blake3: field("blake3") },
        })
    }
}

/// Parses `[[offset, length], …]`.
pub(super) fn extents_of(value: &Value) -> Option<Vec<Extent>> {
    let pair = |pair: &Value| {
        Some(Extent { offset: pair.get(0)?.as_u64()?, length: pair.get(1)?.as_u64()? })
    };
    value.as_array()?.iter().map(pair).collect()
}
