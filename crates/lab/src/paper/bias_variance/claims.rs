//! What the paper, reference runs of another program and theory say about the numbers, as rows with rules.

use super::measure::{Bias, Measured, over_models};
use super::{At, BiasVariance, Learnt};
use crate::report::{Claim, Row};
use minvel::estimate::{Estimate, Line};

/// The noise may make up this share of a bound that counts as resolved.
const RESOLVED: f64 = 0.25;
/// Noises for each point in the reference runs: those of another program, in f64.
const REFERENCE_NOISES: f64 = 20_000.0;
/// J of the reference runs after 400 iterations (three seeds gave −0.847, −0.846, −0.855).
const REFERENCE_LOSS: f64 = -0.85;
/// Variances of SSM and SSM-VR in the reference runs.
const REFERENCE_SLICED: [f64; 2] = [4.55, 5.66];
/// The reference runs, one model: ε; bias² of MVL and DSM; variances of MVL with and without control
/// variate, of DSM with and without.
const REFERENCE: [(f64, [f64; 6]); 7] = [
    (1e-5, [1.2e-9, 2.3e-9, 5.664, 3.96e5, 5.664, 9.99e9]),
    (6e-5, [8.1e-9, 2.1e-8, 5.664, 6.60e4, 5.664, 2.78e8]),
    (1e-4, [1.5e-8, 4.3e-8, 5.664, 3.96e4, 5.663, 9.99e7]),
    (1e-3, [3.9e-7, 2.5e-6, 5.664, 3.96e3, 5.659, 9.97e5]),
    (1e-2, [2.8e-5, 2.3e-4, 5.669, 397.0, 5.625, 9.85e3]),
    (3e-2, [2.4e-4, 2.1e-3, 5.680, 133.0, 5.551, 1.07e3]),
    (1e-1, [2.6e-3, 2.3e-2, 5.721, 40.6, 5.322, 89.0]),
];

/// An estimator in the table.
type Pick = fn(&At) -> &Measured;

/// All rows.
pub fn all(setting: &BiasVariance, learnt: &Learnt, table: &[At]) -> Vec<Row> {
    let claims = Claims { setting, table };
    let mut rows = vec![claims.learnt(learnt)];
    rows.extend(claims.variances());
    rows.extend(claims.biases());
    rows.extend(claims.tests());
    rows.extend(claims.magnitudes());
    rows.extend(claims.additions());
    rows
}

struct Claims<'a> {
    setting: &'a BiasVariance,
    table: &'a [At],
}

