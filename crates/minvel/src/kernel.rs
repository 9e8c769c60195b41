//! Kernels k(x, x') = κ(|x − x'|²) between points of flat space.
//!
//! **Statement.** Gaussian: κ(s) = e^{−s/2h}. Inverse multiquadric: κ(s) = (1 + s/ℓ²)^{−β}, 0 < β < 1.
//! **Source.** liu2016svgd (median bandwidth); gorham2017ksd (inverse multiquadric); docs/math §2.7.
//! **Conventions.** h is the *square* of a length. ∇_{x'}k = 2κ'(s)(x' − x) and tr ∇_x∇_{x'}k = −2dκ'(s) − 4sκ''(s).
//! **Error.** None; the median bandwidth makes k depend on the batch (constant in differentiation).
//! **Checked by** tests/theory/objective_facts.rs (F18–F21), tests/theory/objective_laws.rs.

use minvel_engine::Expr;

/// The square h of the length scale of a Gaussian kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bandwidth {
    /// h.
    Fixed(f64),
    /// h = max(½·median|x_i − x_j|²/ln(B + 1), 10⁻⁵), over all pairs of the given points (i = j too).
    Median,
}

/// A radial kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kernel {
    /// e^{−s/2h}.
    Gaussian(Bandwidth),
    /// (1 + s/ℓ²)^{−β}.
    InverseMultiquadric {
        /// ℓ.
        length: f64,
        /// β.
        power: f64,
    },
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel::Gaussian(Bandwidth::Median)
    }
}

/// A kernel between points: everything `rows × [B]`.
#[derive(Clone, Copy, Debug)]
pub struct Gram<'g> {
    /// s = |x − x'|².
    pub distance: Expr<'g>,
    /// κ(s).
    pub value: Expr<'g>,
    /// κ'(s).
    pub slope: Expr<'g>,
    /// κ''(s).
    pub curvature: Expr<'g>,
}

impl Bandwidth {
    /// h for points `[B, d]`, a scalar.
    pub fn of<'g>(self, points: Expr<'g>) -> Expr<'g> {
        match self {
            Bandwidth::Fixed(h) => points.graph().scalar(h),
            Bandwidth::Median => {
                let count = points.shape().dims[0];
                let pairs = points.distribute().squared_distances(points).collect();
                let all = count * count;
                let median = 0.5 * (pairs.kth_smallest((all - 1) / 2) + pairs.kth_smallest(all / 2));
                (median * (0.5 / (count as f64 + 1.0).ln())).max(1e-5)
            }
        }
    }
}

impl Kernel {
    /// The kernel between each row x `rows × [d]` and each of the points `[B, d]`.
    pub fn between<'g>(&self, x: Expr<'g>, points: Expr<'g>) -> Gram<'g> {
        let distance = x.squared_distances(points);
        match *self {
            Kernel::Gaussian(bandwidth) => {
                let rate = 0.5 / bandwidth.of(points);
                let value = (-rate * distance).exp();
                Gram { distance, value, slope: -rate * value, curvature: rate.square() * value }
            }
            Kernel::InverseMultiquadric { length, power } => {
                let rate = length.powi(-2);
                let base = 1.0 + rate * distance;
                let value = (-power * (rate * distance).log1p()).exp();
                let slope = -power * rate * value / base;
                Gram { distance, value, slope, curvature: -(power + 1.0) * rate * slope / base }
            }
        }
    }
}

impl<'g> Gram<'g> {
    /// tr ∇_x∇_{x'}k in d dimensions, `rows × [B]`.
    pub fn trace(&self, dim: usize) -> Expr<'g> {
        -2.0 * dim as f64 * self.slope - 4.0 * self.distance * self.curvature
    }
}
