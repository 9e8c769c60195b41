//! The model spaces that our manifolds are products of.
//!
//! **Statement.** M = M₁ × … × M_k, each M_i one of Rⁿ, Sⁿ, RPⁿ, Tⁿ, Hⁿ, SO(3). **Conventions.** Coordinates are those of the
//! manifolds of the same names; nested products are flattened. What is known in closed form (natural kernels, exponential
//! families, Stein fields) is known by space, so that it is plain code on numbers. **Checked by** tests/densities/density.rs.

use super::{Euclidean, Hyperbolic, Manifold, Product, Projective, So3, Sphere, Torus};
use std::sync::Arc;

/// A model space, by name and dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Rⁿ.
    Euclidean(usize),
    /// Sⁿ ⊂ R^{n+1}.
    Sphere(usize),
    /// RPⁿ: lines through the origin of R^{n+1}, as unit vectors up to sign.
    Projective(usize),
    /// Tⁿ in angles.
    Torus(usize),
    /// Hⁿ as the unit ball.
    Hyperbolic(usize),
    /// Rotations as unit quaternions up to sign.
    So3,
}

impl Space {
    /// Intrinsic dimension.
    pub fn dim(self) -> usize {
        match self {
            Space::Euclidean(n) | Space::Sphere(n) | Space::Projective(n) | Space::Torus(n) | Space::Hyperbolic(n) => n,
            Space::So3 => 3,
        }
    }

    /// Numbers per point.
    pub fn ambient(self) -> usize {
        match self {
            Space::Euclidean(n) | Space::Torus(n) | Space::Hyperbolic(n) => n,
            Space::Sphere(n) | Space::Projective(n) => n + 1,
            Space::So3 => 4,
        }
    }

    /// The manifold.
    pub fn manifold(self) -> Arc<dyn Manifold> {
        match self {
            Space::Euclidean(n) => Arc::new(Euclidean(n)),
            Space::Sphere(n) => Arc::new(Sphere(n)),
            Space::Projective(n) => Arc::new(Projective(n)),
            Space::Torus(n) => Arc::new(Torus(n)),
            Space::Hyperbolic(n) => Arc::new(Hyperbolic(n)),
            Space::So3 => Arc::new(So3),
        }
    }

    /// The product of spaces, or the only one.
    pub fn product(spaces: &[Space]) -> Arc<dyn Manifold> {
        match spaces {
            [only] => only.manifold(),
            _ => Arc::new(Product::new(spaces.iter().map(|s| s.manifold()).collect())),
        }
    }
}
