//! How likely a decoder finds images: log p(x) = log ∫ p(x|z) p(z) dz.
//!
//! **Statement.** Annealed importance sampling from the prior to p(z)p(x|z), some chains for each image, their weights
//! averaged: E log p̂(x) ≤ log p(x). For an explicit posterior also the bound log mean_k p(x|z_k)p(z_k)/q(z_k|x).
//! **Source.** docs/math §4.6; wu2017decoder, neal2001ais, burda2016iwae.
//! **Conventions.** Chains of an image are successive rows; the step size is shared by all chains of a program, that is by
//! a group of images, and starts anew with each group. What is known is kept at the context after each group.
//! **Error.** Below log p(x) on average, by about half the variance of the log weights over the number of chains.
//! **Checked by** tests/theory/autoencoder_facts.rs (a decoder whose likelihood is known), tests/theory/sampler_facts.rs
//! (F47–F50).

use super::learning::outside;
use super::{Autoencoder, Posterior};
use crate::Error;
use crate::energy::von_mises_fisher::Reparameterisation;
use crate::estimate::log_mean_exp;
use crate::manifold::{Manifold, Space};
use crate::sampler::{Annealing, AnnealingSchedule, ChartLaw, Metropolis};
use crate::train::{Checkpoint, Context, Scalar};
use minvel_engine::{Clock, Graph, State};
use std::sync::Arc;

/// Annealed importance sampling of log p(x).
#[derive(Clone, Debug)]
pub struct Evidence {
    /// How chains go from the prior to the posterior.
    pub annealing: Annealing,
    /// Chains for each image.
    pub chains: usize,
    /// Images of one program.
    pub group: usize,
}

impl Evidence {
    /// Hamiltonian moves on Rⁿ, five Metropolis-corrected Langevin steps elsewhere, at so many temperatures.
    pub fn on(latent: &Arc<dyn Manifold>, temperatures: usize, chains: usize, group: usize) -> Self {
        let flat = matches!(latent.spaces().as_deref(), Some([Space::Euclidean(_)]));
        let annealing = if flat { Annealing::hamiltonian(latent.clone()) } else { Annealing::langevin(latent.clone()) };
        let schedule = AnnealingSchedule::Sigmoid { count: temperatures };
        Evidence { annealing: Annealing { schedule, ..annealing }, chains, group }
    }

    /// With the chart that depends on the state, as in the official code: not invariant, and too optimistic (docs/math §4.6).
    pub fn replicating_the_official_charts(mut self, latent: &Arc<dyn Manifold>) -> Self {
        let official = Metropolis { charts: ChartLaw::OfState, ..Metropolis::on(latent.clone()) };
        self.annealing.sampler = Arc::new(official);
        self
    }

    /// log p̂ of each image, `[replica][image]`; images are row-major, the same for all replicas.
    pub fn log_likelihoods<T: Scalar>(
        &self,
        model: &Autoencoder,
        state: &State<T>,
        images: &[T],
        seed: u64,
        context: &Context,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let (pixels, replicas) = (model.decoder.pixels(), state.replicas());
        let count = images.len() / pixels;
        let group = self.group.min(count);
        let g = Graph::new();
        let shown = g.input("images", [group, pixels]);
        let index: Vec<f64> = (0..group * self.chains).map(|row| (row / self.chains) as f64).collect();
        let x = model.decoder.likelihood.pixels(shown.gather(g.table(&index, [index.len()]).distribute()));
        let extra = |z| -model.decoder.log_prob(x, z);
        let mut annealed = self.annealing.compile::<T>(&g, &extra, index.len(), &context.options(replicas))?;
        let mut found = Found::resumed(replicas, count, context)?;
        context.begin("evidence", count as u64, found.done.min(count) as u64);
        for (number, first) in (0..count).step_by(group).enumerate().skip(found.done.div_ceil(group)) {
            context.go_on()?;
            // The last group may be short of images: it is filled up with those before it, which were counted.
            let from = first.min(count - group);
            let own = &images[from * pixels..][..group * pixels];
            let weights = annealed.run(&mut state.clone(), &[("images", own)], None, seed + number as u64)?;
            for (replica, all) in weights.values.chunks(group * self.chains).enumerate() {
                let each = all.chunks(self.chains).map(|chains| log_mean_exp(chains).mean);
                found.values[replica].extend(each.skip(first - from));
            }
            found.done = (first + group).min(count);
            found.keep(count, context)?;
            context.advance(found.done as u64, "");
        }
        context.end();
        Ok(found.values)
    }
}

