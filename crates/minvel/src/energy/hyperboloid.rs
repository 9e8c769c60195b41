//! The hyperboloid law on Hⁿ: von Mises–Fisher's hyperbolic brother.
//!
//! **Statement.** E(x) = κ cosh d(x, μ) (κX₀ if μ is the origin), log Z = log 2(2π/κ)^{(n−1)/2}K_{(n−1)/2}(κ),
//! I(p) = nκT, T = E cosh d. **Source.** docs/math §3.1, §3.6, F39; jensen1981hyperboloid.
//! **Conventions.** Points of the Poincaré ball, as in [`crate::manifold::Hyperbolic`].
//! **Error.** The distance, whose density ∝ sinhⁿ⁻¹r e^{−κ cosh r} is log-concave, is sampled by rejection from an
//! envelope of a constant and two exponentials ([`draw`]). **Checked by** tests/theory/energy_laws.rs.

use super::{Energy, draw};
use crate::manifold::{Hyperbolic, Manifold};
use crate::special::{hyperbolic_mean, log_hyperbolic_partition, log_sphere_area};
use minvel_engine::{Draw, Expr, Graph};

/// p(x) ∝ exp(−κ cosh d(x, μ)).
#[derive(Clone, Debug, PartialEq)]
pub struct Hyperboloid {
    mean: Vec<f64>,
    concentration: f64,
}

impl Hyperboloid {
    /// Mean μ, a point of the ball, and concentration κ > 0.
    pub fn new(mean: &[f64], concentration: f64) -> Self {
        Hyperbolic(mean.len()).check(mean).unwrap_or_else(|why| panic!("hyperboloid law: {why}"));
        assert!(concentration > 0.0, "a hyperboloid law has a positive concentration, not {concentration}");
        Hyperboloid { mean: mean.to_vec(), concentration }
    }

    /// E(x) = κX₀ on Hⁿ.
    pub fn centred(n: usize, concentration: f64) -> Self {
        Self::new(&vec![0.0; n], concentration)
    }

    fn dim(&self) -> usize {
        self.mean.len()
    }

    /// φ(r) = (n−1) log sinh r − κ(cosh r − 1), the log density of the distance but for a constant.
    fn log_density(&self, r: f64) -> f64 {
        let n = self.dim() as f64;
        let bend = if self.dim() == 1 { 0.0 } else { (n - 1.0) * r.sinh().ln() };
        bend - 2.0 * self.concentration * (0.5 * r).sinh().powi(2)
    }

    fn slope(&self, r: f64) -> f64 {
        let rise = if self.dim() == 1 { 0.0 } else { (self.dim() as f64 - 1.0) / r.tanh() };
        rise - self.concentration * r.sinh()
    }

    /// Where φ is largest: (n−1) cosh r = κ sinh² r.
    fn mode(&self) -> f64 {
        let (n, kappa) = (self.dim() as f64 - 1.0, self.concentration);
        // cosh r − 1 = 2 sinh² r/2, in a form that does not cancel for large κ.
        let rise = (n + n * n / ((n * n + 4.0 * kappa * kappa).sqrt() + 2.0 * kappa)) / (2.0 * kappa);
        2.0 * (0.5 * rise).sqrt().asinh()
    }

    /// Tangents of φ where it has fallen by one, on both sides of the mode: where they reach the height of the mode,
    /// and the lengths over which they fall by one. Their areas and that of the constant between add up to the
    /// envelope's.
    fn envelope(&self) -> Envelope {
        let mode = self.mode();
        let top = self.log_density(mode);
        let fallen = |r: f64| self.log_density(r) < top - 1.0;
        let (mut inside, mut outside) = (mode, mode + 1.0);
        while !fallen(outside) {
            outside += outside - mode;
        }
        let right = boundary(&fallen, &mut inside, &mut outside);
        let right_length = -1.0 / self.slope(right);
        let right_height = (self.log_density(right) - top) * right_length;
        let mut envelope = Envelope { left: 0.0, left_length: 0.0, right: right + right_height, right_length, top };
        if self.dim() > 1 {
            let (mut inside, mut outside) = (mode, 0.0);
            let left = boundary(&fallen, &mut inside, &mut outside);
            envelope.left_length = 1.0 / self.slope(left);
            envelope.left = left - (self.log_density(left) - top) * envelope.left_length;
        }
        envelope
    }

