//! Integers as differences from the least value, in lanes as narrow as these allow.

/// Integers, one per row: row `r` is `base + lane r`. Rows without a value, and the rows that pad
/// the last word of 64, have lane 0 (in runs, the value of the run).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub(super) base: i64,
    pub(super) lanes: Lanes,
    pub(super) rows: u32,
}

/// The difference of each row from the base. Vectors of numbers have a length padded to a multiple
/// of 64 rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lanes {
    /// No lanes: every row is the base.
    Constant,
    /// 0 or 1: bit `row % 64` of word `row / 64`.
    Bits(Vec<u64>),
    /// Up to 255.
    U8(Vec<u8>),
    /// Up to 65,535.
    U16(Vec<u16>),
    /// Up to 2³² - 1.
    U32(Vec<u32>),
    /// Up to 64 bits; `base + lane` wraps.
    U64(Vec<u64>),
    /// Runs of equal rows: run `i` has `values[i]`, up to but excluding row `ends[i]`.
    Runs {
        /// The end of each run, ascending; the last is the number of rows.
        ends: Vec<u32>,
        /// A lane for each run.
        values: Vec<u64>,
    },
}

impl Packed {
    /// Returns the value of lane 0: the least value.
    pub fn base(&self) -> i64 {
        self.base
    }

    /// Returns the lanes.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Returns the number of one row.
    ///
    /// # Panics
    ///
    /// If the row does not exist.
    pub fn get(&self, row: usize) -> i64 {
        assert!(row < self.rows as usize, "row {row} of {}", self.rows);
        let lane = match &self.lanes {
            Lanes::Constant => 0,
            Lanes::Bits(words) => words[row / 64] >> (row % 64) & 1,
            Lanes::U8(lanes) => u64::from(lanes[row]),
            Lanes::U16(lanes) => u64::from(lanes[row]),
            Lanes::U32(lanes) => u64::from(lanes[row]),
            Lanes::U64(lanes) => lanes[row],
            Lanes::Runs { ends, values } => {
                values[ends.partition_point(|&end| end as usize <= row)]
            }
        };
        self.base.wrapping_add_unsigned(lane)
    }

    /// Writes the numbers of the rows from `first` on into `out`, until that is full.
    ///
    /// # Panics
    ///
    /// If there are fewer rows.
    pub fn unpack(&self, first: usize, out: &mut [i64]) {
        assert!(first + out.len() <= self.rows as usize, "rows of {}", self.rows);
        let (base, rows) = (self.base, first..first + out.len());
        match &self.lanes {
            Lanes::Constant => out.fill(base),
            Lanes::Bits(words) => {
                for (out, row) in out.iter_mut().zip(rows) {
                    *out = base.wrapping_add_unsigned(words[row / 64] >> (row % 64) & 1);
                }
            }
            Lanes::U8(lanes) => widen(base, &lanes[rows], out),
            Lanes::U16(lanes) => widen(base, &lanes[rows], out),
            Lanes::U32(lanes) => widen(base, &lanes[rows], out),
            Lanes::U64(lanes) => widen(base, &lanes[rows], out),
            Lanes::Runs { ends, values } => {
                let mut run = ends.partition_point(|&end| end as usize <= first);
                let mut filled = 0;
                while filled < out.len() {
                    let end = (ends[run] as usize - first).min(out.len());
                    out[filled..end].fill(base.wrapping_add_unsigned(values[run]));
                    (filled, run) = (end, run + 1);
                }
            }
        }
    }

    /// Appends the numbers of these rows.
    ///
    /// # Panics
    ///
    /// May panic if a row does not exist.
    pub fn gather(&self, places: &[u32], out: &mut Vec<i64>) {
        match &self.lanes {
            Lanes::U8(lanes) => pick(self.base, lanes, places, out),
            Lanes::U16(lanes) => pick(self.base, lanes, places, out),
            Lanes::U32(lanes) => pick(self.base, lanes, places, out),
            Lanes::U64(lanes) => pick(self.base, lanes, places, out),
            Lanes::Constant => {
                assert!(places.iter().all(|&place| place < self.rows), "rows of {}", self.rows);
                out.resize(out.len() + places.len(), self.base);
            }
            Lanes::Bits(words) => out.extend(places.iter().map(|&place| {
                let bit = words[place as usize / 64] >> (place % 64) & 1;
                self.base.wrapping_add_unsigned(bit)
            })),
            Lanes::Runs { ends, values } => {
                // Adjacent rows are usually in the same run.
                let (mut run, mut rows) = (0, 0..0);
                out.extend(places.iter().map(|place| {
                    if !rows.contains(place) {
                        run = ends.partition_point(|end| end <= place);
                        rows = if run == 0 { 0 } else { ends[run - 1] }..ends[run];
                    }
                    self.base.wrapping_add_unsigned(values[run])
                }));
            }
        }
    }

    /// Returns every number, in order.
    pub fn to_vec(&self) -> Vec<i64> {
        let mut all = vec![0; self.rows as usize];
        self.unpack(0, &mut all);
        all
    }

    /// Returns the bytes of memory.
    pub fn nbytes(&self) -> usize {
        match &self.lanes {
            Lanes::Constant => 0,
            Lanes::Bits(words) => 8 * words.capacity(),
            Lanes::U8(lanes) => lanes.capacity(),
            Lanes::U16(lanes) => 2 * lanes.capacity(),
            Lanes::U32(lanes) => 4 * lanes.capacity(),
            Lanes::U64(lanes) => 8 * lanes.capacity(),
            Lanes::Runs { ends, values } => 4 * ends.capacity() + 8 * values.capacity(),
        }
    }
}

fn widen<T: Copy + Into<u64>>(base: i64, lanes: &[T], out: &mut [i64]) {
    for (out, &lane) in out.iter_mut().zip(lanes) {
        *out = base.wrapping_add_unsigned(lane.into());
    }
}

fn pick<T: Copy + Into<u64>>(base: i64, lanes: &[T], places: &[u32], out: &mut Vec<i64>) {
    let number = |&place: &u32| base.wrapping_add_unsigned(lanes[place as usize].into());
    out.extend(places.iter().map(number));
}
