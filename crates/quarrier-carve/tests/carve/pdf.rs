//! PDF.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use quarrier_carve::format::pdf::Pdf;
use quarrier_carve::{Carver, Verdict};

use crate::sample::{carved, check_starved, check_whole_file, fixed_cases, valid, validated};

/// Writes a file object by object, and records their offsets.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    /// Offsets by number, from 1 on.
    offsets: Vec<usize>,
    table_at: usize,
}

impl Writer {
    pub(crate) fn new() -> Self {
        let bytes = b"%PDF-1.5\n%\xE2\xE3\xCF\xD3\n".to_vec();
        Writer { bytes, offsets: Vec::new(), table_at: 0 }
    }

    pub(crate) fn object(&mut self, body: &[u8]) -> &mut Self {
        self.offsets.push(self.bytes.len());
        let head = format!("{} 0 obj\n", self.offsets.len());
        self.bytes.extend_from_slice(&[head.as_bytes(), body, b"\nendobj\n"].concat());
        self
    }

    pub(crate) fn stream(&mut self, about: &str, data: &[u8]) -> &mut Self {
        let head = format!("<< /Length {} {about} >>\nstream\n", data.len());
        self.object(&[head.as_bytes(), data, b"\nendstream"].concat())
    }

    /// Writes a table of all objects from `first` on, and the end of the file.
    pub(crate) fn table(&mut self, first: usize) -> &mut Self {
        let prev =
            if self.table_at > 0 { format!("/Prev {}", self.table_at) } else { String::new() };
        self.table_at = self.bytes.len();
        let mut text = format!("xref\n0 1\n0000000000 65535 f \n{first} ");
        text += &format!("{}\n", self.offsets.len() + 1 - first);
        for offset in &self.offsets[first - 1..] {
            text += &format!("{offset:010} 00000 n \n");
        }
        text += &format!("trailer\n<< /Root 1 0 R {prev} >>\n");
        self.end(&text)
    }

