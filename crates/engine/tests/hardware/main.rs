//! Tests of what a machine may lack: a GPU, the emulated card, vector instructions. Those that lack it are reported as ignored.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod faults;
#[cfg(target_arch = "x86_64")]
mod vector;

#[cfg(target_arch = "x86_64")]
#[path = "../support/tiles.rs"]
mod tiles;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A process of a fault makes no call of the driver but its own, since these are counted.
    #[cfg(feature = "cuda")]
    if faults::is_one() {
        return minvel_testing::run([faults::test()]);
    }
    let mut tests = vec![];
    #[cfg(feature = "cuda")]
    tests.extend(cuda::tests().into_iter().chain(faults::tests()));
    #[cfg(target_arch = "x86_64")] // other processors have no kernels of their own
    tests.extend(vector::tests());
    minvel_testing::run(tests)
}
