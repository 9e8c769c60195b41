//! Tests that need a GPU, or the emulated one; they are reported as ignored where there is none.

#[path = "../support/clumps.rs"]
mod clumps;

mod kernel_sums;

fn main() -> std::process::ExitCode {
    minvel_testing::run(kernel_sums::tests())
}
