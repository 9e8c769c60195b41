//! Manifolds, energies, flows, objectives, samplers, auto-encoders and training: laws, facts and orders of convergence.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod annealed;
mod autoencoder;
mod autoencoder_facts;
mod codec;
mod convolution;
mod diagnostics;
mod energy_facts;
mod energy_laws;
mod eval;
mod files;
mod golden;
mod learner;
mod manifold_defaults;
mod manifold_facts;
mod manifold_laws;
mod manifold_names;
mod manifold_steps;
mod matching;
mod matching_facts;
mod objective_facts;
mod objective_laws;
mod sampler_facts;
mod sampler_laws;
mod sampler_moments;
mod sampler_particles;
mod special;
mod train;
mod vmf_gradients;
