//! What the tests share: values of expressions, laws of geometry, exact expectations, a sampler that is wrong on purpose.
#![allow(dead_code)] // each binary uses its own part

pub mod bare;
pub mod expectation;
pub mod fits;
#[macro_use]
pub mod geometry;
pub mod klein;
pub mod sampling;

use minvel_engine::{Clock, Expr, Options, State};

/// Values of expressions in f64, by a compiled program.
pub fn values(outputs: &[Expr], inputs: &[(&str, &[f64])], seed: u64) -> Vec<Vec<f64>> {
    let mut program = outputs[0].graph().compile::<f64>(outputs, &[], &Options { threads: 1, ..Options::default() });
    program.run(&mut State::new(1), inputs, Clock { seed, step: 0 });
    (0..outputs.len()).map(|k| program.output(k).to_vec()).collect()
}