    fn end(&mut self, text: &str) -> &mut Self {
        let text = format!("{text}startxref\n{}\n%%EOF\n", self.table_at);
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    /// As [`table`](Self::table), but as an uncompressed stream.
    pub(crate) fn table_stream(&mut self) -> &mut Self {
        self.table_at = self.bytes.len();
        let mut rows = vec![0; 6];
        for offset in self.offsets.iter().chain([&self.table_at]) {
            rows.push(1);
            rows.extend_from_slice(&(*offset as u32).to_be_bytes());
            rows.push(0);
        }
        let size = rows.len() / 6;
        self.stream(&format!("/Type /XRef /W [1 4 1] /Size {size} /Root 1 0 R"), &rows);
        self.end("")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }
}

/// Writes pages with one of these streams each; their bytes are noise, like compressed ones.
pub(crate) fn with_streams(streams: &[&[u8]]) -> Writer {
    let mut writer = Writer::new();
    writer.object(b"<< /Type /Catalog /Pages 2 0 R >>");
    writer.object(b"<< /Type /Pages /Kids [3 0 R] /Count 1 /Title (a \\) (b)) >>");
    for stream in streams {
        writer.stream("/Filter /FlateDecode", stream);
    }
    writer
}

fn small() -> Writer {
    with_streams(&[b"not packed, and nobody looks", b"another"])
}

#[test]
fn a_pdf_ends_after_the_last_line_of_its_trailer() {
    let file = small().table(1).bytes();
    let bare = file.trim_ascii_end();
    check_whole_file(&Pdf, "pdf", bare);
    for line in ["\n", "\r", "\r\n", "\n\n"] {
        let file = [bare, line.as_bytes()].concat();
        match validated(&Pdf, &file, b"\0\n") {
            Verdict::Whole { length, .. } => assert_eq!(length, file.len() as u64, "{line:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_table_may_be_a_stream() {
    check_whole_file(&Pdf, "pdf", small().table_stream().bytes().trim_ascii_end());
}

#[test]
fn an_update_belongs_to_the_file() {
    let file = small().table(1).object(b"(new)").table(5).object(b"42").table(6).bytes();
    for after in [&b""[..], &[0; 2000]] {
        match validated(&Pdf, &file, after) {
            Verdict::Whole { length, .. } => assert_eq!(length, file.len() as u64),
            other => panic!("{other:?}"),
        }
    }
    // Cut off in the update, the file is not whole at any place.
    let cut = &file[..file.len() - 60];
    assert!(matches!(validated(&Pdf, cut, &[0xEE; 3000]), Verdict::Broken { .. }));
}

#[test]
fn tables_that_are_off_by_some_bytes_are_believed_and_by_a_block_not() {
    let file = small().table(1).bytes();
    let slipped = [&file[..9], b"% a line that a filter put in\n", &file[9..]].concat();
    match validated(&Pdf, &slipped, &[]) {
        Verdict::Whole { length, .. } => assert_eq!(length, slipped.len() as u64),
        other => panic!("{other:?}"),
    }
    let torn = [&file[..9], &[b'\n'; 512], &file[9..]].concat();
    assert!(!matches!(validated(&Pdf, &torn, &[]), Verdict::Whole { .. }));
}

#[test]
fn tables_that_lead_in_circles_come_to_an_end() {
    let mut writer = small();
    writer.table_at = writer.bytes.len();
    let file = writer.table(1).bytes();
    let text = format!("/Prev {}", writer.table_at);
    assert!(file.windows(text.len()).any(|window| window == text.as_bytes()), "it does");
    assert!(matches!(validated(&Pdf, &file, &[]), Verdict::Whole { .. }));
}

#[test]
fn nesting_without_an_end_is_no_value() {
    for open in [&b"<<"[..], b"[", b"(", b"<</a", b"{"] {
        let deep = open.repeat(20_000);
        let file = Writer::new().object(&deep).table(1).bytes();
        validated(&Pdf, &file, &[]);
    }
}

#[test]
fn a_header_alone_is_no_file() {
    assert_eq!(validated(&Pdf, b"%PDF-1.4\n", &[b'a'; 9000]), Verdict::Not);
    assert_eq!(validated(&Pdf, b"%PDF-1.4\n", b"startxref\n0\n%%EOF\n"), Verdict::Not);
}

#[test]
fn a_view_without_fuel_is_not_whole() {
    let file = small().table(1).object(b"(new)").table(5).bytes();
    check_starved(&Pdf, &file);
}

/// Writes pages with compressed streams of some thousand bytes each.
fn packed(lengths: &[usize]) -> Vec<u8> {
    let streams: Vec<Vec<u8>> = lengths
        .iter()
        .enumerate()
        .map(|(index, length)| {
            let mut packer = ZlibEncoder::new(Vec::new(), Compression::fast());
            let mut state = index as u32 + 1;
            let words = (0..*length / 3).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 20) as u16 & 0x3FF
            });
            words.for_each(|word| write!(packer, "{word} ").expect("memory"));
            packer.finish().expect("memory")
        })
        .collect();
    let streams: Vec<&[u8]> = streams.iter().map(|stream| &stream[..]).collect();
    with_streams(&streams).table(1).bytes()
}

/// Makes a font of three tables of noise, with their checksums.
fn font(lengths: [usize; 3]) -> Vec<u8> {
    let tags = [b"glyf", b"head", b"loca"];
    let (mut directory, mut tables) = (vec![0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0], Vec::new());
    for (index, (tag, length)) in tags.into_iter().zip(lengths).enumerate() {
        let mut table = filling(2, length.div_ceil(4096));
        table.truncate(length);
        table[0] = index as u8;
        let offset = 12 + 16 * tags.len() + tables.len();
        table.resize(length.next_multiple_of(4), 0);
        let sum = table.chunks_exact(4).enumerate().fold(0u32, |sum, (at, word)| {
            let is_left_out = tag == b"head" && at == 2;
            let word = u32::from_be_bytes(word.try_into().expect("four bytes"));
            if is_left_out { sum } else { sum.wrapping_add(word) }
        });
        directory.extend_from_slice(tag);
        for number in [sum, offset as u32, length as u32] {
            directory.extend_from_slice(&number.to_be_bytes());
        }
        tables.extend_from_slice(&table);
    }
    [directory, tables].concat()
}

#[test]
fn the_sums_of_a_font_tell_where_a_pdf_was_left() {
    let font = font([60_001, 54, 40_000]);
    let mut writer = with_streams(&[b"a page"]);
    let file = writer.stream("/Length1 100104", &font).table(1).bytes();
    for (left_at, kind) in (1..file.len() / 4096).zip([0, 2, 0, 2].into_iter().cycle()) {
        let (before, after) = file.split_at(left_at * 4096);
        // Noise that differs from that of the font.
        let gap: Vec<u8> = filling(kind, 5).iter().map(|byte| byte.rotate_left(3) ^ 0x5A).collect();
        let image = [&[0xEE; 4096], before, &gap, after, &[0; 5000]].concat();
        let files = carved(&Carver::new().formats(vec![&Pdf]), &image);
        assert!(valid(&files) == [&file[..]], "left at block {left_at}");
    }
}

fn filling(kind: u8, blocks: usize) -> Vec<u8> {
    let bytes = 0..(blocks * 4096) as u32;
    match kind {
        0 => bytes.map(|_| 0).collect(),
        1 => bytes.map(|n| b"the text of a letter \n"[n as usize % 22]).collect(),
        _ => bytes.map(|n| (n.wrapping_mul(2_654_435_761) >> 15) as u8).collect(),
    }
}

proptest! {
    #![proptest_config(fixed_cases(40))]

    #[test]
    fn packed_streams_tell_where_a_pdf_was_left(
        lengths in prop::collection::vec(3_000usize..90_000, 3..8),
        splits in prop::collection::vec((any::<prop::sample::Index>(), 1usize..9, 0u8..3), 1..3),
    ) {
        let file = packed(&lengths);
        let table = file.len() - 300;
        let mut places: Vec<_> = splits
            .iter()
            .map(|(split, blocks, kind)| {
                ((1 + split.index(table / 4096)) * 4096, filling(*kind, *blocks))
            })
            .collect();
        places.sort();
        places.dedup_by_key(|(place, _)| *place);
        let mut image = vec![0xEE; 4096];
        let mut from = 0;
        for (place, gap) in &places {
            image.extend_from_slice(&file[from..*place]);
            image.extend_from_slice(gap);
            from = *place;
        }
        image.extend_from_slice(&file[from..]);
        image.extend_from_slice(&[0; 5000]);
        let files = carved(&Carver::new().formats(vec![&Pdf]), &image);
        for found in valid(&files) {
            prop_assert!(found == &file[..], "{} bytes instead of {}", found.len(), file.len());
        }
        // Two gaps in one stream cannot be distinguished.
        if places.len() == 1 {
            prop_assert_eq!(valid(&files).len(), 1, "left at {}", places[0].0);
        }
    }
}
