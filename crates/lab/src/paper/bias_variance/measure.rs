//! Bias and variance of an estimator of J at fixed points of the data, from many samples of the noise.
//!
//! **Statement.** With d_kj = estimate(x_k; z_j) − SSM(x_k; z_j) on the same noise and d̄_k = (1/M)Σ_j d_kj: the bound is
//! (1/K)Σ_k d̄_k², of which (1/K)Σ_k s_k²/M is noise (the floor); the rest is the squared bias.
//! **Source.** wang2020mvl, upper bound of Figure 1; docs/math §4.2. **Conventions.** Scale of J.
//! **Error.** Given the points, Var d̄_k² = 4b_k²v_k + 2v_k² with v_k = s_k²/M and b_k² = max(d̄_k² − v_k, 0).
//! **Checked by** its own test, tests/lab/experiment_planar.rs.

use crate::paper::planar::Models;
use minvel::estimate::{Estimate, Moments};
use minvel::flow::{Law, Noise};
use minvel::objective::{Objective, Sliced};
use minvel::train::Context;
use minvel::{Energy, Error};
use minvel_engine::{Clock, Expr, Graph};
use serde::{Deserialize, Serialize};

/// An estimator compared with an unbiased one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Bias {
    /// (1/K)Σ d̄_k².
    pub bound: Estimate,
    /// The part of it that noise explains.
    pub floor: Estimate,
    /// The bound less the floor: squared bias without bias of its own.
    pub square: Estimate,
    /// The mean of all differences.
    pub difference: Estimate,
}

/// An estimator at one step size.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Mean of one sample over points and noise.
    pub mean: Estimate,
    /// Variance of one sample over points and noise.
    pub variance: Estimate,
    /// Against SSM, as in the paper.
    pub sliced: Bias,
    /// Against SSM-VR, the limit of the estimators for the same noise: there is less noise in the difference.
    pub reduced: Bias,
}

/// How much is sampled.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// Law of the noise.
    pub law: Law,
    /// M, for each point.
    pub noises: usize,
    /// Seed of the noise.
    pub seed: u64,
    /// Which noise: samplings of different number are independent.
    pub number: u32,
}

/// Rows of one run; more samples take more runs.
const ROWS: usize = 20_000;
const NOISE: u32 = 0;

/// Samples of an estimator at one point: itself, less SSM, less SSM-VR.
type Samples = [Moments; 3];

/// Measures estimators at the given points: for each estimator, for each of the models. SSM and SSM-VR themselves come
/// first.
pub fn measure(
    models: &Models,
    points: &[f64],
    objectives: &[Box<dyn Objective>],
    sampling: Sampling,
    context: &Context,
) -> Result<Vec<Vec<Measured>>, Error> {
    let (count, seeds) = (points.len() / 2, models.count());
    let each = ROWS.div_ceil(count).min(sampling.noises);
    let rounds = sampling.noises.div_ceil(each);

    let g = Graph::new();
    let x = g.input_rows("x", count * each, [2]);
    let sliced: [Box<dyn Objective>; 2] = [false, true].map(|reduced| Box::new(Sliced { reduced }) as _);
    let all: Vec<&dyn Objective> = sliced.iter().chain(objectives).map(|o| &**o).collect();
    let outputs = losses(models, &all, x, Noise::drawn(sampling.law, NOISE));
    let mut program = g.try_compile::<f64>(&outputs, &[], &context.options(seeds))?;

    let repeated: Vec<f64> = points.chunks(2).flat_map(|x| x.repeat(each)).collect();
    let mut samples = vec![vec![vec![Samples::default(); count]; seeds]; outputs.len()];
    let mut state = models.state();
    context.begin("samples", rounds as u64, 0);
    for round in 0..rounds {
        context.go_on()?;
        let clock = Clock { seed: sampling.seed, step: sampling.number << 20 | round as u32 };
        program.try_run(&mut state, &[("x", &repeated)], clock)?;
        let found = (0..outputs.len()).map(|k| program.try_output(k)).collect::<Result<Vec<_>, _>>()?;
        for (k, of_models) in samples.iter_mut().enumerate() {
            let pieces = of_models.iter_mut().flatten().zip(found[k].chunks(each));
            for (i, (at_point, values)) in pieces.enumerate() {
                let less = |k: usize| values.iter().zip(&found[k][i * each..]).map(|(a, b)| a - b);
                at_point[0].extend(values.iter().copied());
                at_point[1].extend(less(0));
                at_point[2].extend(less(1));
            }
        }
        context.advance(round as u64 + 1, "");
    }
    context.end();
    Ok(samples.iter().map(|models| models.iter().map(|points| Measured::of(points)).collect()).collect())
}

/// Samples of each objective at the scale of J, `rows × []`.
fn losses<'g>(models: &Models, objectives: &[&dyn Objective], x: Expr<'g>, noise: Noise<'g>) -> Vec<Expr<'g>> {
    let model = models.energy();
    objectives.iter().map(|o| o.rows(&|x| model.energy(x), x.into(), noise) / o.scale()).collect()
}

