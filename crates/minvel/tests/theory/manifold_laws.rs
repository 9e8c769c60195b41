//! Laws of geometry, over every manifold: what must hold whatever the curvature.
//!
//! Tolerances are in rounding errors, times what the point's own rounding costs: a coordinate wrong by one rounding
//! error moves a point by the root of the metric there (2 on a sphere, 2/(1−r²) in the ball).

use crate::support::geometry::{along, direction, generator, wave};
use crate::support::values;
use minvel::Manifold;
use minvel_engine::{Clock, Draw, Expr, Graph, Options, State, grad};
use minvel_testing::{sum, within_sigma, within_ulps};

const ROWS: usize = 96;
const SEED: u64 = 1;

/// Random points x, y and a tangent vector v at x no longer than 2.5, less than the way to where geodesics meet.
struct Place<'g> {
    x: Expr<'g>,
    y: Expr<'g>,
    v: Expr<'g>,
}

fn place<'g>(m: &dyn Manifold, g: &'g Graph) -> Place<'g> {
    let x = m.sample_base(g, ROWS, 1);
    let y = m.sample_base(g, ROWS, 2);
    let v = tangent(m, x, 3);
    Place { x, y, v }
}

fn tangent<'g>(m: &dyn Manifold, x: Expr<'g>, stream: u32) -> Expr<'g> {
    let v = m.tangent_normal(x, x.graph().normal_like(stream, x));
    let length = m.inner(x, v, v).sqrt();
    // short of the cut locus
    let reach = (0.8 * m.injectivity()).min(2.5);
    (reach / length).min(1.0).expand(-1) * v
}

/// √(largest g_ii): how far a point moves when its chart coordinate does.
fn stiffness<'g>(m: &dyn Manifold, x: Expr<'g>) -> Expr<'g> {
    let y = m.to_chart(x, m.choose_chart(x));
    m.metric(y).inverse.recip().max_over(-1).sqrt()
}

/// |u|_x.
fn length<'g>(m: &dyn Manifold, x: Expr<'g>, u: Expr<'g>) -> Expr<'g> {
    m.inner(x, u, u).sqrt()
}

/// The length of coordinates.
fn euclidean(v: Expr) -> Expr {
    v.square().sum(-1).sqrt()
}

fn worst(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |a, &b| if b.is_nan() { f64::INFINITY } else { a.max(b.abs()) })
}

/// Errors, each over its own allowance: none may exceed so many rounding errors.
fn assert_rounding(what: &str, error: Expr, allowance: Expr, ulps: f64) {
    let ratio = &values(&[error / allowance], &[("zero", &[0.0; ROWS])], SEED)[0];
    let got = worst(ratio) / f64::EPSILON;
    assert!(got <= ulps, "{what}: {got:.1} rounding errors, allowed {ulps}");
}

mod law {
    use super::*;