/// log p̂ of the images so far, kept after each group, so that an interruption costs no more than one.
struct Found {
    /// `[replica][image]`.
    values: Vec<Vec<f64>>,
    /// Images.
    done: usize,
}

/// Name of the file at the context, and of what is in it.
const NAME: &str = "evidence";

impl Found {
    /// What the context has, or nothing.
    fn resumed(replicas: usize, count: usize, context: &Context) -> Result<Self, Error> {
        let mut found = Found { values: vec![vec![]; replicas], done: 0 };
        let Some(path) = context.checkpoint(NAME) else { return Ok(found) };
        let Some(kept) = Checkpoint::<f64>::read_if_there(&path)? else { return Ok(found) };
        kept.belongs_to(&path, &context.purpose(NAME), &found.state(count))?;
        context.resumed(kept.note(&path)?);
        found.done = kept.step as usize;
        let all = kept.state.get(NAME).expect("it belongs to this");
        found.values = all.chunks(count).map(|own| own[..found.done].to_vec()).collect();
        Ok(found)
    }

    /// As a state: as many numbers as images, those not known yet being NaN.
    fn state(&self, count: usize) -> State<f64> {
        let padded = |own: &Vec<f64>| own.iter().copied().chain(std::iter::repeat(f64::NAN)).take(count).collect();
        let all: Vec<Vec<f64>> = self.values.iter().map(padded).collect();
        let mut state = State::new(self.values.len());
        state.set(NAME, &all.concat(), count);
        state
    }

    fn keep(&self, count: usize, context: &Context) -> Result<(), Error> {
        let Some(path) = context.checkpoint(NAME) else { return Ok(()) };
        let (state, seconds) = (self.state(count), context.seconds());
        Checkpoint::new(state, self.done as u32, &context.purpose(NAME), &seconds).write(&path)
    }
}

/// The importance-weighted bound of an explicit posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportanceBound {
    /// Codes for each image.
    pub codes: usize,
    /// Images of one program.
    pub group: usize,
}

impl ImportanceBound {
    /// The bound for each image, `[replica][image]`; `None` where the posterior is not explicit, or is sampled by the
    /// official code, whose codes do not have the density that the bound divides by.
    pub fn bounds<T: Scalar>(
        &self,
        model: &Autoencoder,
        state: &State<T>,
        images: &[T],
        seed: u64,
        context: &Context,
    ) -> Result<Option<Vec<Vec<f64>>>, Error> {
        if model.encoder.posterior == (Posterior::VonMisesFisher { gradient: Reparameterisation::Official }) {
            return Ok(None);
        }
        let (pixels, replicas) = (model.decoder.pixels(), state.replicas());
        let count = images.len() / pixels;
        let group = self.group.min(count);
        let g = Graph::new();
        let x = model.decoder.likelihood.pixels(g.input_rows("images", group, [pixels]));
        let code = model.encoder.encode(x, outside("importance"));
        let Some((_, log_q)) = code.law else { return Ok(None) };
        let log_weight = model.decoder.log_prob(x, code.at) - model.latent.base_energy(code.at) - log_q;
        let mut program = g.try_compile::<T>(&[log_weight], &[], &context.options(replicas))?;
        let mut found = vec![Vec::with_capacity(count); replicas];
        context.begin("importance", count as u64, 0);
        let mut state = state.clone();
        for first in (0..count).step_by(group) {
            let from = first.min(count - group);
            let own = &images[from * pixels..][..group * pixels];
            let mut weights = vec![Vec::with_capacity(self.codes); replicas * group];
            for step in 0..self.codes as u32 {
                context.go_on()?;
                program.try_run(&mut state, &[("images", own)], Clock { seed: seed + first as u64, step })?;
                for (all, &w) in weights.iter_mut().zip(program.try_output(0)?) {
                    all.push(w.to_f64());
                }
            }
            for (replica, all) in weights.chunks(group).enumerate() {
                found[replica].extend(all.iter().skip(first - from).map(|w| log_mean_exp(w).mean));
            }
            context.advance((first + group).min(count) as u64, "");
        }
        context.end();
        Ok(Some(found))
    }
}
