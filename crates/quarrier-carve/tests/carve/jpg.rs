//! JPEG.

use proptest::prelude::*;
use quarrier_carve::format::jpg::Jpg;
use quarrier_carve::{Carver, Extent, Format, Verdict, View};
use quarrier_core::source::Memory;

use crate::sample::{carved, check_whole_file, fixed_cases, scattered, valid, validated};

/// The Huffman codes of a table, with one length for all symbols but the last ones: short enough to
/// list here, and complete enough for any block.
struct Codes(Vec<u8>);

impl Codes {
    /// Makes the table of a DHT segment, with counts by length from 1 bit on.
    fn table(&self, class: u8) -> Vec<u8> {
        let mut table = vec![class];
        let mut counts = [0u8; 16];
        // The frequent symbols have few bits.
        let short = self.0.len().min(12);
        counts[3] = short as u8;
        counts[7] = (self.0.len() - short) as u8;
        table.extend(counts);
        table.extend(&self.0);
        table
    }

    fn code(&self, symbol: u8) -> (u32, u32) {
        let place = self.0.iter().position(|s| *s == symbol).expect("a symbol of the table") as u32;
        let short = self.0.len().min(12) as u32;
        if place < short { (place, 4) } else { ((short << 4) + place - short, 8) }
    }
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    held: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, (value, count): (u32, u32)) {
        for bit in (0..count).rev() {
            self.held = self.held << 1 | (value >> bit & 1);
            self.count += 1;
            if self.count == 8 {
                self.bytes.push(self.held as u8);
                if self.held as u8 == 0xFF {
                    self.bytes.push(0);
                }
                (self.held, self.count) = (0, 0);
            }
        }
    }

    fn value(&mut self, value: i32) {
        let size = size(value);
        let bits = if value < 0 { value + (1 << size) - 1 } else { value };
        self.put((bits as u32, size));
    }

    fn pad(&mut self) {
        while self.count > 0 {
            self.put((1, 1));
        }
    }
}

fn size(value: i32) -> u32 {
    32 - value.unsigned_abs().leading_zeros()
}

/// Pseudo-random numbers.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed | 1)
    }

    pub(crate) fn roll(&mut self, sides: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % sides
    }
}

fn segment(marker: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16 + 2).to_be_bytes();
    [&[0xFF, marker][..], &length, body].concat()
}

/// The parameters of a test picture.
#[derive(Debug, Clone, Copy)]
struct PictureParams {
    width: u16,
    height: u16,
    colour: bool,
    restart: u16,
    progressive: bool,
    seed: u64,
}

const SMALL: PictureParams =
    PictureParams { width: 70, height: 50, colour: true, restart: 0, progressive: false, seed: 3 };

fn dc_codes() -> Codes {
    Codes((0..10).collect())
}

fn ac_codes() -> Codes {
    let mut symbols = vec![0x01, 0x02, 0x03, 0x00, 0x11, 0x04, 0x21, 0xF0, 0x12, 0x31, 0x10, 0x20];
    let all = (0..5u8).flat_map(|run| (1..6).map(move |size| run << 4 | size));
    let more: Vec<u8> = all.filter(|symbol| !symbols.contains(symbol)).collect();
    symbols.extend(more);
    Codes(symbols)
}