    pub fn the_logarithm_inverts_the_exponential(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, v, .. } = place(m, &g);
        for size in [1.0, 1e-3, 1e-8, 0.0] {
            let v = size * v;
            let y = m.exp(x, v);
            let error = length(m, x, m.log(x, y) - v);
            let allowance = (stiffness(m, x) + stiffness(m, y)) * (1.0 + length(m, x, v));
            assert_rounding(&format!("{m}, |v| ~ {size}"), error, allowance, 32.0);
        }
    }

    pub fn the_exponential_inverts_the_logarithm(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, y, .. } = place(m, &g);
        let there = m.exp(x, m.log(x, y));
        let allowance = (stiffness(m, x) + stiffness(m, y)) * (1.0 + m.distance(x, y));
        assert_rounding(&m.to_string(), m.distance(there, y), allowance, 32.0);
    }

    pub fn the_logarithm_is_as_long_as_the_distance(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, y, v } = place(m, &g);
        let between = length(m, x, m.log(x, y)) - m.distance(x, y);
        assert_rounding(&m.to_string(), between, stiffness(m, x) * (1.0 + m.distance(x, y)), 32.0);
        // And so short vectors keep their length: y is rounded, exp_x(v) − x is not.
        let short = 1e-6 * v;
        let y = m.exp(x, short);
        let error = m.distance(x, y) - length(m, x, short);
        assert_rounding(&format!("{m}, short"), error, stiffness(m, x), 8.0);
    }

    pub fn the_distance_is_a_metric(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, y, v } = place(m, &g);
        let z = m.exp(x, v);
        let rounding = stiffness(m, x) + stiffness(m, y) + stiffness(m, z);
        assert_rounding(&format!("{m}, d(x,y) − d(y,x)"), m.distance(x, y) - m.distance(y, x), rounding, 8.0);
        assert_rounding(&format!("{m}, d(x,x)"), m.distance(x, x), rounding, 0.0);
        let detour = m.distance(x, z) + m.distance(z, y) - m.distance(x, y);
        assert_rounding(&format!("{m}, triangle"), detour.min(0.0), rounding, 8.0);
        let half = m.exp(x, 0.5 * v);
        let straight = m.distance(x, half) + m.distance(half, z) - m.distance(x, z);
        assert_rounding(&format!("{m}, no detour over the midpoint"), straight, rounding, 32.0);
        // A point beside the geodesic is a detour: the inequality above is not an equality by construction.
        let beside = m.exp(half, tangent(m, half, 4));
        let lost = m.distance(x, beside) + m.distance(beside, z) - m.distance(x, z);
        let lost = &values(&[lost], &[], SEED)[0];
        assert!(m.dim() == 1 || lost.iter().all(|&d| d > 1e-9), "{m}: {lost:?}");
    }

    pub fn the_projection_is_idempotent_and_self_adjoint(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, .. } = place(m, &g);
        let (u, w) = (g.normal_like(4, x), g.normal_like(5, x));
        let (pu, pw) = (m.project(x, u), m.project(x, w));
        let scale = (1.0 + euclidean(u)) * (1.0 + euclidean(w));
        assert_rounding(&format!("{m}, P² = P"), euclidean(m.project(x, pu) - pu), scale, 4.0);
        assert_rounding(&format!("{m}, ⟨Pu, w⟩ = ⟨u, Pw⟩"), pu.dot(w) - u.dot(pw), scale, 4.0);
        let (v, z) = (tangent(m, x, 6), g.normal_like(6, x)); // v was made of z, and may be a small rest of it
        assert_rounding(&format!("{m}, Pv = v"), euclidean(m.project(x, v) - v), 1.0 + euclidean(z), 4.0);
    }

    pub fn the_gradient_is_dual_to_the_derivative(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, v, .. } = place(m, &g);
        let f = wave(m, x, 0.7);
        let gradient = m.gradient(x, grad(f, &[x])[0]);
        let dual = m.inner(x, gradient, v);
        let scale = 1.0 + length(m, x, gradient) * length(m, x, v);
        assert_rounding(&format!("{m}, ⟨grad f, v⟩ = df(v)"), dual - along(f, x, v), scale, 32.0);
        let tangential = euclidean(m.project(x, gradient) - gradient);
        assert_rounding(&format!("{m}, grad f is tangent"), tangential, scale, 8.0);
        // d/dt f(exp_x(tv)) at t = 0, through the exponential.
        let t = g.input_rows("zero", ROWS, []);
        let moving = wave(m, m.exp(x, t.expand(-1) * v), 0.7);
        let rate = along(moving, t, t.like(1.0));
        assert_rounding(&format!("{m}, f along exp"), dual - rate, scale, 64.0);
    }

    pub fn the_exponential_runs_at_constant_speed(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, v, .. } = place(m, &g);
        let t = g.random_rows(Draw::Uniform, 4, ROWS, []);
        let y = x + m.exp_delta(x, t.expand(-1) * v);
        let velocity = along(y, t, t.like(1.0));
        let rounding = (stiffness(m, x) + stiffness(m, y)) * (1.0 + length(m, x, v));
        assert_rounding(&format!("{m}, speed"), length(m, y, velocity) - length(m, x, v), rounding, 64.0);
        assert_rounding(&format!("{m}, way"), m.distance(x, y) - t * length(m, x, v), rounding, 64.0);
    }

    /// d/dt(g_ii ẏ^i) = ½ ∂_i g_jj (ẏ^j)², in charts: with the metric of the chart, which exp never used.
    pub fn the_exponential_obeys_the_geodesic_equation(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, v, .. } = place(m, &g);
        let t = g.random_rows(Draw::Uniform, 4, ROWS, []);
        let y = m.to_chart(x + m.exp_delta(x, (0.5 * t).expand(-1) * v), m.choose_chart(x));
        let speed = along(y, t, t.like(1.0));
        let force = along(speed / m.metric(y).inverse, t, t.like(1.0));
        let kinetic = 0.5 * (speed.stop_gradient().square() / m.metric(y).inverse).sum(-1);
        let pull = grad(kinetic, &[y])[0];
        let scale = 1.0 + kinetic * m.metric(y).inverse.recip().max_over(-1);
        assert_rounding(&m.to_string(), euclidean(force - pull), scale, 64.0);
    }

    pub fn charts_are_inverse_to_their_points(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, y, .. } = place(m, &g);
        let choice = m.choose_chart(x);
        assert_eq!(choice.shape().dims, [m.charts()], "{m}");
        let back = m.from_chart(m.to_chart(x, choice), choice);
        assert_rounding(&format!("{m}, points"), m.distance(back, x), stiffness(m, x), 8.0);
        // In the chart of another point, which may be the one that is far away.
        let away = m.to_chart(y, choice);
        let again = m.to_chart(m.from_chart(away, choice), choice);
        // On a sphere y = a/(1 + b), where b is rounded to ε and 1 + b = 2/(1 + |y|²).
        let scale = (1.0 + away.square().sum(-1)) * (1.0 + away.square().sum(-1)).sqrt();
        assert_rounding(&format!("{m}, coordinates"), euclidean(again - away), scale, 8.0);
        let settled = m.settle(x);
        assert_rounding(&format!("{m}, settled points stay"), m.distance(settled, x), stiffness(m, x), 4.0);
    }

    /// ⟨∂_i x, ∂_j x⟩ = δ_ij/g^{ii}: the derivative of the chart, in the metric of the embedding.
    pub fn the_metric_of_the_chart_is_pulled_back(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, .. } = place(m, &g);
        let choice = m.choose_chart(x);
        let y = m.to_chart(x, choice);
        let x = m.from_chart(y, choice);
        let inverse = m.metric(y).inverse;
        let columns: Vec<Expr> = (0..m.dim()).map(|i| along(x, y, direction(y, i))).collect();
        for i in 0..m.dim() {
            for j in 0..=i {
                let expected = if i == j { inverse.at(-1, i).recip() } else { g.scalar(0.0) };
                let scale = (inverse.at(-1, i) * inverse.at(-1, j)).rsqrt();
                let error = m.inner(x, columns[i], columns[j]) - expected;
                assert_rounding(&format!("{m}, g_{i}{j}"), error, scale * stiffness(m, x), 16.0);
            }
        }
    }

    /// log det G = −Σ log g^{ii}, ∂_j g^{ij} and b^i = ½ g^{ii} ∂_i log det G + ∂_i g^{ii} = Δ_g y^i, by autodiff.
    pub fn closed_forms_of_the_chart_follow_from_the_inverse_metric(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, .. } = place(m, &g);
        let y = m.to_chart(x, m.choose_chart(x));
        let metric = m.metric(y);
        let log_det = -metric.inverse.log().sum(-1);
        let rounding = stiffness(m, x);
        assert_rounding(&format!("{m}, log det G"), metric.log_det - log_det, rounding * m.dim() as f64, 8.0);
        let slope = grad(log_det, &[y])[0];
        for i in 0..m.dim() {
            let own = metric.inverse.at(-1, i);
            let divergence = along(own, y, direction(y, i));
            let brownian = 0.5 * own * slope.at(-1, i) + divergence;
            let scale = m.dim() as f64 * rounding;
            assert_rounding(&format!("{m}, ∂g, {i}"), metric.divergence.at(-1, i) - divergence, scale, 8.0);
            assert_rounding(&format!("{m}, b, {i}"), metric.brownian.at(-1, i) - brownian, scale, 8.0);
        }
    }

    pub fn grids_know_the_volume_and_normalise_the_base_law(m: &dyn Manifold) {
        let compact = m.volume().is_some();
        let Some(grid) = m.grid(if compact { 8 } else { 48 }, 8.5) else {
            assert!(m.dim() > 3, "{m} has a grid");
            return;
        };
        let rows = grid.weights.len();
        let g = Graph::new();
        let x = g.input_rows("x", rows, [m.ambient()]);
        let found = values(&[(-m.base_energy(x)).exp()], &[("x", &grid.points)], SEED);
        let mass: Vec<f64> = grid.weights.iter().zip(&found[0]).map(|(w, p)| w * p).collect();
        assert!(within_ulps(sum(&mass), 1.0, 64.0), "{m}: the base law has mass {}", sum(&mass));
        if let Some(volume) = m.volume() {
            assert!(within_ulps(sum(&grid.weights), volume, 64.0), "{m}: {} is not {volume}", sum(&grid.weights));
        }
        for point in grid.points.chunks(m.ambient()).step_by(rows / 50 + 1) {
            m.check(point).unwrap_or_else(|why| panic!("{m}, grid: {why}"));
        }
    }

    /// E[Δf − ⟨grad U, grad f⟩] = 0 for the law e^{−U} of [`Manifold::sample_base`], and not for one moved along grad f.
    pub fn the_base_law_is_the_one_of_its_energy(m: &dyn Manifold) {
        for pitch in [0.7, 1.9] {
            let stein = |push: f64| {
                let g = Graph::new();
                let x = m.sample_base(&g, 20_000, 1);
                let gradient = m.gradient(x, grad(wave(m, x, pitch), &[x])[0]);
                let x = m.exp(x, push * gradient).stop_gradient();
                values(&[generator(m, x, |x| wave(m, x, pitch), |x| m.base_energy(x))], &[], SEED)[0].clone()
            };
            assert!(within_sigma(&format!("{m}, base law"), &stein(0.0), 0.0, 4.0));
            assert!(!within_sigma(&format!("{m}, base law moved"), &stein(0.4), 0.0, 4.0));
        }
    }

    /// Cov⟨ξ, u⟩ = |u|²: exactly, by the normals' unit vectors; and for the numbers that are drawn.
    pub fn tangent_normals_have_the_covariance_of_the_metric(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, .. } = place(m, &g);
        let (u, w) = (tangent(m, x, 4), tangent(m, x, 5));
        let term = |k| {
            let xi = m.tangent_normal(x, direction(x, k));
            m.inner(x, xi, u) * m.inner(x, xi, w)
        };
        let covariance = (1..m.ambient()).map(term).fold(term(0), |a, b| a + b);
        assert_rounding(&m.to_string(), covariance - m.inner(x, u, w), stiffness(m, x) + 6.25, 16.0);
        let sampled = |scale: f64| {
            let g = Graph::new();
            let x = m.sample_base(&g, 20_000, 1);
            let xi = m.tangent_normal(x, scale * g.normal_like(2, x));
            values(&[m.inner(x, xi, xi)], &[], SEED)[0].clone()
        };
        let n = m.dim() as f64;
        assert!(within_sigma(&format!("{m}, |ξ|²"), &sampled(1.0), n, 4.0));
        assert!(!within_sigma(&format!("{m}, |ξ|², noise ×1.1"), &sampled(1.1), n, 4.0));
    }

    /// Where points meet, nothing is 0/0: values and two derivatives are finite.
    pub fn derivatives_are_finite_where_points_meet(m: &dyn Manifold) {
        let g = Graph::new();
        let x = m.sample_base(&g, ROWS, 1);
        let v = g.input_rows("v", ROWS, [m.ambient()]);
        let y = x + v;
        let functions = [m.exp_delta(x, v), m.exp(x, v), m.log(x, y), m.distance(x, y).expand(-1), m.log(y, x)];
        for (k, f) in functions.into_iter().enumerate() {
            let first = grad(f, &[v])[0];
            let second = grad(first, &[v])[0];
            let found = values(&[f, first, second], &[("v", &vec![0.0; ROWS * m.ambient()])], SEED);
            assert!(found.iter().flatten().all(|a| a.is_finite()), "{m}, function {k}: {found:?}");
        }
        // exp_x(v) = x + v + O(|v|²): its derivative at zero is the identity on tangent vectors.
        let u = tangent(m, x, 2);
        let pushed = along(m.exp_delta(x, v), v, u);
        let zero = vec![0.0; ROWS * m.ambient()];
        let error = &values(&[pushed - u], &[("v", &zero)], SEED)[0];
        assert!(worst(error) <= 8.0 * f64::EPSILON, "{m}: d exp(0) is off by {}", worst(error));
    }

    /// In f32, exp_x(v) − x keeps its digits for |v| down to 1e-8, below the rounding of x itself.
    pub fn short_steps_keep_their_digits_in_single_precision(m: &dyn Manifold) {
        let g = Graph::new();
        let Place { x, v, .. } = place(m, &g);
        let (at, step) = (g.input_rows("at", ROWS, [m.ambient()]), g.input_rows("step", ROWS, [m.ambient()]));
        let delta = m.exp_delta(at, step);
        let places = values(&[x, v, stiffness(m, x)], &[], SEED);
        for size in [1e-2, 1e-5, 1e-8] {
            let single = |values: &[f64], size: f64| values.iter().map(|&a| (size * a) as f32).collect::<Vec<f32>>();
            let (x, v) = (single(&places[0], 1.0), single(&places[1], size));
            let mut program = g.compile::<f32>(&[delta], &[], &Options { threads: 1, ..Options::default() });
            program.run(&mut State::new(1), &[("at", &x), ("step", &v)], Clock { seed: 0, step: 0 });
            let double = |values: &[f32]| values.iter().map(|&a| a as f64).collect::<Vec<f64>>();
            let exact = &values(&[delta], &[("at", &double(&x)), ("step", &double(&v))], SEED)[0];
            let rows = program.output(0).chunks(m.ambient()).zip(exact.chunks(m.ambient()));
            for ((got, exact), stiffness) in rows.zip(&places[2]) {
                let rounding = 8.0 * f32::EPSILON as f64 * stiffness * worst(exact);
                let off: Vec<f64> = got.iter().zip(exact).map(|(&a, b)| a as f64 - b).collect();
                assert!(worst(&off) <= rounding, "{m}, |v| ~ {size}: {got:?} is not {exact:?}");
            }
        }
    }
}

