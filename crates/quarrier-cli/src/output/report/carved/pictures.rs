//! The pictures: small ones are embedded in the page.

use std::path::Path;

use maud::{Markup, html};
use quarrier_carve::Status;
use quarrier_carve::folder::Row;
use quarrier_report::number::{bytes as size, counted};
use quarrier_report::page::{note, picture, section};

use super::linked;

/// Maximum number of pictures on the page, bytes of one, and bytes of all.
const PICTURES_MAX: usize = 400;
const PICTURE_BYTES_MAX: u64 = 256 << 10;
const BYTES_MAX: u64 = 8 << 20;

pub(super) struct Pictures<'r> {
    folder: Option<&'r Path>,
    link: Option<&'r str>,
    shown: Vec<Markup>,
    left_bytes: u64,
    not_shown: u64,
}

impl<'r> Pictures<'r> {
    pub(super) fn new(folder: Option<&'r Path>, link: Option<&'r str>) -> Self {
        Pictures { folder, link, shown: Vec::new(), left_bytes: BYTES_MAX, not_shown: 0 }
    }

    pub(super) fn add(&mut self, row: &Row) {
        let (Some(folder), Some(media)) = (self.folder, media_of(&row.kind)) else { return };
        if row.status != Status::Valid {
            return;
        }
        let is_small = row.length <= PICTURE_BYTES_MAX.min(self.left_bytes);
        let fits = is_small && self.shown.len() < PICTURES_MAX;
        let bytes = if fits { std::fs::read(folder.join(&row.path)).ok() } else { None };
        let Some(bytes) = bytes.filter(|bytes| bytes.len() as u64 == row.length) else {
            self.not_shown += 1;
            return;
        };
        self.left_bytes -= row.length;
        let name = row.path.rsplit('/').next().unwrap_or(&row.path);
        self.shown.push(html! {
            figure {
                (picture(media, &bytes))
                figcaption { (linked(self.link, &row.path, name)) br; (size(row.length)) }
            }
        });
    }

    pub(super) fn section(&self) -> Markup {
        if self.shown.is_empty() {
            return html! {};
        }
        let content = html! {
            div.pictures { @for picture in &self.shown { (picture) } }
            @if self.not_shown > 0 {
                (note(html! {
                    (counted(self.not_shown, "more picture"))
                    " not shown, because of their size or number; they are listed below."
                }))
            }
        };
        section("pictures", "Pictures", &content)
    }
}

/// The media type, if browsers show it and it cannot contain scripts.
fn media_of(kind: &str) -> Option<&'static str> {
    match kind {
        "jpg" => Some("jpeg"),
        "png" => Some("png"),
        "gif" => Some("gif"),
        "webp" => Some("webp"),
        "bmp" => Some("bmp"),
        _ => None,
    }
}
