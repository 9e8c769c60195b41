//! The model: kernels, energies stacked with them, partition functions; how it is used.
//!
//! **Statement.** p = w₀a + Σ wₖpₖ: a, a density of local kernels; pₖ, normalised energies ([`Expert`]); weights that add up to one.
//! Models of earlier versions are one energy of weight one. How it is made: [`making`](super::making).
//! **Error.** That of the mean log density of rows: Σ wₖσₖ, σₖ those of log Zₖ; at a point where one energy counts alone it is its own.
//! **Conventions.** E = −log p − log Z in standard units, log Z = Σ wₖ log Zₖ: with one energy of weight one it is −log a + t f.
//! **Checked by** tests/densities/experts.rs, crates/lab/tests/lab/fit.rs.

use super::correction::{Averaged, Curve};
use super::expert::{Base, Expert, Tried};
use super::outliers::Reference;
use super::partition::LogZ;
use super::settings::FitSettings;
use super::stack::log_sum;
use super::standard::Standard;
use super::wide::{Wide, blended};
use crate::density::repeats::Known;
use crate::density::{Density, LocalKernels, slope};
use crate::estimate::Estimate;
use crate::train::{Context, Fingerprint};
use crate::{Error, Manifold};
use minvel_engine::random::{Key, Stream};
use std::fmt;
use std::sync::Arc;

/// A fitted density. Points are in the units of the data, as rows of the manifold.
pub struct Model {
    pub(super) manifold: Arc<dyn Manifold>,
    pub(super) settings: FitSettings,
    pub(super) standard: Standard,
    pub(super) anchor: LocalKernels,
    /// Training rows; the centres are these, or means of clusters of them.
    pub(super) rows: usize,
    /// Energies; those of weight 0 were tried and are not part of the density.
    pub(super) experts: Vec<Expert>,
    /// What was in the running, and what the validation rows said; none of models of earlier versions.
    pub(super) tried: Vec<Tried>,
    /// log Z of the energies together.
    pub(super) log_z: LogZ,
    /// Rows that it has not seen; files of earlier versions have none.
    pub(super) reference: Option<Reference>,
}

/// How the model came about.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct History {
    /// Objectives while learning.
    pub curves: Vec<Curve>,
    /// Step at which each seed stopped.
    pub best_step: Vec<u32>,
    /// Negative log-likelihood of the validation rows by share of the correction.
    pub shares: Vec<(f64, f64)>,
    /// What was in the running, and what the validation rows said of each; empty where kernels are alone.
    #[serde(default)]
    pub tried: Vec<Tried>,
    /// Log densities of each of these at the validation rows, in standard units, as judged: what weights are made of. No file keeps them.
    #[serde(skip)]
    pub judged: Vec<Vec<f64>>,
    /// What a reader should know about it.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Proposals of a chain.
const ROUNDS: u64 = 20;
/// The wide law's share of the proposals for a free energy.
const WIDE: f64 = 0.5;

/// Log densities in standard units: of the kernels, and of each energy.
pub(super) struct Parts {
    pub anchor: Vec<f64>,
    /// Empty of energies that were left out.
    pub experts: Vec<Vec<f64>>,
}

/// Points that chains ended at.
pub(super) struct Chains {
    /// In standard units.
    pub points: Vec<f64>,
    /// log of the density before it is normalised, less that of the proposals.
    pub log_weights: Vec<f64>,
    /// Proposals that each accepted.
    pub moves: Vec<u64>,
}

impl Model {
    /// A model without correction, of kernels that were made of so many rows.
    pub(super) fn of_kernels(
        manifold: Arc<dyn Manifold>,
        settings: &FitSettings,
        standard: Standard,
        anchor: LocalKernels,
        rows: usize,
    ) -> Model {
        let anchor = anchor.with_tolerance(settings.kernels.tolerance);
        let (settings, log_z) = (settings.clone(), LogZ::of_kernels());
        Model { manifold, settings, standard, anchor, rows, experts: vec![], tried: vec![], log_z, reference: None }
    }