for_every_manifold! {
    the_logarithm_inverts_the_exponential
    the_exponential_inverts_the_logarithm
    the_logarithm_is_as_long_as_the_distance
    the_distance_is_a_metric
    the_projection_is_idempotent_and_self_adjoint
    the_gradient_is_dual_to_the_derivative
    the_exponential_runs_at_constant_speed
    the_exponential_obeys_the_geodesic_equation
    charts_are_inverse_to_their_points
    the_metric_of_the_chart_is_pulled_back
    closed_forms_of_the_chart_follow_from_the_inverse_metric
    grids_know_the_volume_and_normalise_the_base_law
    the_base_law_is_the_one_of_its_energy
    tangent_normals_have_the_covariance_of_the_metric
    derivatives_are_finite_where_points_meet
    short_steps_keep_their_digits_in_single_precision
}

// What the defaults of [`Manifold`] derive obeys the same laws.
for_bare_manifolds! {
    the_logarithm_is_as_long_as_the_distance
    the_distance_is_a_metric
    the_projection_is_idempotent_and_self_adjoint
    the_gradient_is_dual_to_the_derivative
    charts_are_inverse_to_their_points
    the_metric_of_the_chart_is_pulled_back
    the_base_law_is_the_one_of_its_energy
    tangent_normals_have_the_covariance_of_the_metric
    derivatives_are_finite_where_points_meet
}
