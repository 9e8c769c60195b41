//! The figures: bias and variance side by side, and what rounding does.

use super::At;
use super::measure::Measured;
use crate::plot::{Axis, Dash, Figure, Lines, Plot, Series};
use minvel::estimate::Estimate;

/// All figures.
pub fn all(table: &[At]) -> Vec<Figure> {
    vec![
        Figure::new(
            "bias-variance",
            "Left: bound on the squared bias against step size, measured against SSM-VR with the same noise; against \
             SSM, as in the paper, it ends in the noise of SSM (dotted, without bands). Right: variance of one \
             sample; without control variate it grows without bound. Bands are 95 % intervals; all at the scale of J.",
            Plot::Row { plots: vec![Plot::Lines(biases(table)), Plot::Lines(variances(table))] },
        ),
        Figure::new(
            "rounding",
            "Effect of rounding to f32 on one sample of MVL: E(x⁻) − E(x) subtracted directly, propagated operation \
             by operation, and the latter with antithetic noise. For comparison: the squared bias of the estimator \
             itself, in f64.",
            Plot::Lines(rounding(table)),
        ),
    ]
}

fn series(table: &[At], name: &str, method: &str, of: impl Fn(&At) -> Estimate) -> Series {
    Series::new(name, method).estimates(table.iter().map(|at| (at.step, of(at))))
}

/// A curve without bands.
fn curve(table: &[At], name: &str, method: &str, of: impl Fn(&At) -> Estimate) -> Series {
    Series::new(name, method).values(table.iter().map(|at| (at.step, of(at).mean))).dashed(Dash::Dotted)
}

fn reduced(measured: &Measured) -> Estimate {
    measured.reduced.bound
}

fn biases(table: &[At]) -> Lines {
    let last = table.last().expect("there are step sizes");
    let through = |of: f64| [last.step, of];
    Lines::new("Squared bias", Axis::log("step size ε"), Axis::log("bound on the squared bias"))
        .with(series(table, "MVL", "mvl", |at| reduced(&at.mvl)))
        .with(curve(table, "MVL against SSM", "mvl", |at| at.mvl.sliced.bound))
        .with(series(table, "DSM", "dsm", |at| reduced(&at.dsm)))
        .with(curve(table, "DSM against SSM", "dsm", |at| at.dsm.sliced.bound))
        .with(series(table, "MVL, antithetic", "mvl-antithetic", |at| reduced(&at.antithetic)))
        .power(2.0, through(0.25 * last.antithetic.reduced.bound.mean), "∝ ε²")
        .level(1e-4 * last.mvl.variance.mean, "10⁻⁴ of the variance")
}

fn variances(table: &[At]) -> Lines {
    let first = &table[0];
    let above = |of: &Measured, factor: f64| [first.step, factor * of.variance.mean];
    Lines::new("Variance", Axis::log("step size ε"), Axis::log("variance of one sample"))
        .with(series(table, "MVL", "mvl", |at| at.mvl.variance))
        .with(series(table, "MVL, no control variate", "mvl", |at| at.mvl_plain.variance).dashed(Dash::Dashed))
        .with(series(table, "DSM", "dsm", |at| at.dsm.variance))
        .with(series(table, "DSM, no control variate", "dsm", |at| at.dsm_plain.variance).dashed(Dash::Dashed))
        .with(series(table, "MVL, Rademacher", "mvl-rademacher", |at| at.rademacher.variance))
        .power(-1.0, above(&first.mvl_plain, 8.0), "∝ 1/ε")
        .power(-2.0, above(&first.dsm_plain, 8.0), "∝ 1/ε²")
}

fn rounding(table: &[At]) -> Lines {
    let first = &table[0];
    let above = |of: Estimate| [first.step, 6.0 * of.mean];
    Lines::new("Rounding in f32", Axis::log("step size ε"), Axis::log("mean squared error of one sample"))
        .with(series(table, "ordinary differences", "mvl", |at| at.rounding.ordinary).dashed(Dash::Dashed))
        .with(series(table, "exact differences", "mvl-difference", |at| at.rounding.exact))
        .with(series(table, "exact, antithetic", "mvl-antithetic", |at| at.rounding.antithetic))
        .with(series(table, "squared bias", "truth", |at| reduced(&at.antithetic)).dashed(Dash::Dotted))
        .power(-2.0, above(first.rounding.ordinary), "∝ 1/ε²")
        .power(-1.0, above(first.rounding.exact), "∝ 1/ε")
}