    /// Tells kernels apart.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let shares: Vec<f64> = self.anchor.families().iter().map(|family| family.share).collect();
        self.anchor.tensors().iter().fold(Fingerprint::new().and(&shares), |all, (_, values)| all.and(values))
    }

    /// Where the points live.
    pub fn manifold(&self) -> &Arc<dyn Manifold> {
        &self.manifold
    }

    /// The share of corrections: Σ wₖtₖ of the energies that stand on kernels, t itself where there is only one.
    pub fn share(&self) -> f64 {
        // a sum of nothing is −0
        0.0 + self.used().filter(|e| e.base == Base::Anchor).map(|e| e.weight * e.share).sum::<f64>()
    }

    /// The energies that were learnt; those of weight 0 are not part of the density.
    pub fn experts(&self) -> &[Expert] {
        &self.experts
    }

    /// What was in the running, and what the validation rows said.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// The weight of the kernels alone.
    pub fn kernels_weight(&self) -> f64 {
        1.0 - self.experts.iter().map(|expert| expert.weight).sum::<f64>()
    }

    fn used(&self) -> impl Iterator<Item = &Expert> {
        self.experts.iter().filter(|expert| expert.weight > 0.0)
    }

    /// Weights of the kernels and of all energies; without those of minimum velocity, or with them.
    fn weights(&self, with_velocity: bool) -> Vec<f64> {
        let of = |expert: &Expert| if with_velocity { expert.weight } else { expert.without };
        let experts: Vec<f64> = self.experts.iter().map(of).collect();
        let first = if experts.contains(&1.0) { 0.0 } else { 1.0 - experts.iter().sum::<f64>() };
        [vec![first], experts].concat()
    }

    /// Sets log Z of the whole from those of its energies.
    pub(super) fn settle_log_z(&mut self) {
        let used: Vec<&Expert> = self.used().collect();
        self.log_z = match used[..] {
            [] => LogZ::of_kernels(),
            [only] if only.weight == 1.0 => only.log_z.clone(),
            _ => {
                let mean = used.iter().map(|e| e.weight * e.log_z.value.mean).sum();
                // The mean over rows of what each counts there is its weight.
                let std_error = used.iter().map(|e| e.weight * e.log_z.value.std_error).sum();
                let methods: Vec<String> = used.iter().map(|e| format!("{}: {}", e.name(), e.log_z.method)).collect();
                let efficiency = used.iter().map(|e| e.log_z.efficiency).fold(1.0, f64::min);
                let value = Estimate { mean, std_error, count: 1 };
                LogZ { value, method: methods.join("; "), bracket: None, efficiency }
            }
        };
    }

    /// Training rows; where they are more than the settings allow centres, the kernels stand on clusters of them.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the kernels stand on the training rows, and not on means of clusters of them.
    pub fn stands_on_rows(&self) -> bool {
        self.anchor.centres() == self.rows
    }

    /// Log densities of rows that it has not seen: what p-values of outliers refer to. None in files of earlier versions.
    pub fn reference(&self) -> Option<&Reference> {
        self.reference.as_ref()
    }

    /// log Z, and how it was found.
    pub fn log_z(&self) -> &LogZ {
        &self.log_z
    }

    /// U of an energy, compiled for so many points.
    pub(super) fn energy_of(&self, expert: &Expert, count: usize, context: &Context) -> Result<Averaged, Error> {
        expert.energy(&self.manifold, self.settings.seed, count, context)
    }

    /// Log densities of kernels and energies at points in standard units; of all energies, or of those in the density.
    pub(super) fn parts(&self, points: &[f64], all: bool, context: &Context) -> Result<Parts, Error> {
        let m = self.manifold.ambient();
        let wanted = |expert: &Expert| all || expert.weight > 0.0;
        let compile =
            |expert: &Expert| wanted(expert).then(|| self.energy_of(expert, points.len() / m, context)).transpose();
        let energies = self.experts.iter().map(compile).collect::<Result<Vec<_>, Error>>()?;
        // Many points at once lie close together, and share the work on the kernels.
        let anchor = self.anchor.log_density_of(points, context)?;
        let mut experts = vec![];
        for (expert, energy) in self.experts.iter().zip(energies) {
            let mut logs = vec![];
            if let Some(mut energy) = energy {
                for (points, anchor) in points.chunks(Averaged::ROWS * m).zip(anchor.chunks(Averaged::ROWS)) {
                    let here = energy.at_once(points)?;
                    let log_z = expert.log_z.value.mean;
                    logs.extend(anchor.iter().zip(here).map(|(a, u)| expert.unnormalised(*a, u) - log_z));
                }
            }
            experts.push(logs);
        }
        Ok(Parts { anchor, experts })
    }

    /// Log densities of the kernels and of each energy by themselves, at points in the units of the data.
    pub fn log_densities_of_parts(&self, points: &[f64], context: &Context) -> Result<Vec<Vec<f64>>, Error> {
        let shift = self.log_unit();
        let Parts { anchor, experts } = self.parts(&self.standardised(points), true, context)?;
        let shifted = |logs: Vec<f64>| logs.into_iter().map(|log| log + shift).collect();
        Ok(std::iter::once(anchor).chain(experts).map(shifted).collect())
    }

    /// log Σ wₖpₖ of parts, with or without the energies of minimum velocity.
    pub(super) fn sum(&self, parts: &Parts, with_velocity: bool) -> Vec<f64> {
        let weights = self.weights(with_velocity);
        let logs: Vec<&[f64]> =
            std::iter::once(parts.anchor.as_slice()).chain(parts.experts.iter().map(Vec::as_slice)).collect();
        log_sum(&logs, &weights)
    }

    /// E at points in the units of the data.
    pub fn energy(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.energy_and_anchor(points, context)?.0)
    }

    /// E and log a (in standard units) at points in the units of the data.
    fn energy_and_anchor(&self, points: &[f64], context: &Context) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let parts = self.parts(&self.standard.apply(points), false, context)?;
        let log_z = self.log_z.value.mean;
        let energy = self.sum(&parts, true).into_iter().map(|log| -log - log_z).collect();
        Ok((energy, parts.anchor))
    }

    /// log p, and the log density of the kernels alone, at points in the units of the data.
    pub(super) fn log_densities(&self, points: &[f64], context: &Context) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let (energy, anchor) = self.energy_and_anchor(points, context)?;
        let shift = self.standard.log_volume();
        Ok((self.log_density_of_energy(&energy), anchor.into_iter().map(|a| a + shift).collect()))
    }

    /// log p at points in the units of the data.
    pub fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.log_density_of_energy(&self.energy(points, context)?))
    }

    /// log p of points with these energies.
    pub fn log_density_of_energy(&self, energy: &[f64]) -> Vec<f64> {
        let shift = self.standard.log_volume() - self.log_z.value.mean;
        energy.iter().map(|e| shift - e).collect()
    }

    /// The density of the kernels alone, in the units of the data.
    pub fn log_anchor(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let shift = self.standard.log_volume();
        let points = self.standard.apply(points);
        Ok(self.anchor.log_density_of(&points, context)?.into_iter().map(|a| a + shift).collect())
    }

    /// grad log p in standard units at points of the data, and the points in standard units: what the Stein test takes,
    /// so that units of the data do not matter.
    pub(super) fn standard_scores(&self, points: &[f64], context: &Context) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let m = self.manifold.ambient();
        let points = self.standard.apply(points);
        if self.used().next().is_none() {
            let derivative = self.anchor.derivative(&points, context)?;
            return Ok((slope::gradient(&*self.manifold, &points, &derivative, context)?, points));
        }
        let (anchor, anchor_slope) = self.anchor.with_derivative(&points, context)?;
        let weights = self.weights(true);
        let only = weights.contains(&1.0);
        // Of several densities each counts as much as it is likely to be where the point comes from.
        let parts = if only { None } else { Some(self.parts(&points, false, context)?) };
        let logs = parts.as_ref().map_or(vec![], |parts| self.sum(parts, true));
        let chance = |k: usize, i: usize| match &parts {
            None => weights[k],
            Some(_) if weights[k] == 0.0 => 0.0,
            Some(parts) => {
                let own = if k == 0 { anchor[i] } else { parts.experts[k - 1][i] };
                weights[k] * (own - logs[i]).exp()
            }
        };
        let mut derivative: Vec<f64> = anchor_slope
            .iter()
            .enumerate()
            .map(|(j, s)| if weights[0] == 0.0 { 0.0 } else { chance(0, j / m) * s })
            .collect();
        for (k, expert) in self.experts.iter().enumerate().filter(|(_, expert)| expert.weight > 0.0) {
            let mut slope = expert.derivative(&self.manifold, self.settings.seed, points.len() / m, context)?;
            let batch = Averaged::ROWS * m;
            for (first, points) in points.chunks(batch).enumerate() {
                for (j, u) in slope.at_once(points)?.into_iter().enumerate() {
                    let j = first * batch + j;
                    let own = match expert.base {
                        Base::Anchor => anchor_slope[j] - expert.share * u,
                        Base::Wide => -u,
                    };
                    derivative[j] += chance(k + 1, j / m) * own;
                }
            }
        }
        Ok((slope::gradient(&*self.manifold, &points, &derivative, context)?, points))
    }

    /// grad log p at points in the units of the data, in their coordinates.
    pub fn score(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.standard.undo_slopes(&self.standard_scores(points, context)?.0))
    }

    /// The points that the kernels stand on, in the units of the data.
    pub fn centres(&self) -> Vec<f64> {
        self.standard.undo(self.anchor.points())
    }

    /// Points in standard units.
    pub fn standardised(&self, points: &[f64]) -> Vec<f64> {
        self.standard.apply(points)
    }

    /// What log densities in standard units gain in those of the data.
    pub fn log_unit(&self) -> f64 {
        self.standard.log_volume()
    }

    /// The kernels.
    pub fn kernels(&self) -> &LocalKernels {
        &self.anchor
    }

    /// The settings it was learnt with.
    pub fn settings(&self) -> &FitSettings {
        &self.settings
    }

    /// The share of points that the kernels stand on, bit for bit.
    pub fn share_known(&self, points: &[f64]) -> f64 {
        let m = self.manifold.ambient();
        let known = Known::new(self.anchor.points(), m, 0..self.anchor.centres());
        let points = self.standard.apply(points);
        let found = points.chunks(m).filter(|p| known.holds(p)).count();
        found as f64 / (points.len() / m).max(1) as f64
    }

    /// Rows that so many draws take: each point, and each proposal for it, is one.
    pub fn rows_of_draws(&self, count: usize) -> usize {
        if self.used().next().is_some() { count * (ROUNDS as usize + 1) } else { 0 }
    }

    /// Points of the law that proposes for an energy, and log p̃ − log m there; `energy` is that of [`Self::energy_of`].
    pub(super) fn proposals(
        &self,
        expert: &Expert,
        count: usize,
        seed: u64,
        energy: Option<&mut Averaged>,
        context: &Context,
    ) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let m = self.manifold.ambient();
        let mut points = self.anchor.sample(count, seed);
        let mut own = None;
        let energy = match energy {
            Some(energy) => energy,
            None => own.insert(self.energy_of(expert, count, context)?),
        };
        if expert.base == Base::Anchor {
            let weights = energy.at(&points, context)?.iter().map(|f| -expert.share * f).collect();
            return Ok((points, weights));
        }
        let wide = Wide::of(&self.manifold);
        let others = wide.sample(count, seed, context)?;
        let mut coins = Stream::new(Key::new(seed, 3), 1);
        for (own, other) in points.chunks_mut(m).zip(others.chunks(m)) {
            if coins.uniform() < WIDE {
                own.copy_from_slice(other);
            }
        }
        let (a, b) = (self.anchor.log_density_of(&points, context)?, wide.log_density(&points, context)?);
        let energy = energy.at(&points, context)?;
        let weights = (0..count).map(|i| expert.unnormalised(a[i], energy[i]) - blended(a[i], b[i], WIDE));
        let weights = weights.collect();
        Ok((points, weights))
    }

    /// Ends of independence chains of an energy: proposals of kernels (and wide law), each accepted with probability
    /// min(1, e^{w′ − w}).
    pub(super) fn chains(&self, expert: &Expert, count: usize, seed: u64, context: &Context) -> Result<Chains, Error> {
        let m = self.manifold.ambient();
        let seed = seed.wrapping_mul(ROUNDS + 1);
        let mut energy = self.energy_of(expert, count, context)?;
        let (mut points, mut log_weights) = self.proposals(expert, count, seed, Some(&mut energy), context)?;
        let mut coins = Stream::new(Key::new(seed, 1), 1);
        let mut moves = vec![0u64; count];
        for round in 1..=ROUNDS {
            let (proposals, new) =
                self.proposals(expert, count, seed.wrapping_add(round), Some(&mut energy), context)?;
            for i in 0..count {
                if coins.uniform().ln() < new[i] - log_weights[i] {
                    points[i * m..][..m].copy_from_slice(&proposals[i * m..][..m]);
                    log_weights[i] = new[i];
                    moves[i] += 1;
                }
            }
        }
        Ok(Chains { points, log_weights, moves })
    }

    /// Draws: each of the kernels or of an energy, by the weights; of kernels exactly, of an energy by an independence chain.
    pub fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Drawn, Error> {
        let m = self.manifold.ambient();
        let weights = self.weights(true);
        let of: Vec<usize> = match weights.iter().position(|w| *w == 1.0) {
            Some(only) => vec![only; count],
            None => {
                let mut coins = Stream::new(Key::new(seed, 2), 1);
                let mut choose = || {
                    let mut left = coins.uniform();
                    let some = |(k, w): (usize, &f64)| {
                        left -= w;
                        (left < 0.0 && *w > 0.0).then_some(k)
                    };
                    weights.iter().enumerate().find_map(some).unwrap_or(0)
                };
                (0..count).map(|_| choose()).collect()
            }
        };
        let mut points = vec![0.0; count * m];
        let (mut accepted, mut moved, mut chains) = (0, 0, 0);
        for k in 0..weights.len() {
            let rows: Vec<usize> = (0..count).filter(|i| of[*i] == k).collect();
            if rows.is_empty() {
                continue;
            }
            let drawn = match k.checked_sub(1) {
                None => self.anchor.sample(rows.len(), seed.wrapping_mul(ROUNDS + 1)),
                Some(k) => {
                    let ends = self.chains(&self.experts[k], rows.len(), seed, context)?;
                    accepted += ends.moves.iter().sum::<u64>();
                    moved += ends.moves.iter().filter(|moves| **moves > 0).count();
                    chains += rows.len();
                    ends.points
                }
            };
            rows.iter().zip(drawn.chunks(m)).for_each(|(i, point)| points[i * m..][..m].copy_from_slice(point));
        }
        let points = self.standard.undo(&points);
        if chains == 0 {
            return Ok(Drawn { points, acceptance: 1.0, moved: 1.0 });
        }
        let acceptance = accepted as f64 / (chains as f64 * ROUNDS as f64);
        Ok(Drawn { points, acceptance, moved: moved as f64 / chains as f64 })
    }
}

impl Density for Model {
    fn name(&self) -> &str {
        "fit"
    }

    fn manifold(&self) -> Arc<dyn Manifold> {
        self.manifold.clone()
    }

    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Model::log_density(self, points, context)
    }

    fn score(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Model::score(self, points, context)
    }

    fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Vec<f64>, Error> {
        Ok(Model::sample(self, count, seed, context)?.points)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Model { manifold, rows, experts, .. } = self;
        write!(f, "Model({manifold}, {rows} rows, {experts:?})")
    }
}

/// Points of a model, and how the chains went.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// In the units of the data, row-major.
    pub points: Vec<f64>,
    /// Share of the proposals that were accepted.
    pub acceptance: f64,
    /// Share of the chains that accepted at least one: the others are draws of the kernels alone.
    pub moved: f64,
}
