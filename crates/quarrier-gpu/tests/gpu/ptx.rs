//! NVIDIA's compiler, if installed, accepts every kernel as CUDA.

use quarrier_gpu::kernels::{
    FILTER, FILTER_SIZES, GAUGE, GAUGE_F64, SEARCH, SEARCH_CONSTANTS, filter_constants,
};
use quarrier_gpu::{Dialect, Error, compile_to_ptx};

#[test]
fn all_kernels_compile_for_three_generations() {
    let filters = FILTER_SIZES.map(filter_constants);
    let mut variants = vec![(SEARCH, SEARCH_CONSTANTS), (GAUGE, &[]), (GAUGE_F64, &[])];
    variants.extend(filters.iter().map(|constants| (FILTER, &constants[..])));
    for (program, constants) in variants {
        for architecture in [75, 80, 90] {
            match compile_to_ptx(&program, constants, architecture, None) {
                Ok(ptx) => program.kernels.iter().for_each(|kernel| {
                    assert!(ptx.contains(&format!(".entry {}(", kernel.name)), "{}", kernel.name);
                }),
                // Without the compiler, check at least that the text is complete.
                Err(Error::NoDevice(_)) => {
                    let source = program.source(Dialect::Cuda, constants);
                    assert!(
                        program
                            .kernels
                            .iter()
                            .all(|kernel| { source.contains(&format!("KERNEL({})", kernel.name)) })
                    );
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}
