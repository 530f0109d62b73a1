//! The pictures, small ones inside the page.

use std::path::Path;

use quarrier_carve::Status;
use quarrier_carve::folder::Row;

use super::base64::encoded;
use super::{linked, put, text};

/// Pictures on the page, bytes of one, and bytes of all, at most.
const PICTURES_MAX: usize = 400;
const PICTURE_BYTES_MAX: u64 = 256 << 10;
const BYTES_MAX: u64 = 8 << 20;

pub(super) struct Pictures<'r> {
    folder: Option<&'r Path>,
    link: Option<&'r str>,
    shown: String,
    count: usize,
    left_bytes: u64,
    not_shown: u64,
}

impl<'r> Pictures<'r> {
    pub(super) fn new(folder: Option<&'r Path>, link: Option<&'r str>) -> Self {
        let shown = String::new();
        Pictures { folder, link, shown, count: 0, left_bytes: BYTES_MAX, not_shown: 0 }
    }

    pub(super) fn add(&mut self, row: &Row) {
        let (Some(folder), Some(media)) = (self.folder, media_of(&row.kind)) else { return };
        if row.status != Status::Valid {
            return;
        }
        let fits =
            row.length <= PICTURE_BYTES_MAX.min(self.left_bytes) && self.count < PICTURES_MAX;
        let bytes = if fits { std::fs::read(folder.join(&row.path)).ok() } else { None };
        let Some(bytes) = bytes.filter(|bytes| bytes.len() as u64 == row.length) else {
            self.not_shown += 1;
            return;
        };
        self.left_bytes -= row.length;
        self.count += 1;
        let name = row.path.rsplit('/').next().unwrap_or(&row.path);
        put!(
            self.shown,
            "<figure><img loading=\"lazy\" decoding=\"async\" alt=\"\" \
             src=\"data:image/{media};base64,{}\"><figcaption>{}<br>{}</figcaption></figure>\n",
            encoded(&bytes),
            linked(self.link, &row.path, name),
            text::bytes(row.length),
        );
    }

    pub(super) fn write(&self, out: &mut String) {
        if self.count == 0 {
            return;
        }
        put!(out, "<section class=\"card\"><h2>Pictures</h2>\n<div class=\"pictures\">\n");
        out.push_str(&self.shown);
        put!(out, "</div>\n");
        if self.not_shown > 0 {
            put!(
                out,
                "<p class=\"none\">{} not shown, being large or too many; they are listed \
                 below.</p>\n",
                text::counted(self.not_shown, "more picture")
            );
        }
        put!(out, "</section>\n");
    }
}

/// What browsers show, and cannot be made to run anything.
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
