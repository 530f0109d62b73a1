//! The programs that come with this crate.

use crate::program::Parameter::{In, Number, Out};
use crate::program::{Constant, Program, Signature};

/// Searches a chunk for needles; see `kernels/search.cl`, and `quarrier-search`, which builds its
/// tables.
pub const SEARCH: Program = Program {
    name: "search",
    text: include_str!("../kernels/search.cl"),
    kernels: &[Signature {
        name: "search",
        parameters: &[
            In("text", "u32x4"),
            In("bitmap", "u32"),
            In("filter", "u32"),
            In("heads", "u32"),
            In("entries", "u32x4"),
            In("values", "u8"),
            In("masks", "u8"),
            Out("counter", "u32"),
            Out("found", "u32"),
            Number("text_bytes"),
            Number("own_start"),
            Number("own_end"),
            Number("from"),
            Number("to"),
            Number("classes"),
            Number("mask0"),
            Number("mask1"),
            Number("mask2"),
            Number("filter_bits"),
            Number("table_shift"),
            Number("capacity"),
            Number("tile_blocks"),
        ],
    }],
};

/// Words of the search kernel's bitmap in local memory, as a power of two: 32 KiB.
pub const BITMAP_BITS: u32 = 13;

/// The number of findings of a chunk at which the search kernel stops counting; the host then
/// searches the chunk on the CPU. Far below the range of 32 bits, since every work item may add one
/// more.
pub const FLOOD: u32 = 1 << 20;

/// The constants of [`SEARCH`].
pub const SEARCH_CONSTANTS: &[Constant] = &[("BITMAP_BITS", BITMAP_BITS), ("FLOOD", FLOOD)];

/// Selects rows of packed columns by many conditions; see `kernels/filter.cl`, and `quarrier-filter`,
/// which lays out its input.
pub const FILTER: Program = Program {
    name: "filter",
    text: include_str!("../kernels/filter.cl"),
    kernels: &[Signature {
        name: "filter",
        parameters: &[
            In("data", "u32x4"),
            In("places", "u32x4"),
            In("segment_rows", "u32"),
            In("tests", "u32x4"),
            In("ranges", "u32x4"),
            In("nodes", "u32x4"),
            In("operands", "u32"),
            In("roots", "u32"),
            Out("counts", "u32"),
            Out("selected", "u32"),
            Number("segment_count"),
            Number("column_count"),
            Number("test_count"),
            Number("node_count"),
            Number("root_count"),
            Number("wants_rows"),
            Number("tile_words"),
        ],
    }],
};

/// Words of 32 rows in a segment of the filter kernel.
pub const SEGMENT_WORDS: u32 = 2048;

/// The maximum number of conditions, and of nodes of all conditions, in a launch of the filter
/// kernel. The kernel is compiled for the smallest sufficient size, since each work item holds as
/// many words.
pub const FILTER_SIZES: [u32; 2] = [32, 256];

/// The constants of [`FILTER`] for one of [`FILTER_SIZES`].
pub const fn filter_constants(size: u32) -> [Constant; 3] {
    [("SEGMENT_WORDS", SEGMENT_WORDS), ("NODES_MAX", size), ("ROOTS_MAX", size)]
}

/// The gauge's kernels; see `kernels/gauge.cl`.
pub const GAUGE: Program = Program {
    name: "gauge",
    text: include_str!("../kernels/gauge.cl"),
    kernels: &[
        Signature { name: "nothing", parameters: &[Out("out", "u32")] },
        Signature { name: "multiply_f32", parameters: CALCULATE },
        Signature { name: "multiply_i32", parameters: CALCULATE },
        Signature {
            name: "read_memory",
            parameters: &[In("from", "u32x4"), Out("out", "u32"), Number("vectors")],
        },
        Signature { name: "write_memory", parameters: &[Out("to", "u32x4"), Number("vectors")] },
        Signature {
            name: "copy_memory",
            parameters: &[In("from", "u32x4"), Out("to", "u32x4"), Number("vectors")],
        },
    ],
};

/// The gauge's kernel for `f64`, which not every device has.
pub const GAUGE_F64: Program = Program {
    name: "gauge f64",
    text: include_str!("../kernels/gauge_f64.cl"),
    kernels: &[Signature { name: "multiply_f64", parameters: CALCULATE }],
};

const CALCULATE: &[crate::Parameter] = &[Out("out", "u32"), Number("rounds")];

/// Multiply-adds that a work item of the gauge's kernels executes in a round.
pub const GAUGE_STEPS: u32 = 64;
