//! Groups of file types: nobody can distinguish more colours than these.

use quarrier_report::Colour;

/// A group of file types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Pictures,
    Documents,
    Archives,
    Audio,
    Video,
    Programs,
    Data,
    Other,
}

impl Group {
    pub(super) const ALL: [Group; 8] = [
        Group::Pictures,
        Group::Documents,
        Group::Archives,
        Group::Audio,
        Group::Video,
        Group::Programs,
        Group::Data,
        Group::Other,
    ];

    /// The group of a type; `Other` for the user's own signatures.
    pub(super) fn of(kind: &str) -> Group {
        match kind {
            "jpg" | "png" | "gif" | "bmp" | "tif" | "webp" | "heic" | "avif" | "ico" | "svg"
            | "cr2" | "nef" | "arw" | "dng" | "orf" | "rw2" | "pef" | "raf" => Group::Pictures,
            "pdf" | "docx" | "xlsx" | "pptx" | "odt" | "ods" | "odp" | "odg" | "epub" | "doc"
            | "xls" | "ppt" | "ole" | "rtf" | "html" | "xml" => Group::Documents,
            "zip" | "gz" | "bz2" | "xz" | "zst" | "7z" | "rar" | "tar" => Group::Archives,
            "mp3" | "wav" | "flac" | "ogg" | "m4a" => Group::Audio,
            "mp4" | "mov" | "3gp" | "avi" | "mkv" | "webm" | "wmv" | "asf" | "mpg" | "ogv"
            | "m4v" => Group::Video,
            "elf" | "pe" | "class" | "jar" | "apk" | "msi" => Group::Programs,
            "sqlite" | "evtx" | "reg" | "lnk" | "plist" | "pst" | "pcap" | "eml" | "mbox"
            | "msg" => Group::Data,
            _ => Group::Other,
        }
    }

    /// As the legend names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Group::Pictures => "pictures",
            Group::Documents => "documents",
            Group::Archives => "archives",
            Group::Audio => "audio",
            Group::Video => "video",
            Group::Programs => "programs",
            Group::Data => "data and mail",
            Group::Other => "other",
        }
    }

    /// Its colour on the page.
    pub(super) fn colour(self) -> Colour {
        Colour::series(self as usize)
    }
}
