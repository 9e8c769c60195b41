//! Velocity matching: an energy of the codes, learnt by minimum velocity, tells where their law is too dense.
//!
//! **Statement.** KL(q‖p) has the gradient of mean(−log p(z) − E(z)) through z, if q ∝ e^{−E}; E is learnt by
//! (ε/2)·(L̂ + c·R), R = mean E(x⁻)² + mean E(x)². For the codes of one image E is conditional, E(z|x); for those of all,
//! E(z). **Source.** wang2020mvl section 5; docs/math §4.0 (entropy surrogate, scale of the loss), §4.10.
//! **Conventions.** E w.r.t. the volume of the manifold. The factor of the loss matters only for how long RMSProp warms
//! up. The value of the pull is KL up to the unknown log Z of E: only its gradient means anything.
//! **Error.** As good as E is. **Checked by** tests/theory/matching.rs (gradient against the exact one for a known law).

use super::Matching;
use crate::energy::{Conditional, Energy, Mlp};
use crate::flow::{Law, Noise};
use crate::manifold::Manifold;
use crate::network::Parameter;
use crate::objective::{MinimumVelocity, Objective};
use minvel_engine::{Expr, Graph};
use std::sync::Arc;

/// An energy of codes.
#[derive(Clone, Debug)]
enum Learnt {
    /// E(z|x).
    OfEach(Conditional),
    /// E(z).
    OfAll(Mlp),
}

/// Velocity matching.
#[derive(Clone, Debug)]
pub struct Velocity {
    latent: Arc<dyn Manifold>,
    energy: Learnt,
    objective: MinimumVelocity,
    factor: f64,
}

impl Velocity {
    /// Codes of each image to the prior, by an energy of code and image.
    pub fn of_each(latent: Arc<dyn Manifold>, energy: Conditional, objective: MinimumVelocity, factor: f64) -> Self {
        Velocity { latent, energy: Learnt::OfEach(energy), objective, factor }
    }

    /// Codes of all images together to the prior, by an energy of the code.
    pub fn of_all(latent: Arc<dyn Manifold>, energy: Mlp, objective: MinimumVelocity, factor: f64) -> Self {
        Velocity { latent, energy: Learnt::OfAll(energy), objective, factor }
    }

    fn learnt(&self) -> &dyn Energy {
        match &self.energy {
            Learnt::OfEach(energy) => energy,
            Learnt::OfAll(energy) => energy,
        }
    }

    /// E as a function of the code, its images given.
    pub fn energy<'a, 'g>(&'a self, images: Expr<'g>) -> Box<dyn Fn(Expr<'g>) -> Expr<'g> + 'a>
    where
        'g: 'a,
    {
        match &self.energy {
            Learnt::OfEach(energy) => {
                let context = energy.context(images);
                Box::new(move |z| energy.energy(z, context))
            }
            Learnt::OfAll(energy) => Box::new(move |z| energy.energy(z)),
        }
    }
}

impl Matching for Velocity {
    fn pull<'g>(&self, codes: Expr<'g>, images: Expr<'g>, _: u32) -> Expr<'g> {
        (self.latent.base_energy(codes) - self.energy(images)(codes)).mean_rows()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.learnt().parameters()
    }

    fn followers(&self) -> Vec<Parameter> {
        self.learnt().followers()
    }

    fn follow<'g>(&self, graph: &'g Graph) -> Vec<(Expr<'g>, Expr<'g>)> {
        self.learnt().follow(graph)
    }

    fn loss<'g>(&self, codes: Expr<'g>, images: Expr<'g>, stream: u32) -> Option<Expr<'g>> {
        let noise = Noise::drawn(Law::Gaussian, stream);
        Some(self.factor * self.objective.loss(&*self.energy(images), codes.into(), noise))
    }
}
