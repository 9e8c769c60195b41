//! Whether test rows lie nearer to training rows than independent rows would.
//!
//! **Statement.** d(x) is the distance from a row to the nearest training row. Draws of a smooth density of the training rows, local kernels shaped
//! by √N neighbours (at least 12 per dimension), say what d is of independent rows; r is their 5 % quantile. The leak is the share of test rows
//! with d ≤ r: 5 % of independent rows of a density that is smooth on that scale, and more where rows come in clusters that a split tears apart.
//! **Conventions.** Distances are geodesic, in the units of the manifold. Rows of a cross-validation are test rows of all other groups. Of many
//! rows [`LOOKED_AT`] are looked at, and kernels stand on [`STANDING`] of them. **Error.** The share is known to √(L(1−L)/n) of n rows;
//! structure finer than √N neighbours, as faults and coasts have, looks like clusters: only blocks tell these apart.
//! **Checked by** tests/densities/rows.rs.

use super::settings::FitSettings;
use crate::density::{FEW_DIMENSIONS, LocalSettings, Sample, nearest};
use crate::train::Context;
use crate::{Error, Manifold};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What independent rows would show.
const EXPECTED: f64 = 0.05;
/// A share that is worth a warning.
const LARGE: f64 = 0.2;
/// Rows and draws that are looked at, at most.
const LOOKED_AT: usize = 1000;
/// Rows that the smooth kernels stand on, at most: in few dimensions, and beyond, where neighbours are found slowly.
const STANDING: [usize; 2] = [20_000, 10_000];
/// Fewer training rows say nothing.
const LEAST: usize = 50;
/// The stream of the draws.
const DRAW_SEED: u64 = 0x6c65_616b;

/// How near test rows lie to training rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leak {
    /// The share of test rows within the distance of a training row.
    pub share: f64,
    /// The share of independent rows that would be.
    pub expected: f64,
    /// The distance, in the units of the manifold.
    pub distance: f64,
    /// Test rows that were looked at.
    pub rows: usize,
}

/// Of the kernels that tell what independent rows would show, whatever those of the fit are like.
const SHRINKAGE: f64 = 0.05;

impl Leak {
    /// Whether it is worth a warning: more than a fifth of the rows, where one in twenty is expected, beyond chance.
    pub fn is_large(&self) -> bool {
        let chance = (self.expected * (1.0 - self.expected) / self.rows as f64).sqrt();
        self.share > LARGE && self.share > self.expected + 3.0 * chance
    }

    /// Of test rows; none of rows that are all in training: these are compared with the training rows of other groups. None where there
    /// are too few rows.
    pub(super) fn of(
        manifold: &Arc<dyn Manifold>,
        settings: &FitSettings,
        train: &Sample,
        test: Option<&Sample>,
        context: &Context,
    ) -> Result<Option<Leak>, Error> {
        let (m, rows) = (manifold.ambient(), train.rows(manifold.ambient()));
        if rows < LEAST || test.is_some_and(|test| test.rows(m) == 0) {
            return Ok(None);
        }
        context.stage("nearest training rows", 0, "rows", || {
            let every = |count: usize, most: usize| (0..count).step_by(count.div_ceil(most)).collect::<Vec<usize>>();
            let standing = STANDING[usize::from(manifold.dim() > FEW_DIMENSIONS)];
            let some = train.select(&every(rows, standing), m);
            let neighbours = (some.rows(m) as f64).sqrt() / manifold.dim() as f64;
            let smooth = LocalSettings {
                neighbours: vec![neighbours.max(12.0)],
                factors: vec![1.0],
                widths: 0,
                shrinkage: SHRINKAGE,
                classes: 1,
                mixtures: vec![],
                grouped: usize::MAX,
                ..settings.kernels.clone()
            };
            let quiet = context.quiet();
            let density = match others(rows, some.rows(m)) {
                // Rows that the kernels do not stand on tell what the uniform law is worth: folds are not needed.
                chosen if train.groups().is_empty() && !chosen.is_empty() => {
                    smooth.of_many(manifold, &some, train.select(&chosen, m).points(), &quiet)?
                }
                _ => smooth.fit(manifold, &some, settings.seed, &quiet, false)?.density,
            };
            let draws = density.sample(LOOKED_AT, settings.seed ^ DRAW_SEED);
            let mut apart = nearest(manifold, train.points(), &draws, |_, _| true, &quiet)?;
            apart.sort_by(f64::total_cmp);
            let distance = apart[(EXPECTED * apart.len() as f64) as usize];
            let asked = test.unwrap_or(train);
            let chosen = every(asked.rows(m), LOOKED_AT);
            let asked = asked.select(&chosen, m);
            let own = |query: usize, row: usize| test.is_some() || train.group(row) != train.group(chosen[query]);
            let found = nearest(manifold, train.points(), asked.points(), own, &quiet)?;
            let near: Vec<f64> = found.iter().map(|d| f64::from(u8::from(*d <= distance))).collect();
            Ok(Some(Leak { share: asked.mean(&near), expected: EXPECTED, distance, rows: near.len() }))
        })
    }
}

/// [`LOOKED_AT`] of so many rows beside those at equal distances that the kernels stand on; none where these are nearly all.
fn others(rows: usize, standing: usize) -> Vec<usize> {
    let step = rows.div_ceil(standing.max(1));
    let beside: Vec<usize> = (0..rows).filter(|row| row % step == 1).collect();
    if step < 2 { vec![] } else { beside.iter().copied().step_by(beside.len().div_ceil(LOOKED_AT)).collect() }
}
