//! Every kernel is CUDA, too: where NVIDIA's compiler is at hand, it says so.

use quarrier_gpu::kernels::{GAUGE, GAUGE_F64, SEARCH, SEARCH_CONSTANTS};
use quarrier_gpu::{Dialect, Error, compile_to_ptx};

#[test]
fn all_kernels_compile_for_three_generations() {
    for (program, constants) in [(SEARCH, SEARCH_CONSTANTS), (GAUGE, &[]), (GAUGE_F64, &[])] {
        for architecture in [75, 80, 90] {
            match compile_to_ptx(&program, constants, architecture, None) {
                Ok(ptx) => program.kernels.iter().for_each(|kernel| {
                    assert!(ptx.contains(&format!(".entry {}(", kernel.name)), "{}", kernel.name);
                }),
                // Without the compiler, the text at least is whole.
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
