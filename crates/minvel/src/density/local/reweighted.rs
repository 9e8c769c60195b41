//! The same kernels with other weights of the rows they were made of.
//!
//! **Statement.** A kernel about row i counts w_i ξ_i/Σ w ξ, the sum over the rows of its class; one about a group of rows, or a component of a
//! mixture, is multiplied by the mean of ξ over the rows that are nearest to it. **Error.** Components share rows that are here given to the nearest alone.
//! **Checked by** tests/densities/rows.rs.

use super::kernels::LocalKernels;
use crate::Error;
use crate::density::{Sample, by_rows};
use crate::train::Context;
use std::collections::HashMap;

/// Kernels, and which row belongs to which of them.
pub(crate) struct Reweighted<'a> {
    kernels: &'a LocalKernels,
    rows: Sample<'static>,
    /// Of each further list of centres.
    lists: Vec<List>,
}

/// How centres and rows belong together.
enum List {
    /// Centres that are rows: which row each is.
    Rows(Vec<usize>),
    /// The centre that is nearest to each row.
    Nearest(Vec<usize>),
}

impl<'a> Reweighted<'a> {
    /// Of the rows that the kernels stand on.
    pub fn of(kernels: &'a LocalKernels, context: &Context) -> Result<Self, Error> {
        let (m, points) = (kernels.ambient(), kernels.points());
        let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        let known: HashMap<Vec<u64>, usize> = points.chunks(m).enumerate().map(|(i, x)| (bits(x), i)).collect();
        let list = |list: usize| {
            let centres = &kernels.sites[list].points;
            if let Some(rows) = centres.chunks(m).map(|c| known.get(&bits(c)).copied()).collect() {
                return Ok(List::Rows(rows));
            }
            let found = by_rows(points.len() / m, 1, &context.quiet(), |first, out| {
                let mut squares = vec![0.0; centres.len() / m];
                for (i, out) in (first..).zip(out) {
                    kernels.chords_squared(centres, &points[i * m..][..m], &mut squares);
                    let least = (0..squares.len()).min_by(|a, b| squares[*a].total_cmp(&squares[*b]));
                    *out = least.expect("a list has centres") as f64;
                }
            })?;
            Ok(List::Nearest(found.into_iter().map(|place| place as usize).collect()))
        };
        let lists = (1..kernels.sites.len()).map(list).collect::<Result<_, Error>>()?;
        Ok(Reweighted { kernels, rows: kernels.made_of(), lists })
    }

    /// The density in which a group counts so many times as much.
    pub fn by(&self, factor: impl Fn(usize) -> f64) -> LocalKernels {
        let total = self.kernels.centres();
        let factors: Vec<f64> = (0..total).map(|i| factor(self.rows.group(i))).collect();
        let mut kernels = self.kernels.clone();
        let own: Vec<f64> = (0..total).map(|i| self.rows.weight(i) * factors[i]).collect();
        kernels.sites[0].weights = normalised(own);
        for (sites, list) in kernels.sites[1..].iter_mut().zip(&self.lists) {
            let count = sites.points.len() / self.kernels.ambient();
            let weight: Vec<f64> = match list {
                List::Rows(rows) => {
                    rows.iter().enumerate().map(|(k, &i)| sites.weight(k, count) * factors[i]).collect()
                }
                List::Nearest(owners) => {
                    let (mut sums, mut masses) = (vec![0.0; count], vec![0.0; count]);
                    for (i, &owner) in owners.iter().enumerate() {
                        sums[owner] += self.rows.weight(i) * factors[i];
                        masses[owner] += self.rows.weight(i);
                    }
                    let mean = |k: usize| if masses[k] > 0.0 { sums[k] / masses[k] } else { 1.0 };
                    (0..count).map(|k| sites.weight(k, count) * mean(k)).collect()
                }
            };
            sites.weights = normalised(weight);
        }
        kernels.weighed_anew()
    }
}

/// Weights that add up to one.
fn normalised(weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

impl LocalKernels {
    /// log of what the uniform law adds to the density everywhere; −∞ without it.
    pub(crate) fn log_uniform_part(&self) -> f64 {
        self.log_uniform()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::LocalSettings;
    use crate::manifold::parse;
    use minvel_engine::random::{Key, Stream};

    /// Bounds and blocks are not made again for other weights, and need not be.
    #[test]
    fn kernels_with_other_weights_are_laid_out_as_if_they_were_made_with_them() {
        let mut stream = Stream::new(Key::new(5, 0), 1);
        let points: Vec<f64> = (0..2 * 2500).map(|_| stream.normal()).collect();
        let settings = LocalSettings { mixtures: vec![8], folds: 2, ..LocalSettings::default() };
        let fit = settings.fit(&parse("euclidean:2").unwrap(), &points, 1, &Context::bare(), false).unwrap();
        let reweighted = Reweighted::of(&fit.density, &Context::bare()).unwrap();
        let other = reweighted.by(|row| 0.5 + (row % 7) as f64);
        assert!(other != fit.density, "the weights are the same: this tests nothing");
        assert!(other.clone().laid_out() == other);
    }
}