impl Claims<'_> {
    /// A number of the first model.
    fn row(&self, name: &str, value: Estimate) -> Row {
        Row::new(name, value, 1)
    }

    /// A number of all models.
    fn row_of_all(&self, name: &str, value: Estimate) -> Row {
        Row::new(name, value, self.setting.seeds)
    }

    fn learnt(&self, learnt: &Learnt) -> Row {
        let loss = over_models(&learnt.losses);
        let near = Claim::Within { of: REFERENCE_LOSS, by: 0.05 };
        self.row_of_all("J of the energy learnt, on fresh data", loss)
            .claim("Training reaches the J of an independent program", near)
    }

    fn variances(&self) -> Vec<Row> {
        let slope = |name: &str, pick: Pick, of: f64, claim: &str| {
            let points: Vec<_> = self.table.iter().map(|at| (at.step, pick(at).variance)).collect();
            self.row(name, Line::power(&points).slope).claim(claim, Claim::Within { of, by: 0.1 })
        };
        vec![
            slope(
                "slope of log variance against log ε, MVL without control variate",
                |at| &at.mvl_plain,
                -1.0,
                "Without control variate the variance of MVL grows like 1/ε",
            ),
            slope(
                "slope of log variance against log ε, DSM without control variate",
                |at| &at.dsm_plain,
                -2.0,
                "Without control variate the variance of DSM grows like 1/ε²",
            ),
            slope(
                "slope of log variance against log ε, MVL with control variate",
                |at| &at.mvl,
                0.0,
                "With control variate the variance of MVL is constant",
            ),
            slope(
                "slope of log variance against log ε, DSM with control variate",
                |at| &at.dsm,
                0.0,
                "With control variate the variance of DSM is constant",
            ),
        ]
    }

    fn biases(&self) -> Vec<Row> {
        let mut rows = vec![];
        for (method, pick) in [("MVL", (|at| &at.mvl) as Pick), ("DSM", |at| &at.dsm)] {
            let (slope, from) = self.bias_slope(pick);
            rows.push(
                self.row(&format!("slope of log bias² against log ε, {method}, resolved from ε = {from:e}"), slope)
                    .claim(&format!("The squared bias of {method} falls like ε²"), Claim::Within { of: 2.0, by: 0.3 }),
            );
        }
        for (method, pick) in [("MVL", (|at| &at.mvl) as Pick), ("DSM", |at| &at.dsm)] {
            let small = self.table.iter().filter(|at| at.step <= 1e-2).map(pick);
            let share = small.map(|m| m.reduced.bound.mean / m.variance.mean).fold(0.0, f64::max);
            rows.push(
                self.row(&format!("largest bias²/variance at ε ≤ 0.01, {method}"), Estimate::single(share)).claim(
                    &format!("The bias of {method} is negligible beside its noise for ε ≤ 0.01"),
                    Claim::Below(1e-4),
                ),
            );
        }
        rows
    }

    /// The exponent of the squared bias where it is resolved, and from which step size on it is.
    fn bias_slope(&self, pick: Pick) -> (Estimate, f64) {
        let points: Vec<_> = self
            .table
            .iter()
            .filter(|at| resolved(&pick(at).reduced))
            .map(|at| (at.step, pick(at).reduced.square))
            .collect();
        match points.as_slice() {
            [first, _, ..] => (Line::power(&points).slope, first.0),
            _ => (Estimate::single(f64::NAN), f64::NAN),
        }
    }

    /// z-tests of the means against SSM on the same points and noise.
    fn tests(&self) -> Vec<Row> {
        let step = self.setting.test_step;
        let at = self.table.iter().find(|at| at.step == step).expect("checked with the settings");
        let test = |method: &str, measured: &Measured, paper: f64| {
            let p = measured.sliced.difference.p_value(Estimate::exact(0.0));
            let row =
                self.row(&format!("p-value of equal means, {method} against SSM, ε = {step:e}"), Estimate::single(p));
            let row = if step == 6e-5 { row.paper(paper, None) } else { row };
            row.claim(
                &format!("A z-test does not distinguish the mean of {method} from that of SSM"),
                Claim::Above(0.01),
            )
        };
        vec![test("MVL", &at.mvl, 0.48), test("DSM", &at.dsm, 0.19)]
    }

    /// The largest factor between our numbers and those of the reference runs, column by column.
    fn magnitudes(&self) -> Vec<Row> {
        let common: Vec<(&At, [f64; 6])> = self
            .table
            .iter()
            .filter_map(|at| Some((at, REFERENCE.iter().find(|(step, _)| *step == at.step)?.1)))
            .collect();
        let factor = |a: f64, b: f64| (a / b).max(b / a);
        let row = |name: &str, factors: Vec<f64>| {
            // of nothing, NaN: the claim then does not hold
            let worst = factors.iter().copied().reduce(f64::max).unwrap_or(f64::NAN);
            let claim =
                format!("The {name} agrees with that of an independent program, over {} step sizes", factors.len());
            self.row(&format!("largest factor to an independent program, {name}"), Estimate::single(worst))
                .claim(&claim, Claim::Below(2.0))
        };
        let variance = |name: &str, column: usize, pick: Pick| {
            row(name, common.iter().map(|(at, theirs)| factor(pick(at).variance.mean, theirs[column])).collect())
        };
        // where neither their noise nor ours hides the bias
        let bias = |name: &str, column: usize, pick: Pick, value: Pick| {
            let both = common.iter().filter(|(at, theirs)| {
                let their_floor = pick(at).reduced.floor.mean * self.setting.noises as f64 / REFERENCE_NOISES;
                resolved(&value(at).reduced) && their_floor <= RESOLVED * theirs[column]
            });
            row(name, both.map(|(at, theirs)| factor(value(at).reduced.square.mean, theirs[column])).collect())
        };
        let sliced = self.table.last().map(|at| {
            let ours = [at.sliced.variance.mean, at.sliced_reduced.variance.mean];
            ours.iter().zip(REFERENCE_SLICED).map(|(a, b)| factor(*a, b)).collect()
        });
        vec![
            row("variance of SSM and SSM-VR", sliced.unwrap_or_default()),
            variance("variance of MVL with control variate", 2, |at| &at.mvl),
            variance("variance of MVL without control variate", 3, |at| &at.mvl_plain),
            variance("variance of DSM with control variate", 4, |at| &at.dsm),
            variance("variance of DSM without control variate", 5, |at| &at.dsm_plain),
            // of all models, since that of one of them scatters by a factor of 2
            Row { seeds: self.setting.seeds, ..bias("squared bias of MVL", 0, |at| &at.mvl, |at| &at.antithetic) },
            bias("squared bias of DSM", 1, |at| &at.dsm, |at| &at.dsm),
        ]
    }

    /// What is not in the paper: antithetic noise, signs as noise, exact differences.
    fn additions(&self) -> Vec<Row> {
        let (slope, from) = self.bias_slope(|at| &at.antithetic);
        let name = format!("slope of log bias² against log ε, MVL with antithetic noise, resolved from ε = {from:e}");
        let antithetic = self
            .row_of_all(&name, slope)
            .claim("Antithetic noise shows that the squared bias falls like ε²", Claim::Within { of: 2.0, by: 0.1 });

        let smallest = &self.table[0];
        let ratio = smallest.rademacher.variance.mean / smallest.mvl.variance.mean;
        let name =
            format!("variance with Rademacher noise over that with Gaussian noise, MVL, ε = {:e}", smallest.step);
        let rademacher =
            self.row(&name, Estimate::single(ratio)).claim("Rademacher noise lowers the variance", Claim::Below(1.0));

        let slope = |what: &str, pick: fn(&At) -> Estimate, of: f64, claim: &str| {
            let points: Vec<_> = self.table.iter().map(|at| (at.step, pick(at))).collect();
            let name = format!("slope of log squared rounding error in f32 against log ε, MVL, {what}");
            self.row(&name, Line::power(&points).slope).claim(claim, Claim::Within { of, by: 0.3 })
        };
        vec![
            antithetic,
            rademacher,
            slope(
                "ordinary differences",
                |at| at.rounding.ordinary,
                -2.0,
                "Rounding spoils ordinary differences like 1/ε²",
            ),
            slope("exact differences", |at| at.rounding.exact, -1.0, "With exact differences it grows like 1/ε only"),
            slope(
                "exact differences, antithetic noise",
                |at| at.rounding.antithetic,
                0.0,
                "With antithetic noise in addition, it does not grow",
            ),
        ]
    }
}

/// Whether a bias stands out of the noise of its bound.
fn resolved(bias: &Bias) -> bool {
    bias.floor.mean <= RESOLVED * bias.bound.mean
}
