//! Random operations on a sparse file, compared with an oracle: a map from offset to byte.

use std::collections::BTreeMap;

use crate::{Error, Merge, OnConflict, Span, SparseFile, check_inside};

/// The oracle: obviously correct, and slow.
#[derive(Clone, Default)]
struct Model {
    bytes: BTreeMap<u64, u8>,
    length: Option<u64>,
}

impl Model {
    fn held(&self, span: Span) -> usize {
        self.bytes.range(span.offset..span.end()).count()
    }

    fn has(&self, span: Span) -> bool {
        self.fits(span) && self.held(span) as u64 == span.length
    }

    fn fits(&self, span: Span) -> bool {
        span.offset.checked_add(span.length).is_some_and(|end| end <= self.end())
    }

    fn end(&self) -> u64 {
        self.length.unwrap_or(u64::MAX)
    }

    fn write(&mut self, offset: u64, data: &[u8], replace: bool) -> Result<u64, Error> {
        let length = data.len() as u64;
        if !self.fits(Span::new(offset, length)) {
            let Some(file_length) = self.length.filter(|_| offset.checked_add(length).is_some())
            else {
                return Err(Error::Overflow { offset, length });
            };
            return Err(Error::BeyondLength { offset, length, file_length });
        }
        for (&given, at) in data.iter().zip(offset..) {
            match self.bytes.get(&at) {
                Some(&held) if held != given && !replace => {
                    return Err(Error::Conflict { offset: at, held, given });
                }
                _ => {}
            }
        }
        let before = self.bytes.len();
        self.bytes.extend(data.iter().zip(offset..).map(|(&byte, at)| (at, byte)));
        Ok((self.bytes.len() - before) as u64)
    }

    fn read(&self, span: Span) -> Option<Vec<u8>> {
        let bytes = self.bytes.range(span.offset..span.end()).map(|(_, &byte)| byte);
        self.has(span).then(|| bytes.collect())
    }

    fn need(&self, span: Span) -> Vec<Span> {
        let end = span.end().min(self.end());
        let mut at = span.offset;
        let mut missing = Vec::new();
        for &held in self.bytes.range(span.offset..end.max(span.offset)).map(|(at, _)| at) {
            if held > at {
                missing.push(Span::new(at, held - at));
            }
            at = held + 1;
        }
        if at < end {
            missing.push(Span::new(at, end - at));
        }
        missing
    }

    fn blocks(&self) -> Vec<Span> {
        let mut blocks: Vec<Span> = Vec::new();
        for &at in self.bytes.keys() {
            match blocks.last_mut() {
                Some(last) if last.end() == at => last.length += 1,
                _ => blocks.push(Span::new(at, 1)),
            }
        }
        blocks
    }
}

/// Marsaglia's xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// The offsets and lengths of a series of operations.
struct Plan {
    seed: u64,
    operations: usize,
    /// The first offset.
    base: u64,
    /// The size of the range of offsets.
    reach: u64,
    /// Offsets are multiples of this.
    step: u64,
    span_bytes_max: u64,
    replace: bool,
    length: Option<u64>,
}

impl Plan {
    fn span(&self, random: &mut Random) -> Span {
        let offset = random.below(self.reach) / self.step * self.step;
        let most = if random.one_in(8) { self.span_bytes_max * 8 } else { self.span_bytes_max };
        Span::new(self.base.saturating_add(offset), random.below(most + 1))
    }

    /// The bytes of the file at an offset, occasionally altered.
    fn data(&self, random: &mut Random, span: Span) -> Vec<u8> {
        let mut data: Vec<u8> =
            (0..span.length).map(|i| byte_at(span.offset.wrapping_add(i))).collect();
        if random.one_in(10) && !data.is_empty() {
            let at = random.below(data.len() as u64) as usize;
            data[at] ^= 1 << random.below(8);
        }
        data
    }

