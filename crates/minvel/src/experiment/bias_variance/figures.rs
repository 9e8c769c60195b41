//! The figures: bias and variance side by side, and what rounding does.

use super::At;
use super::measure::Measured;
use crate::eval::Estimate;
use crate::plot::{Axis, Dash, Lines, Plot, Series};
use crate::report::Figure;

/// All figures.
pub fn all(table: &[At]) -> Vec<Figure> {
    vec![
        Figure::new(
            "bias-variance",
            "Left: bound on the squared bias against step size, measured against SSM-VR with the same noise; against SSM, as \
             in the paper, it ends where the noise of SSM begins. Right: variance of one sample; without control variate it \
             grows without bound. Bands are 95 % intervals; all at the scale of J.",
            Plot::Row { plots: vec![Plot::Lines(biases(table)), Plot::Lines(variances(table))] },
        ),
        Figure::new(
            "rounding",
            "The same bound for MVL in f32 and f64. Ordinary differences of energies lose the bias in rounding as the step \
             shrinks; differences propagated operation by operation do not. With antithetic noise nothing else is left.",
            Plot::Lines(rounding(table)),
        ),
    ]
}

fn series(table: &[At], name: &str, method: &str, of: impl Fn(&At) -> Estimate) -> Series {
    Series::new(name, method).estimates(table.iter().map(|at| (at.step, of(at))))
}

fn reduced(measured: &Measured) -> Estimate {
    measured.reduced.bound
}

fn biases(table: &[At]) -> Lines {
    let last = table.last().expect("there are step sizes");
    let through = |of: f64| [last.step, of];
    Lines::new("Squared bias", Axis::log("step size ε"), Axis::log("bound on the squared bias"))
        .with(series(table, "MVL", "mvl", |at| reduced(&at.paper.mvl)))
        .with(series(table, "MVL against SSM", "mvl", |at| at.paper.mvl.sliced.bound).dashed(Dash::Dotted))
        .with(series(table, "DSM", "dsm", |at| reduced(&at.paper.dsm)))
        .with(series(table, "DSM against SSM", "dsm", |at| at.paper.dsm.sliced.bound).dashed(Dash::Dotted))
        .with(series(table, "MVL, antithetic", "mvl-antithetic", |at| reduced(&at.ours.antithetic)))
        .power(2.0, through(0.25 * last.ours.antithetic.reduced.bound.mean), "∝ ε²")
        .level(1e-4 * last.paper.mvl.variance.mean, "10⁻⁴ of the variance")
}

fn variances(table: &[At]) -> Lines {
    let first = &table[0];
    let above = |of: &Measured, factor: f64| [first.step, factor * of.variance.mean];
    Lines::new("Variance", Axis::log("step size ε"), Axis::log("variance of one sample"))
        .with(series(table, "MVL", "mvl", |at| at.paper.mvl.variance))
        .with(series(table, "MVL, no control variate", "mvl", |at| at.paper.mvl_plain.variance).dashed(Dash::Dashed))
        .with(series(table, "DSM", "dsm", |at| at.paper.dsm.variance))
        .with(series(table, "DSM, no control variate", "dsm", |at| at.paper.dsm_plain.variance).dashed(Dash::Dashed))
        .with(series(table, "MVL, Rademacher", "mvl-rademacher", |at| at.ours.rademacher.variance))
        .power(-1.0, above(&first.paper.mvl_plain, 8.0), "∝ 1/ε")
        .power(-2.0, above(&first.paper.dsm_plain, 8.0), "∝ 1/ε²")
}

fn rounding(table: &[At]) -> Lines {
    Lines::new("Rounding and the squared bias of MVL", Axis::log("step size ε"), Axis::log("bound on the squared bias"))
        .with(series(table, "f32, ordinary differences", "mvl", |at| reduced(&at.ours.single_ordinary)).dashed(Dash::Dashed))
        .with(series(table, "f32, exact differences", "mvl-difference", |at| reduced(&at.ours.single_exact)))
        .with(series(table, "f32, exact, antithetic", "mvl-antithetic", |at| reduced(&at.ours.single_antithetic)))
        .with(series(table, "f64, exact, antithetic", "truth", |at| reduced(&at.ours.antithetic)).dashed(Dash::Dotted))
}