/// Makes a picture: its headers, and the blocks of its components, which are runs of zeros and
/// values.
fn jpg(made: PictureParams) -> Vec<u8> {
    let mut dice = Dice::new(made.seed);
    let mut file = vec![0xFF, 0xD8];
    file.extend(segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"));
    file.extend(segment(0xDB, &[&[0][..], &[8; 64]].concat()));
    let count = if made.colour { 3 } else { 1 };
    let mut frame = vec![8];
    frame.extend(made.height.to_be_bytes());
    frame.extend(made.width.to_be_bytes());
    frame.push(count);
    for id in 1..=count {
        frame.extend([id, if id == 1 && made.colour { 0x22 } else { 0x11 }, 0]);
    }
    file.extend(segment(if made.progressive { 0xC2 } else { 0xC0 }, &frame));
    file.extend(segment(0xC4, &dc_codes().table(0)));
    file.extend(segment(0xC4, &ac_codes().table(0x10)));
    if made.restart > 0 {
        file.extend(segment(0xDD, &made.restart.to_be_bytes()));
    }
    let edge = if made.colour { 16 } else { 8 };
    let mcus = u32::from(made.width).div_ceil(edge) * u32::from(made.height).div_ceil(edge);
    let slots: &[usize] = if made.colour { &[0, 0, 0, 0, 1, 2] } else { &[0] };
    let band = if made.progressive { [0, 0, 0] } else { [0, 63, 0] };
    file.extend(scan(&(1..=count).collect::<Vec<_>>(), band));
    let mut bits = Bits::default();
    let across = u32::from(made.width).div_ceil(edge);
    let wave = |column: u32| {
        let turns = f64::from(column) / f64::from(across) * (1.0 + (made.seed % 3) as f64);
        (((turns + (made.seed % 7) as f64 / 7.0) * std::f64::consts::TAU).sin() * 60.0) as i32
    };
    let mut dc = [0i32; 3];
    for mcu in 0..mcus {
        if made.restart > 0 && mcu > 0 && mcu % u32::from(made.restart) == 0 {
            bits.pad();
            bits.bytes.extend([0xFF, 0xD0 + (mcu / u32::from(made.restart) - 1) as u8 % 8]);
            dc = [0; 3];
        }
        for slot in slots {
            // Neighbours are similar, and so are rows; each picture has different waves.
            let base = if *slot > 0 { wave(mcu % across) } else { 0 };
            let near = base + (dc[*slot] - base) * 3 / 4;
            let next = (near + dice.roll(19) as i32 - 9).clamp(-90, 90);
            bits.put(dc_codes().code(size(next - dc[*slot]) as u8));
            bits.value(next - dc[*slot]);
            dc[*slot] = next;
            if !made.progressive {
                block(&mut bits, &mut dice);
            }
        }
    }
    bits.pad();
    file.extend(&bits.bytes);
    if made.progressive {
        file.extend(segment(0xDD, &[0, 0]));
        for id in 1..=count {
            refined(&mut file, &mut dice, made, id);
        }
    }
    file.extend([0xFF, 0xD9]);
    file
}

fn scan(components: &[u8], band: [u8; 3]) -> Vec<u8> {
    let mut body = vec![components.len() as u8];
    body.extend(components.iter().flat_map(|id| [*id, 0]));
    body.extend(band);
    segment(0xDA, &body)
}

/// Writes the AC codes of a block.
fn block(bits: &mut Bits, dice: &mut Dice) {
    let mut k = 1;
    loop {
        let run = dice.roll(5) * dice.roll(2);
        k += run + 1;
        if k > 64 || dice.roll(9) == 0 {
            break;
        }
        let value = (dice.roll(30) as i32 - 15) | 1;
        bits.put(ac_codes().code((run << 4) as u8 | size(value) as u8));
        bits.value(value);
        if k == 64 {
            return;
        }
    }
    bits.put(ac_codes().code(0));
}

/// Writes two scans of a component of a progressive picture: one with all AC coefficients without
/// their last bit, and runs of empty blocks; one with that bit.
fn refined(file: &mut Vec<u8>, dice: &mut Dice, made: PictureParams, id: u8) {
    let halved = made.colour && id > 1;
    let blocks = |pixels: u16| u32::from(pixels).div_ceil(if halved { 2 } else { 1 }).div_ceil(8);
    let count = blocks(made.width) * blocks(made.height);
    // Each block has one coefficient, or is in a run of two or three empty ones.
    let mut places = Vec::new();
    file.extend(scan(&[id], [1, 63, 0x01]));
    let mut bits = Bits::default();
    let mut at = 0;
    while at < count {
        let run = (2 + dice.roll(2)).min(count - at);
        if run >= 2 && dice.roll(3) == 0 {
            bits.put(ac_codes().code(0x10));
            bits.put((run - 2, 1));
            places.extend((0..run).map(|_| None));
            at += run;
        } else {
            let skipped = dice.roll(4);
            bits.put(ac_codes().code((skipped << 4) as u8 | 1));
            bits.put((dice.roll(2), 1));
            bits.put(ac_codes().code(0));
            places.push(Some(1 + skipped));
            at += 1;
        }
    }
    bits.pad();
    file.extend(&bits.bytes);
    file.extend(scan(&[id], [1, 63, 0x10]));
    let mut bits = Bits::default();
    for place in places {
        // A new coefficient after one zero, with a bit for each old one on the way.
        let (new, on_the_way) = match place {
            Some(old) if old <= 2 => (3, true),
            _ => (2, false),
        };
        bits.put(ac_codes().code(0x11));
        bits.put((dice.roll(2), 1));
        if on_the_way {
            bits.put((dice.roll(2), 1));
        }
        bits.put(ac_codes().code(0));
        if place.is_some_and(|old| old > new) {
            bits.put((dice.roll(2), 1));
        }
    }
    bits.pad();
    file.extend(&bits.bytes);
}

/// Makes a picture that fills a few blocks of an image.
pub(crate) fn small() -> Vec<u8> {
    jpg(SMALL)
}

#[test]
fn a_jpg_ends_after_its_last_block() {
    for progressive in [false, true] {
        for (colour, restart) in [(false, 0), (true, 0), (true, 3)] {
            let made = PictureParams { colour, restart, progressive, ..SMALL };
            check_whole_file(&Jpg, "jpg", &jpg(made));
        }
    }
}

#[test]
fn a_picture_with_a_block_too_few_or_too_many_is_broken() {
    for height in [SMALL.height - 16, SMALL.height + 16] {
        let mut file = small();
        let frame = memchr::memmem::find(&file, &[0xFF, 0xC0]).unwrap();
        file[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
        assert!(matches!(validated(&Jpg, &file, &[0; 100]), Verdict::Broken { .. }), "{height}");
    }
}

#[test]
fn a_thumbnail_does_not_end_the_picture_around_it() {
    let mut file = small();
    let thumbnail =
        segment(0xE1, &[b"Exif\0\0", &jpg(PictureParams { seed: 9, ..SMALL })[..]].concat());
    file.splice(2..2, thumbnail);
    check_whole_file(&Jpg, "jpg", &file);
    let files = carved(&Carver::new(), &[&[0x55; 512][..], &file, &[0x55; 512]].concat());
    assert_eq!(valid(&files), [&file[..]]);
}

#[test]
fn zeros_and_text_amid_a_picture_show_at_once() {
    let file = jpg(PictureParams { width: 800, height: 600, ..SMALL });
    let half = file.len() / 2;
    let text = b"and so on, until it is known that this is no picture. ".repeat(100);
    for gap in [&[0; 4096][..], &text] {
        let image = [&file[..half], gap, &file[half..]].concat();
        match validated(&Jpg, &image, &[]) {
            Verdict::Broken { at, sure, .. } => {
                assert!(sure <= half as u64 && at >= half as u64, "{sure}, {at}, {half}");
                assert!(at < half as u64 + 2048, "{at}, {half}");
            }
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(fixed_cases(24))]
    #[test]
    fn a_picture_in_three_fragments_is_found_again_or_not_believed(
        seed in any::<u64>(),
        cuts in (1usize..10, 1usize..10),
        gaps in (1usize..16, 1usize..16),
        kind in 0u32..3,
        progressive in any::<bool>(),
    ) {
        let (file, image) = in_three(seed, cuts, gaps, kind, progressive);
        let files = carved(&Carver::new(), &image);
        prop_assert!(valid(&files).iter().all(|found| *found == file));
    }
}

#[test]
fn most_pictures_in_three_fragments_are_found_again() {
    let mut whole = 0;
    for case in 0..24u64 {
        let mut dice = Dice::new(case * 7919);
        let mut draw = |most: u32| 1 + dice.roll(most) as usize;
        let (cuts, gaps) = ((draw(9), draw(9)), (draw(15), draw(15)));
        let (file, image) = in_three(case, cuts, gaps, case as u32 % 3, case % 2 == 0);
        whole += usize::from(valid(&carved(&Carver::new(), &image)) == [&file[..]]);
    }
    assert!(whole >= 22, "{whole} of 24");
}

/// Makes a picture, and an image with it in three fragments.
fn in_three(
    seed: u64,
    cuts: (usize, usize),
    gaps: (usize, usize),
    kind: u32,
    progressive: bool,
) -> (Vec<u8>, Vec<u8>) {
    let file = jpg(PictureParams { width: 640, height: 500, seed, progressive, ..SMALL });
    let mut dice = Dice::new(!seed);
    let mut gap = |blocks: usize| -> Vec<u8> {
        let byte = |_| match kind {
            0 => 0,
            1 => dice.roll(256) as u8,
            _ => b"a text with words in it, and lines\n"[dice.roll(35) as usize],
        };
        (0..blocks * 4096).map(byte).collect()
    };
    let blocks = file.len() / 4096;
    let first = (cuts.0 * blocks / 20).max(1) * 4096;
    let second = first + (cuts.1 * blocks / 20).max(1) * 4096;
    let image = [
        &gap(3)[..],
        &file[..first],
        &gap(gaps.0),
        &file[first..second],
        &gap(gaps.1),
        &file[second..],
        &gap(2),
    ]
    .concat();
    (file, image)
}

/// Makes a picture with an index of two, the second one `gap` bytes after the first. `order` is the
/// byte-order mark.
fn pair(order: [u8; 2], gap: usize) -> (Vec<u8>, Vec<u8>) {
    let is_little = order[1] == b'I';
    let u16 = |value: u16| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
    let u32 = |value: u32| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
    let plain = jpg(SMALL);
    let index = |second: u32| {
        let mut body = b"MPF\0".to_vec();
        body.extend(order);
        body.extend(u16(42));
        body.extend(u32(8));
        body.extend(u16(2));
        body.extend([&u16(0xB001)[..], &u16(4), &u32(1), &u32(2)].concat());
        body.extend([&u16(0xB002)[..], &u16(7), &u32(32), &u32(38)].concat());
        body.extend(u32(0));
        body.extend([0; 16]);
        body.extend([u32(0), u32(0), u32(second), u32(0)].concat());
        segment(0xE2, &body)
    };
    let first_bytes = plain.len() + index(0).len();
    // Offsets count from after SOI, the segment's four bytes and its name.
    let second = (first_bytes + gap - 10) as u32;
    let first = [&plain[..2], &index(second), &plain[2..]].concat();
    let file = [&first[..], &vec![0; gap], &jpg(PictureParams { seed: 5, ..SMALL })].concat();
    (first, file)
}

/// Returns the length of the picture at the start of `bytes`, if it is whole.
fn whole_bytes(bytes: &[u8], after: &[u8]) -> Option<u64> {
    match validated(&Jpg, bytes, after) {
        Verdict::Whole { length, .. } => Some(length),
        _ => None,
    }
}

#[test]
fn pictures_that_an_index_tells_of_are_of_the_file() {
    for order in [*b"II", *b"MM", *b" M"] {
        for gap in [0, 1, 1000] {
            let (first, file) = pair(order, gap);
            let (first_bytes, all_bytes) = (first.len() as u64, file.len() as u64);
            for after in [&[][..], &[0; 5000], &[0xFF; 5000], &jpg(SMALL)[..]] {
                assert_eq!(whole_bytes(&file, after), Some(all_bytes), "{order:?}, {gap}");
            }
            // Without its second picture, or with half of it, the first is whole.
            assert_eq!(whole_bytes(&first, &[]), Some(first_bytes));
            assert_eq!(whole_bytes(&file[..file.len() - 9], &[]), Some(first_bytes));
            assert_eq!(whole_bytes(&first, &[7; 5000]), Some(first_bytes));
        }
    }
}

#[test]
fn a_second_picture_is_read_for_fuel() {
    let (_, file) = pair(*b"MM", 10);
    let length = file.len() as u64;
    let source = Memory::new("sample", file);
    let mut view = View::new(&source);
    let mut whole = |fuel: u64| {
        view.look_at(&[Extent { offset: 0, length }], fuel);
        match Jpg.validate(&mut view) {
            Verdict::Whole { length, .. } => Some(length),
            _ => None,
        }
    };
    assert!((0..length).all(|fuel| whole(fuel).is_none()));
    assert_eq!(whole(3 * length), Some(length));
}

#[test]
fn a_second_picture_is_not_a_separate_file() {
    let (_, file) = pair(*b"MM", 1000);
    let files = carved(&Carver::new(), &[&[0x55; 512][..], &file, &[0x55; 512]].concat());
    assert_eq!(valid(&files), [&file[..]]);
    assert_eq!(files.len(), 1);
}

#[test]
fn a_second_picture_far_away_is_not_of_the_file() {
    let (first, file) = pair(*b"II", (64 << 10) + 1);
    assert_eq!(whole_bytes(&file, &[]), Some(first.len() as u64));
}

/// Makes pictures A and B, and an image in which A continues after the first part of B, and B after
/// the rest of A, with fragments at multiples of 512 bytes.
fn interleaved(seed: u64, progressive: bool) -> ([Vec<u8>; 2], Vec<u8>) {
    let made = |seed| jpg(PictureParams { width: 640, height: 500, seed, progressive, ..SMALL });
    let [a, b] = [made(seed), made(seed + 1)];
    let cut = |file: &[u8]| file.len() / 2 / 512 * 512 + 512;
    let (in_a, in_b) = (cut(&a), cut(&b) + 1024);
    let parts = [(7 * 512, &a[..in_a]), (0, &b[..in_b]), (0, &a[in_a..]), (0, &b[in_b..])];
    let image = scattered(&parts, 0);
    ([a, b], image)
}

#[test]
fn pictures_in_each_others_gaps_are_found_again() {
    let mut whole = 0;
    for seed in 0..8 {
        let ([a, b], image) = interleaved(100 * seed, seed % 2 == 0);
        let files = carved(&Carver::new(), &image);
        let found = valid(&files);
        assert!(found.iter().all(|file| **file == a || **file == b), "{seed}");
        whole += found.len();
    }
    assert!(whole >= 14, "{whole} of 16");
}

#[test]
fn a_picture_continues_after_the_file_in_its_gap() {
    let file = jpg(PictureParams { width: 640, height: 500, ..SMALL });
    let other = jpg(PictureParams { width: 1200, height: 900, seed: 3, ..SMALL });
    let cut = file.len() / 3 / 512 * 512;
    let parts = [(512, &file[..cut]), (0, &other[..]), (0, &file[cut..])];
    for filling in 0..3 {
        let files = carved(&Carver::new(), &scattered(&parts, filling));
        assert_eq!(valid(&files), [&file[..], &other]);
    }
}

#[test]
fn repeated_codes_are_not_text() {
    // A picture of one colour: every block has the same code, which may consist of letters.
    let scan = |byte: u8| {
        let mut file = small();
        let from = file.len() - 2 - 400;
        file[from..from + 400].fill(byte);
        validated(&Jpg, &file, &[])
    };
    for byte in b' '..=b'~' {
        let reason = match scan(byte) {
            Verdict::Broken { reason, .. } => reason,
            _ => String::new(),
        };
        assert_ne!(reason, "text", "{byte}");
    }
}
