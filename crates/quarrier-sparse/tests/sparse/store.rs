//! Many files under one memory budget.

use quarrier_sparse::{Error, Span, SparseFile, SparseStore};

fn store_of(bytes_max: u64, ids: &[&str]) -> SparseStore {
    let store = SparseStore::new(Some(bytes_max));
    for id in ids {
        store.insert(SparseFile::new(*id)).unwrap();
    }
    store
}

#[test]
fn the_least_recently_used_bytes_of_any_file_go() {
    let store = store_of(100, &["a", "b"]);
    let (a, b) = (store.get("a").unwrap(), store.get("b").unwrap());
    a.write(0, &[1; 40]).unwrap();
    b.write(0, &[2; 40]).unwrap();
    a.read(0, 1).unwrap();
    b.write(1000, &[3; 40]).unwrap();
    assert_eq!(store.num_bytes(), 100);
    assert!(a.has(0, 40) && b.has(1000, 40) && b.has(20, 20) && !b.has(19, 1));
    // A block larger than the budget keeps only what fits.
    a.write(5000, &[4; 300]).unwrap();
    assert_eq!((store.num_bytes(), a.num_bytes(), b.num_bytes()), (100, 100, 0));
}

#[test]
fn pinned_bytes_stay_within_any_budget() {
    let store = store_of(10, &["a", "b"]);
    let (a, b) = (store.get("a").unwrap(), store.get("b").unwrap());
    let pin = a.pin(Span::new(0, 30)).unwrap();
    a.write(0, &[1; 30]).unwrap();
    b.write(0, &[2; 30]).unwrap();
    assert!(a.has(0, 30) && b.num_bytes() == 0);
    drop(pin);
    assert_eq!(store.evict(10), 20);
}

#[test]
fn names_are_unique_and_a_removed_file_lives_outside_of_the_budget() {
    let store = store_of(100, &["a", "b"]);
    assert_eq!(store.insert(SparseFile::new("a")).err(), Some(Error::Exists { id: "a".into() }));
    assert!(store.get("c").is_none() && store.remove("c").is_none());
    let a = store.get("a").unwrap();
    a.write(0, &[1; 50]).unwrap();
    assert!(store.remove("a").is_some());
    assert_eq!((store.num_bytes(), store.ids()), (0, vec!["b".to_string()]));
    a.write(50, &[1; 500]).unwrap();
    assert_eq!((store.num_bytes(), a.num_bytes()), (0, 550));
}

#[test]
fn a_store_comes_back_from_its_bytes() {
    let store = store_of(1000, &["a", "b"]);
    store.get("a").unwrap().write(5, b"hello").unwrap();
    store.get("b").unwrap().write(1 << 40, b"world").unwrap();
    let back = SparseStore::from_bytes(&store.to_bytes(), None).unwrap();
    assert_eq!((back.ids(), back.num_bytes()), (store.ids(), 10));
    assert_eq!(back.get("b").unwrap().read(1 << 40, 5).unwrap(), b"world");
    assert!(SparseStore::from_bytes(b"QRYSTOR\n", None).is_err());
}

#[test]
fn threads_that_write_and_read_keep_the_budget_and_get_right_bytes() {
    let store = store_of(200_000, &["a", "b", "c"]);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let store = &store;
            scope.spawn(move || {
                for i in 0..500u64 {
                    let file = store.get(["a", "b", "c"][(i % 3) as usize]).unwrap();
                    let offset = (i * 7919 + thread * 131) % 1000 * 1000;
                    let pin = file.pin(Span::new(offset, 1000)).unwrap();
                    file.write(offset, &[(offset / 1000) as u8; 1000]).unwrap();
                    assert_eq!(file.read(offset, 1000).unwrap(), [(offset / 1000) as u8; 1000]);
                    drop(pin);
                }
            });
        }
    });
    store.evict(200_000);
    let held: u64 = ["a", "b", "c"].iter().map(|id| store.get(id).unwrap().num_bytes()).sum();
    assert_eq!(store.num_bytes(), held);
    assert!(held <= 200_000);
}
