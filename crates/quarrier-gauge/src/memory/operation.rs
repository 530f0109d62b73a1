//! Operations on arrays, and types of stores.

/// An operation on arrays of 64-bit floats. The bytes of each array that it reads or writes count
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Sums up an array.
    Read,
    /// Sums up four parts of an array at once: one stream does not use all the requests that a core can
    /// have in flight.
    ReadFour,
    /// Fills an array.
    Write,
    /// a = b.
    Copy,
    /// a = 3 b.
    Scale,
    /// a = b + c.
    Add,
    /// a = b + 3 c.
    Triad,
}

impl Operation {
    /// All operations.
    pub const ALL: [Operation; 7] = [
        Operation::Read,
        Operation::ReadFour,
        Operation::Write,
        Operation::Copy,
        Operation::Scale,
        Operation::Add,
        Operation::Triad,
    ];

    /// The name of the measurement.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::ReadFour => "read in four streams",
            Operation::Write => "write",
            Operation::Copy => "copy",
            Operation::Scale => "scale",
            Operation::Add => "add",
            Operation::Triad => "triad",
        }
    }

    /// Parses the name of a measurement.
    pub fn of(name: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// The number of arrays that the operation reads.
    pub fn reads(self) -> usize {
        match self {
            Operation::Write => 0,
            Operation::Read | Operation::ReadFour | Operation::Copy | Operation::Scale => 1,
            Operation::Add | Operation::Triad => 2,
        }
    }

    /// Whether the operation writes an array.
    pub fn writes(self) -> bool {
        !matches!(self, Operation::Read | Operation::ReadFour)
    }

    /// The number of arrays that the operation uses.
    pub fn arrays(self) -> usize {
        self.reads() + usize::from(self.writes())
    }

    /// The result for one number of each array that the operation reads.
    pub(super) fn of_one(self, left: f64, right: f64) -> f64 {
        match self {
            Operation::Write => super::WRITTEN,
            Operation::Read | Operation::ReadFour | Operation::Copy => left,
            Operation::Scale => super::arch::FACTOR * left,
            Operation::Add => left + right,
            Operation::Triad => left + super::arch::FACTOR * right,
        }
    }
}

/// A type of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stores {
    /// Into the caches: a line is read before it is written, so more bytes move than are counted.
    Ordinary,
    /// Bypassing the caches, straight to memory.
    Streaming,
}

impl Stores {
    /// Both types.
    pub const ALL: [Stores; 2] = [Stores::Ordinary, Stores::Streaming];

    /// The value of a reading's parameter.
    pub fn name(self) -> &'static str {
        match self {
            Stores::Ordinary => "ordinary",
            Stores::Streaming => "streaming",
        }
    }

    /// Parses the parameter's value.
    pub fn of(name: &str) -> Option<Stores> {
        Stores::ALL.into_iter().find(|stores| stores.name() == name)
    }
}
