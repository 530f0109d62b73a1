//! Detects the type of an archive (docx, jar, …) by its entries.

use crate::format::Kind;
use crate::view::View;

pub(super) const ZIP: Kind = Kind::new("zip");
const DOCX: Kind = Kind::new("docx");
const XLSX: Kind = Kind::new("xlsx");
const PPTX: Kind = Kind::new("pptx");
const ODT: Kind = Kind::new("odt");
const ODS: Kind = Kind::new("ods");
const ODP: Kind = Kind::new("odp");
const EPUB: Kind = Kind::new("epub");
const JAR: Kind = Kind::new("jar");
const APK: Kind = Kind::new("apk");

pub(super) static KINDS: [Kind; 10] = [ZIP, DOCX, XLSX, PPTX, ODT, ODS, ODP, EPUB, JAR, APK];

/// Types by the contents of the member `mimetype`.
const BY_MIMETYPE: [(&[u8], Kind); 4] = [
    (b"application/vnd.oasis.opendocument.text", ODT),
    (b"application/vnd.oasis.opendocument.spreadsheet", ODS),
    (b"application/vnd.oasis.opendocument.presentation", ODP),
    (b"application/epub+zip", EPUB),
];

/// Marks of types in the names of the members so far.
#[derive(Debug, Default)]
pub(super) struct MemberNameInfo {
    by_mimetype: Option<Kind>,
    office: Option<Kind>,
    has_content_types: bool,
    has_manifest: bool,
    has_android_manifest: bool,
}

impl MemberNameInfo {
    /// Examines a member, whose name is at `name_at` and whose data are at `data_at`.
    pub(super) fn see(&mut self, view: &mut View<'_>, name_at: u64, name_bytes: u16, data_at: u64) {
        let Some(name) = view.take(name_at, name_bytes.into()) else { return };
        match name {
            b"[Content_Types].xml" => self.has_content_types = true,
            b"META-INF/MANIFEST.MF" => self.has_manifest = true,
            b"AndroidManifest.xml" => self.has_android_manifest = true,
            b"mimetype" => {
                let stands = |(text, _): &&(&[u8], Kind)| view.is_at(data_at, text);
                self.by_mimetype = BY_MIMETYPE.iter().find(stands).map(|(_, kind)| *kind);
            }
            _ if self.office.is_some() => {}
            _ if name.starts_with(b"word/") => self.office = Some(DOCX),
            _ if name.starts_with(b"xl/") => self.office = Some(XLSX),
            _ if name.starts_with(b"ppt/") => self.office = Some(PPTX),
            _ => {}
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match (self.by_mimetype, self.office) {
            (Some(kind), _) => kind,
            (None, Some(kind)) if self.has_content_types => kind,
            _ if self.has_android_manifest => APK,
            _ if self.has_manifest => JAR,
            _ => ZIP,
        }
    }
}
