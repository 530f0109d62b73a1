//! GIF.

use quarrier_carve::format::gif::Gif;

use crate::sample::check_whole_file;

/// Makes a picture of 2 × 2 pixels, with a comment.
pub(crate) fn small() -> Vec<u8> {
    let mut gif = b"GIF89a\x02\x00\x02\x00\x80\x00\x00".to_vec();
    gif.extend_from_slice(&[0, 0, 0, 255, 255, 255]);
    gif.extend_from_slice(b"\x21\xFE\x05hello\x00");
    gif.extend_from_slice(b"\x2C\x00\x00\x00\x00\x02\x00\x02\x00\x00\x02\x02\x84\x51\x00\x3B");
    gif
}

#[test]
fn a_gif_ends_at_its_trailer() {
    check_whole_file(&Gif, "gif", &small());
}
