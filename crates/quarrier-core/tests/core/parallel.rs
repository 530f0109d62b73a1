//! Workers that fill one array: with any cut, the array equals that of a single loop.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};

use proptest::prelude::*;
use quarrier_core::Error;
use quarrier_core::parallel::{self, Cut, available_workers};

use crate::census::without_hanging;

/// The oracle: sums of windows, one element at a time.
fn window_sums(inputs: [&[u8]; 2], halo: usize) -> Vec<u64> {
    let sum = |input: &[u8], at: usize| -> u64 {
        let window = at.saturating_sub(halo)..(at + halo + 1).min(input.len());
        input[window].iter().map(|&byte| u64::from(byte)).sum()
    };
    (0..inputs[0].len()).map(|at| sum(inputs[0], at) + 1_000_000 * sum(inputs[1], at)).collect()
}

/// Computes the same with workers, which see only their chunk and the halo.
fn by_workers(inputs: [&[u8]; 2], halo: usize, cut: Cut) -> Vec<u64> {
    let mut out = vec![u64::MAX; inputs[0].len()];
    parallel::map(inputs, &mut out, halo, cut, |part, slices| {
        assert_eq!(slices.lead, slices.start.min(halo));
        let sum = |array: &[u8], at: usize| -> u64 {
            let window = at.saturating_sub(halo)..(at + halo + 1).min(array.len());
            array[window].iter().map(|&byte| u64::from(byte)).sum()
        };
        for (index, value) in part.iter_mut().enumerate() {
            let at = slices.lead + index;
            *value = sum(slices.arrays[0], at) + 1_000_000 * sum(slices.arrays[1], at);
        }
    })
    .unwrap();
    out
}

proptest! {
    #[test]
    fn results_do_not_depend_on_the_cut(
        pairs in prop::collection::vec(any::<(u8, u8)>(), 0..300),
        halo in prop_oneof![0_usize..20, Just(1_000)],
        chunk in prop_oneof![0_usize..40, Just(1_000), Just(usize::MAX)],
        workers in 0_usize..6,
    ) {
        let (first, second): (Vec<u8>, Vec<u8>) = pairs.into_iter().unzip();
        let inputs = [&first[..], &second[..]];
        let found = by_workers(inputs, halo, Cut { chunk, workers });
        prop_assert_eq!(found, window_sums(inputs, halo));
    }

    #[test]
    fn every_index_lies_in_exactly_one_part(
        length in 0_usize..5_000,
        chunk in prop_oneof![0_usize..40, Just(4_999), Just(usize::MAX)],
        workers in 0_usize..6,
    ) {
        let mut out = vec![0_usize; length];
        let parts = AtomicUsize::new(0);
        parallel::init(&mut out, Cut { chunk, workers }, |part, start| {
            parts.fetch_add(1, Ordering::Relaxed);
            assert!(chunk == 0 || part.len() == chunk.min(length - start));
            for (index, value) in part.iter_mut().enumerate() {
                *value += start + index + 1;
            }
        })
        .unwrap();
        prop_assert!(out.iter().enumerate().all(|(index, &value)| value == index + 1));
        if chunk > 0 {
            prop_assert_eq!(parts.into_inner(), length.div_ceil(chunk));
        }
    }
}

#[test]
fn workers_work_at_the_same_time() {
    without_hanging(|| {
        let met = Barrier::new(4);
        let threads = Mutex::new(HashSet::new());
        let mut out = [0; 4];
        parallel::init(&mut out, Cut { chunk: 1, workers: 4 }, |_, _| {
            met.wait();
            threads.lock().unwrap().insert(std::thread::current().id());
        })
        .unwrap();
        let threads = threads.into_inner().unwrap();
        assert_eq!(threads.len(), 4);
        assert!(threads.contains(&std::thread::current().id()), "the caller works too");
    });
}

#[test]
fn idle_workers_claim_the_next_chunk() {
    without_hanging(|| {
        let done = AtomicUsize::new(0);
        let mut out = [0; 100];
        parallel::init(&mut out, Cut { chunk: 1, workers: 2 }, |_, start| {
            // The first chunk takes as long as all others together.
            while start == 0 && done.load(Ordering::SeqCst) < 99 {
                std::thread::yield_now();
            }
            done.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
    });
}

#[test]
fn a_panic_reaches_the_caller_with_its_indexes_and_the_others_stop() {
    without_hanging(|| {
        // So many empty chunks that no worker would ever finish; the panic must stop the others.
        let mut out = vec![(); 1 << 60];
        let cut = Cut { chunk: 10, workers: 3 };
        let ended = parallel::init(&mut out, cut, |_, start| {
            assert!(start != 500, "this one is bad");
        });
        let Err(Error::Panicked { range, message }) = ended else { panic!("{ended:?}") };
        assert_eq!(range, 500..510);
        assert_eq!(message, "this one is bad");
    });
}

#[test]
fn panics_with_any_payload_are_reported() {
    let message = |kernel: fn()| {
        let ended = parallel::init(&mut [0], Cut::default(), |_, _| kernel());
        ended.unwrap_err().to_string()
    };
    assert!(message(|| panic!("plain")).ends_with("indexes 0 to 1: plain"));
    assert!(message(|| panic!("made of {}", 2)).ends_with("made of 2"));
    assert!(message(|| std::panic::panic_any(5)).ends_with("no message"));
}

#[test]
fn inputs_of_other_lengths_and_too_many_workers_are_refused() {
    let mut out = [0; 3];
    let long = [0; 4];
    let short = [0; 2];
    let full = [0; 3];
    for inputs in [[&full[..], &long[..]], [&short[..], &full[..]]] {
        let refused = parallel::map(inputs, &mut out, 0, Cut::default(), |_, _| {});
        assert!(matches!(refused, Err(Error::BadPlan(_))));
    }
    let cut = Cut { chunk: 1, workers: 5_000 };
    assert!(matches!(parallel::init(&mut out, cut, |_, _| {}), Err(Error::BadPlan(_))));
}

#[test]
fn elements_of_any_size_are_planned_for() {
    let mut nothings = vec![(); 10_000];
    let mut large = vec![[0_u8; 1 << 20]; 5];
    let cut = Cut { chunk: 0, workers: 2 };
    parallel::init(&mut nothings, cut, |_, _| {}).unwrap();
    parallel::init(&mut large, cut, |part, start| part.fill([start as u8; 1 << 20])).unwrap();
    assert!(large[4][0] >= 4 - 1, "no chunk is larger than two elements");
    assert!(available_workers() >= 1);
}