    /// The rate at which proposals of the distance are accepted.
    pub fn acceptance(&self) -> f64 {
        let e = self.envelope();
        let log_mass =
            log_hyperbolic_partition(self.dim(), self.concentration) + self.concentration - log_sphere_area(self.dim());
        (log_mass - e.top).exp() / e.area()
    }

    /// cosh d(x, μ) − 1 = 2|x − μ|²/((1−|x|²)(1−|μ|²)).
    fn rise<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let mean = x.graph().table(&self.mean, [self.dim()]);
        let depth = 1.0 - self.mean.iter().map(|x| x * x).sum::<f64>();
        (x - mean).square().sum(-1) / (1.0 - x.square().sum(-1)) * (2.0 / depth)
    }
}

struct Envelope {
    left: f64,
    left_length: f64,
    right: f64,
    right_length: f64,
    top: f64,
}

impl Envelope {
    fn area(&self) -> f64 {
        self.left_length + (self.right - self.left) + self.right_length
    }
}

/// Where a condition begins to hold, between a point inside (where it does not) and one outside (where it does).
fn boundary(holds: &dyn Fn(f64) -> bool, inside: &mut f64, outside: &mut f64) -> f64 {
    for _ in 0..60 {
        let middle = 0.5 * (*inside + *outside);
        if holds(middle) { *outside = middle } else { *inside = middle }
    }
    *outside
}

impl Energy for Hyperboloid {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        self.concentration * (1.0 + self.rise(x))
    }

    fn log_partition(&self) -> Option<f64> {
        Some(log_hyperbolic_partition(self.dim(), self.concentration))
    }

    fn sample<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Option<Expr<'g>> {
        let (n, e) = (self.dim(), self.envelope());
        let trials = draw::trials(self.acceptance());
        let u = graph.random_rows(Draw::Uniform, stream, rows, [2, trials]);
        // A point under the envelope: its place along the areas, left, middle, right.
        let (place, height) = (u.at(0, 0) * e.area() - e.left_length, u.at(0, 1).log());
        let middle = e.right - e.left;
        let in_left = place.less(0.0);
        let in_right = place.like(middle).less(place);
        // In the tails the place is an exponential's distribution function, and its log is the height of the envelope.
        let left_log = (1.0 + place.min(0.0) * (1.0 / e.left_length.max(1e-300))).max(1e-30).log();
        let right_log = (1.0 - (place - middle).max(0.0) * (1.0 / e.right_length)).max(1e-30).log();
        let zero = place.like(0.0);
        let log_envelope = in_left.select(left_log, in_right.select(right_log, zero));
        let r = e.left + place.max(0.0).min(middle) + in_left.select(left_log * e.left_length, zero)
            - in_right.select(right_log * e.right_length, zero);
        let safe = r.max(1e-30);
        let bend = if n == 1 { zero } else { (n as f64 - 1.0) * safe.sinh().log() };
        let log_density = bend - 2.0 * self.concentration * (0.5 * safe).sinh().square();
        let accept = (height + log_envelope).less_equal(log_density - e.top) * zero.less_equal(r);
        let distance = draw::first_accepted(accept, safe).expand(-1);
        let z = graph.random_rows(Draw::Normal, crate::stream::substream(stream, 1), rows, [n]);
        let space = Hyperbolic(n);
        let mean = graph.table(&self.mean, [n]).broadcast(&z.shape());
        Some(space.exp(mean, space.tangent_normal(mean, distance * draw::direction(z))))
    }

    fn fisher_information(&self) -> Option<f64> {
        let (n, kappa) = (self.dim(), self.concentration);
        Some(n as f64 * kappa * hyperbolic_mean(n, kappa))
    }
}
