//! SQLite.

use proptest::prelude::*;
use quarrier_carve::Carver;
use quarrier_carve::format::sqlite::Sqlite;

use crate::sample::{carved, check_whole_file, fixed_cases, valid, validated};

const PAGE: usize = 1024;

fn varint(value: u64) -> Vec<u8> {
    match value {
        0..=127 => vec![value as u8],
        _ => vec![0x80 | (value >> 7) as u8, value as u8 & 0x7F],
    }
}

/// Makes a page of a tree, with its cells from the end of the page on.
fn page(kind: u8, head: usize, right: u32, cells: &[Vec<u8>]) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let mut content = PAGE;
    let pointers = head + if kind == 5 { 12 } else { 8 };
    for (index, cell) in cells.iter().enumerate() {
        content -= cell.len();
        page[content..content + cell.len()].copy_from_slice(cell);
        let pointer = (content as u16).to_be_bytes();
        page[pointers + 2 * index..pointers + 2 * index + 2].copy_from_slice(&pointer);
    }
    page[head] = kind;
    page[head + 3..head + 5].copy_from_slice(&(cells.len() as u16).to_be_bytes());
    page[head + 5..head + 7].copy_from_slice(&(content as u16).to_be_bytes());
    if kind == 5 {
        page[head + 8..head + 12].copy_from_slice(&right.to_be_bytes());
    }
    page
}

/// Makes a database with a table of `leaves` pages of rows.
fn database(leaves: u32) -> Vec<u8> {
    let sql = b"CREATE TABLE t(a)";
    // Five columns: type, name, table, root, text.
    let mut row = vec![6, 23, 15, 15, 1, 13 + 2 * sql.len() as u8];
    row.extend_from_slice(b"tablett\x02");
    row.extend_from_slice(sql);
    let cell = [vec![row.len() as u8, 1], row].concat();
    let mut first = page(13, 100, 0, &[cell]);
    first[..16].copy_from_slice(b"SQLite format 3\0");
    first[16..18].copy_from_slice(&(PAGE as u16).to_be_bytes());
    first[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
    for (at, value) in [(24, 7), (28, leaves + 2), (40, 1), (44, 4), (56, 1), (92, 7)] {
        first[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
    }
    let last_row = |leaf: u32| u64::from(leaf + 1) * 10;
    let children: Vec<Vec<u8>> = (0..leaves - 1)
        .map(|leaf| [(leaf + 3).to_be_bytes().to_vec(), varint(last_row(leaf))].concat())
        .collect();
    let mut file = [first, page(5, 0, leaves + 2, &children)].concat();
    for leaf in 0..leaves {
        let rows: Vec<Vec<u8>> = (0..10)
            .map(|row| {
                let number = u64::from(leaf) * 10 + row + 1;
                let value: Vec<u8> = (0..50).map(|n| (n * number) as u8).collect();
                [vec![53], varint(number), vec![3, 0x80, 112], value].concat()
            })
            .collect();
        file.extend_from_slice(&page(13, 0, 0, &rows));
    }
    file
}

#[test]
fn a_database_has_as_many_pages_as_its_header_states() {
    check_whole_file(&Sqlite, "sqlite", &database(20));
}

#[test]
fn rows_out_of_order_are_no_table() {
    let mut file = database(20);
    let (left, right) = file.split_at_mut(9 * PAGE);
    left[6 * PAGE..7 * PAGE].swap_with_slice(&mut right[..PAGE]);
    let verdict = validated(&Sqlite, &file, &[]);
    let quarrier_carve::Verdict::Broken { at, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(at, 6 * PAGE as u64);
}

#[test]
fn trees_in_circles_come_to_an_end() {
    let good = database(10);
    for place in [PAGE + 8, PAGE + 11, 28, 32, 35, 52, 16] {
        for value in [0u8, 1, 2, 3, 0x7F, 0xFF] {
            let mut file = good.clone();
            file[place] = value;
            validated(&Sqlite, &file, &[0; 9000]);
        }
    }
}

proptest! {
    #![proptest_config(fixed_cases(30))]

    #[test]
    fn a_database_in_two_fragments_is_put_together_by_its_rows(
        leaves in 30u32..60,
        split in any::<prop::sample::Index>(),
        gap in 1usize..5,
        filling in prop::sample::select(vec![0u8, 0xFF, b'x']),
    ) {
        let file = database(leaves);
        let split = (1 + split.index((file.len() - 1) / 4096)) * 4096;
        let gap = vec![filling; gap * 4096];
        let image = [&file[..split], &gap, &file[split..], &[0xEE; 3000]].concat();
        let files = carved(&Carver::new().formats(vec![&Sqlite]), &image);
        prop_assert_eq!(valid(&files), [&file[..]]);
    }
}