    fn run(&self) {
        let mut random = Random(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut model = Model { length: self.length, ..Model::default() };
        let mut builder = SparseFile::builder("model").wipe(random.one_in(2));
        builder = if let Some(bytes) = self.length { builder.length(bytes) } else { builder };
        if self.replace {
            builder = builder.on_conflict(OnConflict::Replace);
        }
        let mut file = builder.build();
        for step in 0..self.operations {
            self.operate(&mut random, &mut model, &mut file);
            if step % 64 == 0 {
                check_inside(&file);
                assert_eq!(file.blocks(), model.blocks());
                assert_eq!(file.num_blocks(), model.blocks().len());
                assert_eq!(file.held_end(), model.blocks().last().map_or(0, Span::end));
            }
            assert_eq!(file.num_bytes(), model.bytes.len() as u64);
        }
    }

    /// Reads ranges that follow each other closely, and some that do not.
    fn read_many(&self, random: &mut Random, model: &Model, file: &SparseFile) {
        let mut spans = vec![self.span(random)];
        for _ in 0..random.below(12) {
            let Some(&last) = spans.last() else { break };
            let next = if random.one_in(6) {
                self.span(random)
            } else {
                let from = last.offset.saturating_add(last.length.min(3) + random.below(3));
                Span::new(from, random.below(3))
            };
            spans.push(next);
        }
        let wanted: Vec<_> = spans.iter().map(|&span| model.read(span)).collect();
        // The ranges before the first that is not held.
        let readable = wanted.iter().take_while(|bytes| bytes.is_some()).count();
        let expected: Vec<u8> = wanted[..readable].iter().flatten().flatten().copied().collect();
        let mut buffer = vec![0; expected.len()];
        file.read_many_into(spans[..readable].iter().copied(), &mut buffer).unwrap();
        assert_eq!(buffer, expected);
        if let Some(&missing) = spans.get(readable) {
            let mut buffer = vec![0; missing.length as usize];
            assert!(file.read_many_into([missing], &mut buffer).is_err());
        }
    }

    fn operate(&self, random: &mut Random, model: &mut Model, file: &mut SparseFile) {
        let span = self.span(random);
        let Span { offset, length } = span;
        match random.below(40) {
            0..14 => {
                let data = self.data(random, span);
                assert_eq!(file.write(offset, &data), model.write(offset, &data, self.replace));
            }
            14..20 => {
                let expected = model.read(span);
                assert_eq!(file.read(offset, length).ok(), expected);
                let mut buffer = vec![0; length as usize];
                let filled = file.read_into(offset, &mut buffer).is_ok();
                assert_eq!(filled.then_some(buffer), expected);
            }
            // Less often than the others, because it compares many ranges.
            20 => self.read_many(random, model, file),
            21..24 => assert_eq!(file.has(offset, length), model.has(span)),
            24..29 => match file.need(offset, length) {
                Ok(missing) => {
                    assert_eq!(missing, model.need(span));
                    let room = random.below(missing.len() as u64 + 3) as usize;
                    let (mut offsets, mut lengths) = (vec![0; room], vec![0; room]);
                    let count = file.need_into(span, &mut offsets, &mut lengths);
                    assert_eq!(count, Ok(missing.len()));
                    for (need, at) in missing.iter().zip(0..room) {
                        assert_eq!((need.offset, need.length), (offsets[at], lengths[at]));
                    }
                }
                Err(_) => assert!(offset.checked_add(length).is_none()),
            },
            29..33 => self.need_many(random, model, file),
            33..37 => {
                if let Ok(erased) = file.erase(offset, length) {
                    assert_eq!(erased, model.held(span) as u64);
                    model.bytes.retain(|&at, _| at < offset || at >= span.end());
                }
            }
            37 if random.one_in(8) => {
                let bytes_max = random.below(model.bytes.len() as u64 + 2);
                let evicted = file.evict(bytes_max);
                assert_eq!(evicted, (model.bytes.len() as u64).saturating_sub(bytes_max));
                model.bytes.retain(|&at, _| file.has(at, 1));
            }
            38 if random.one_in(8) => {
                let counters = file.counters();
                *file = SparseFile::from_bytes(&file.to_bytes()).unwrap();
                assert_eq!(file.counters(), counters);
            }
            39 if random.one_in(100) => {
                assert_eq!(file.clear(), model.bytes.len() as u64);
                model.bytes.clear();
            }
            _ => {}
        }
    }

    fn need_many(&self, random: &mut Random, model: &Model, file: &SparseFile) {
        let count = random.below(6);
        let wanted: Vec<Span> = (0..count).map(|_| self.span(random)).collect();
        let Ok(exact) = file.need_many(&wanted, &Merge::Exact) else { return };
        // The result covers all missing bytes, and none that are held.
        let mut filled = model.clone();
        for need in &exact {
            assert_eq!(model.held(*need), 0);
            filled.bytes.extend((need.offset..need.end()).map(|at| (at, 0)));
        }
        let requested = wanted.iter().flat_map(|span| span.offset..span.end().min(model.end()));
        let requested: std::collections::BTreeSet<u64> = requested.collect();
        assert!(requested.iter().all(|at| filled.bytes.contains_key(at)));
        assert_eq!(
            exact.iter().map(|need| need.length).sum::<u64>(),
            requested.iter().filter(|at| !model.bytes.contains_key(at)).count() as u64
        );
        let bytes_min = random.below(50);
        let greedy = file.need_many(&wanted, &Merge::Greedy { bytes_min }).unwrap();
        assert!(greedy.len() <= exact.len());
        for need in &exact {
            let covers =
                |request: &Span| request.offset <= need.offset && need.end() <= request.end();
            assert!(greedy.iter().any(covers));
        }
    }
}

fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// A million operations on files of every kind: dense and sparse, tiny and huge offsets.
#[test]
fn a_million_random_operations_agree_with_a_map_from_offset_to_byte() {
    let cases: [(u64, u64, u64, u64); 8] = [
        // base, reach, step, maximum length
        (0, 60, 1, 12),
        (0, 400, 1, 40),
        (1000, 5_000, 1, 30),
        (0, 2_000, 2, 1),
        (0, 10_000, 3, 2),
        (1 << 40, 100_000, 7, 300),
        (0, u64::MAX, 1 << 57, 20),
        (u64::MAX - 300, 310, 1, 30),
    ];
    let runs = 48;
    for seed in 0..runs {
        let (base, reach, step, span_bytes_max) = cases[(seed % 8) as usize];
        let plan = Plan {
            seed: seed + 1,
            operations: (1_000_000 / runs) as usize + 1,
            base,
            reach,
            step,
            span_bytes_max,
            replace: seed / 8 % 2 == 1,
            length: (seed / 16 % 2 == 1).then(|| base.saturating_add(reach / 2)),
        };
        plan.run();
    }
}