/// The mean square of what rounding to f32 changes in one sample of each estimator: for each of the models.
///
/// Points and noise are numbers of f32, so that both precisions see the same.
pub fn rounding(
    models: &Models,
    points: &[f64],
    objectives: &[Box<dyn Objective>],
    sampling: Sampling,
    context: &Context,
) -> Result<Vec<Vec<Estimate>>, Error> {
    let (rows, seeds) = (points.len() / 2 * sampling.noises, models.count());
    let all: Vec<&dyn Objective> = objectives.iter().map(|o| &**o).collect();
    let single: Vec<f32> = points.chunks(2).flat_map(|x| x.repeat(sampling.noises)).map(|x| x as f32).collect();
    let clock = Clock { seed: sampling.seed, step: sampling.number << 20 };

    let g = Graph::new();
    let (x, noise) = (g.input_rows("x", rows, [2]), Noise::drawn(sampling.law, NOISE));
    let outputs = [losses(models, &all, x, noise), vec![noise.like(x)]].concat();
    let mut rounded = g.try_compile::<f32>(&outputs, &[], &context.options(seeds))?;
    rounded.try_run(&mut models.state(), &[("x", &single)], clock)?;

    let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
    let g = Graph::new();
    let [x, z] = ["x", "z"].map(|name| g.input_rows(name, rows, [2]));
    let mut exact = g.try_compile::<f64>(&losses(models, &all, x, Noise::given(z)), &[], &context.options(seeds))?;
    let (x, z) = (wide(&single), wide(rounded.try_output(objectives.len())?));
    exact.try_run(&mut models.state(), &[("x", &x), ("z", &z)], clock)?;

    let squares = |k: usize| {
        let (rounded, exact) = (rounded.try_output(k)?.chunks(rows), exact.try_output(k)?.chunks(rows));
        let square = |(a, b): (&f32, &f64)| (f64::from(*a) - b).powi(2);
        Ok(rounded.zip(exact).map(|(a, b)| Estimate::of(a.iter().zip(b).map(square))).collect())
    };
    (0..objectives.len()).map(squares).collect()
}

/// The mean over models, with their scatter if there are several.
pub fn over_models(models: &[Estimate]) -> Estimate {
    match models {
        [one] => *one,
        several => Estimate::across(several),
    }
}

impl Measured {
    fn of(points: &[Samples]) -> Self {
        let mut all = Moments::default();
        points.iter().for_each(|p| all.merge(&p[0]));
        let bias = |k: usize| Bias::of(&points.iter().map(|p| p[k].mean()).collect::<Vec<_>>());
        // The points stay the same: the mean varies with the noise only.
        let mean = Estimate::pooled(&points.iter().map(|p| p[0].mean()).collect::<Vec<_>>());
        Measured { mean, variance: all.variance(), sliced: bias(1), reduced: bias(2) }
    }

    /// The mean over models, with their scatter if there are several.
    pub fn over(models: &[Measured]) -> Self {
        let estimate = |of: &dyn Fn(&Measured) -> Estimate| over_models(&models.iter().map(of).collect::<Vec<_>>());
        let bias = |of: &dyn Fn(&Measured) -> Bias| Bias {
            bound: estimate(&|m| of(m).bound),
            floor: estimate(&|m| of(m).floor),
            square: estimate(&|m| of(m).square),
            difference: Estimate::pooled(&models.iter().map(|m| of(m).difference).collect::<Vec<_>>()),
        };
        Measured {
            mean: estimate(&|m| m.mean),
            variance: estimate(&|m| m.variance),
            sliced: bias(&|m| m.sliced),
            reduced: bias(&|m| m.reduced),
        }
    }
}

impl Bias {
    /// From the mean difference at each point.
    fn of(differences: &[Estimate]) -> Self {
        let count = differences.len() as f64;
        let mean = |of: &dyn Fn(&Estimate) -> f64| differences.iter().map(of).sum::<f64>() / count;
        let noise = |d: &Estimate| d.std_error.powi(2);
        let (bound, floor) = (mean(&|d| d.mean.powi(2)), mean(&noise));
        let spread = |d: &Estimate| 4.0 * (d.mean.powi(2) - noise(d)).max(0.0) * noise(d) + 2.0 * noise(d).powi(2);
        let std_error = (mean(&spread) / count).sqrt();
        let samples = differences.iter().map(|d| d.count).sum();
        let estimate = |mean: f64| Estimate { mean, std_error, count: samples };
        Bias {
            bound: estimate(bound),
            // known to a relative √(2/(K·M)), which is nothing beside the error of the bound
            floor: Estimate::exact(floor),
            square: estimate(bound - floor),
            difference: Estimate::pooled(differences),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minvel_engine::random::{Key, Stream};

    /// Biases 0, 0.1, …, noise of deviation 0.2, 0.4, …: the square has no bias and knows its error; the bound has one.
    #[test]
    fn the_floor_is_what_noise_adds_to_the_bound() {
        let (points, noises, repeats) = (6, 50, 2000);
        let mut noise = Stream::new(Key::new(5, 0), 0);
        let mut differences = |k: usize| -> Estimate {
            Estimate::of((0..noises).map(|_| 0.1 * k as f64 + 0.2 * (k + 1) as f64 * noise.normal()))
        };
        let biases: Vec<Bias> =
            (0..repeats).map(|_| Bias::of(&(0..points).map(&mut differences).collect::<Vec<_>>())).collect();
        let truth = Estimate::exact((0..points).map(|k| (0.1 * k as f64).powi(2)).sum::<f64>() / points as f64);
        let squares: Moments = biases.iter().map(|b| b.square.mean).collect();
        let bounds: Moments = biases.iter().map(|b| b.bound.mean).collect();
        let stated = biases.iter().map(|b| b.square.std_error.powi(2)).sum::<f64>() / f64::from(repeats);
        let (z, twin) = (squares.mean().z(truth), bounds.mean().z(truth));
        println!(
            "squared bias: z = {z:+.2}, without the floor z = {twin:+.2}; variance {} stated {stated}",
            squares.variance()
        );
        assert!(z.abs() < 4.0 && twin.abs() > 4.0);
        // stated errors are estimates: half of their part 2v² is counted twice where the bias is small
        assert!((stated / squares.variance().mean).ln().abs() < 0.5f64.ln().abs());
    }
}
