//! Facts about manifolds: F32 (worked charts, docs/math §3.2, §3.4, §3.6), F36 (uniform laws and volumes), and
//! the golden step on S² as far as it is geometry.

use crate::support::geometry::{along, direction, generator};
use crate::support::values;
use minvel::Manifold;
use minvel::manifold::{Euclidean, Hyperbolic, So3, Sphere, Torus, from_hyperboloid, to_hyperboloid};
use minvel_engine::{Expr, Graph, grad};
use minvel_testing::{sum, within_digits, within_sigma, within_ulps};
use std::f64::consts::PI;

const SEED: u64 = 3;

fn assert_printed(what: &str, got: &[f64], printed: &[f64], digits: i32) {
    assert_eq!(got.len(), printed.len(), "{what}");
    for (got, printed) in got.iter().zip(printed) {
        assert!(within_digits(*got, *printed, digits), "{what}: {got}, printed {printed}");
    }
}

/// Flip, coordinates, g^{-1}, log det G, ∂g, ½g^{-1}∂ log det G and b at a point of a manifold with conformal chart.
fn chart(m: &dyn Manifold, point: &[f64]) -> [Vec<f64>; 7] {
    let g = Graph::new();
    let x = g.input_rows("x", 1, [m.ambient()]);
    let choice = m.choose_chart(x);
    let y = m.to_chart(x, choice);
    let metric = m.metric(y);
    let tilt = 0.5 * metric.inverse * grad(metric.log_det, &[y])[0];
    let outputs = [choice, y, metric.inverse, metric.log_det, metric.divergence, tilt, metric.brownian];
    values(&outputs, &[("x", point)], SEED).try_into().expect("seven outputs")
}

/// A vector whose first entries are given, the rest zero.
fn padded(first: &[f64], len: usize) -> Vec<f64> {
    (0..len).map(|i| first.get(i).copied().unwrap_or(0.0)).collect()
}

#[test]
fn fact_32_stereographic_charts_have_the_printed_numbers() {
    struct Row {
        point: Vec<f64>,
        flip: f64,
        x: Vec<f64>,
        log_det: f64,
        divergence: Vec<f64>,
        tilt: Vec<f64>,
        brownian: Vec<f64>,
        printed_sign: Vec<f64>,
    }
    let axis = |n: usize, log_det, tilt, brownian, printed_sign| Row {
        point: [vec![0.6], vec![0.0; n - 1], vec![0.8]].concat(),
        flip: 1.0,
        x: padded(&[1.0 / 3.0], n),
        log_det,
        divergence: padded(&[0.3703703704], n),
        tilt: padded(&[tilt], n),
        brownian: padded(&[brownian], n),
        printed_sign: padded(&[printed_sign], n),
    };
    let table = [
        axis(2, 2.3511466596, -0.3703703704, 0.0, 0.7407407407),
        Row {
            point: vec![0.36, 0.48, -0.8],
            flip: -1.0,
            x: vec![-0.2, -4.0 / 15.0],
            log_det: 2.3511466596,
            divergence: vec![-2.0 / 9.0, -8.0 / 27.0],
            tilt: vec![2.0 / 9.0, 8.0 / 27.0],
            brownian: vec![0.0, 0.0],
            printed_sign: vec![-4.0 / 9.0, -16.0 / 27.0],
        },
        axis(1, 1.1755733298, -0.1851851852, 0.1851851852, 0.5555555556),
        axis(8, 9.4045866384, -1.4814814815, -1.1111111111, 1.8518518519),
    ];
    for row in table {
        let n = row.x.len();
        let [flip, x, inverse, log_det, divergence, tilt, brownian] = chart(&Sphere(n), &row.point);
        assert_eq!(flip, [row.flip], "S^{n}");
        assert_printed("x", &x, &row.x, 10);
        assert_printed("g⁻¹", &inverse, &vec![0.3086419753; n], 10);
        assert_printed("log det G", &log_det, &[row.log_det], 10);
        assert_printed("∂g", &divergence, &row.divergence, 10);
        assert_printed("½g⁻¹∂ log det G", &tilt, &row.tilt, 10);
        assert_printed("b", &brownian, &row.brownian, 10);
        let wrong: Vec<f64> = divergence.iter().zip(&tilt).map(|(d, t)| d - t).collect();
        assert_printed("b with the printed sign", &wrong, &row.printed_sign, 10);
        assert!(!within_digits(wrong[0], brownian[0], 2), "the printed sign is another drift on S^{n}");
    }
}

#[test]
fn fact_32_the_ball_has_the_printed_numbers() {
    let [_, x, inverse, log_det, divergence, _, brownian] = chart(&Hyperbolic(2), &[0.3, 0.4]);
    assert_printed("x", &x, &[0.3, 0.4], 15);
    assert_printed("g", &[1.0 / inverse[0], 1.0 / inverse[1]], &[7.1111111111; 2], 10);
    assert_printed("log det G", &log_det, &[3.9233170120], 10);
    assert_printed("∂g", &divergence, &[-0.225, -0.3], 15);
    assert_printed("b on H²", &brownian, &[0.0, 0.0], 15);
    let [.., brownian] = chart(&Hyperbolic(3), &[0.3, 0.4, 0.0]);
    assert_printed("b on H³", &brownian, &[0.1125, 0.15, 0.0], 15);
}

#[test]
fn fact_32_ball_and_hyperboloid_are_the_same_points() {
    let g = Graph::new();
    let x = g.input_rows("x", 1, [2]);
    let there = to_hyperboloid(x);
    let found = values(&[there, from_hyperboloid(there)], &[("x", &[0.3, 0.4])], SEED);
    assert_printed("hyperboloid", &found[0], &[5.0 / 3.0, 0.8, 16.0 / 15.0], 15);
    assert_printed("ball", &found[1], &[0.3, 0.4], 15);
    // −X₀² + |X⃗|² = −1.
    assert!(within_ulps(found[0][0].powi(2) - found[0][1].powi(2) - found[0][2].powi(2), 1.0, 8.0));
}

/// log det G, ∂_j g^{ij} and b at given coordinates, from the inverse metric (row-major) and log det G by autodiff.
fn from_inverse(
    at: &[f64],
    inverse: impl for<'g> Fn(&[Expr<'g>]) -> Vec<Expr<'g>>,
    log_det: impl for<'g> Fn(&[Expr<'g>]) -> Expr<'g>,
) -> (f64, Vec<f64>, Vec<f64>) {
    let n = at.len();
    let g = Graph::new();
    let y = g.input_rows("y", 1, [n]);
    let parts: Vec<Expr> = (0..n).map(|i| y.at(-1, i)).collect();
    let (inverse, log_det) = (inverse(&parts), log_det(&parts));
    let slope = grad(log_det, &[y])[0];
    let mut outputs = vec![log_det];
    for i in 0..n {
        let divergence =
            (0..n).map(|j| along(inverse[i * n + j], y, direction(y, j))).reduce(|a, b| a + b).expect("n ≥ 1");
        let tilt = (0..n).map(|j| 0.5 * inverse[i * n + j] * slope.at(-1, j)).reduce(|a, b| a + b).expect("n ≥ 1");
        outputs.extend([divergence, divergence + tilt]);
    }
    let found: Vec<f64> = values(&outputs, &[("y", at)], SEED).into_iter().flatten().collect();
    (found[0], found[1..].iter().step_by(2).copied().collect(), found[2..].iter().step_by(2).copied().collect())
}

#[test]
fn fact_32_charts_that_are_not_conformal_have_the_printed_drift() {
    // Spherical angles: b = (cot ϑ, 0).
    let theta = 0.7f64;
    let (log_det, divergence, b) = from_inverse(
        &[theta, 1.0],
        |y| vec![y[0].like(1.0), y[0].like(0.0), y[0].like(0.0), y[0].sin().square().recip()],
        |y| 2.0 * y[0].sin().log(),
    );
    assert!(within_ulps(log_det, 2.0 * theta.sin().ln(), 4.0));
    assert_printed("∂g", &divergence, &[0.0, 0.0], 15);
    assert_printed("b", &b, &[1.0 / theta.tan(), 0.0], 14);
    // Torus of revolution, R = 2, r = 1, at v = 0.5.
    let (log_det, divergence, b) = from_inverse(
        &[0.3, 0.5],
        |y| vec![(2.0 + y[1].cos()).powi(-2), y[0].like(0.0), y[0].like(0.0), y[0].like(1.0)],
        |y| 2.0 * (2.0 + y[1].cos()).log(),
    );
    assert_printed("g_φφ, log det G", &[log_det.exp(), log_det], &[8.2804814005, 2.1139011069], 10);
    assert_printed("∂g", &divergence, &[0.0, 0.0], 15);
    assert_printed("b", &b, &[0.0, -0.1666070489], 10);
    // Graph chart of the hyperboloid: G⁻¹ = I + xxᵀ, ∂g = (n+1)x, b = nx.
    let x = [0.8, -0.3, 1.1];
    let (_, divergence, b) = from_inverse(
        &x,
        |y| (0..9).map(|k| y[k / 3] * y[k % 3] + f64::from(k % 4 == 0)).collect(),
        |y| -(y[0].square() + y[1].square() + y[2].square()).log1p(),
    );
    assert_printed("∂g", &divergence, &x.map(|x| 4.0 * x), 14);
    assert_printed("b", &b, &x.map(|x| 3.0 * x), 14);
    // Upper half space: b = (0, 0, (2 − n)h).
    let (_, _, b) = from_inverse(
        &[0.2, 0.4, 0.9],
        |y| (0..9).map(|k| if k % 4 == 0 { y[2].square() } else { y[2].like(0.0) }).collect(),
        |y| -6.0 * y[2].log(),
    );
    assert_printed("b", &b, &[0.0, 0.0, -0.9], 15);
}

#[test]
fn fact_32_flat_charts_have_no_drift() {
    for m in [&Euclidean(3) as &dyn Manifold, &Torus(3)] {
        let [_, y, inverse, log_det, divergence, _, brownian] = chart(m, &[0.3, -0.4, 2.0]);
        assert_eq!((y, inverse, log_det), (vec![0.3, -0.4, 2.0], vec![1.0; 3], vec![0.0]), "{m}");
        assert_eq!((divergence, brownian), (vec![0.0; 3], vec![0.0; 3]), "{m}");
    }
}

/// docs/math §3.2, §3.5, §3.6: Δx_i = −n x_i on the sphere, ΔX₀ = nX₀ and |grad X₀|² = X₀² − 1 on the hyperboloid.
#[test]
fn coordinate_functions_are_eigenfunctions_of_the_laplacian() {
    for n in [1, 2, 3, 8] {
        let m = Sphere(n);
        let g = Graph::new();
        let x = m.sample_base(&g, 20, 1);
        let error = generator(&m, x, |x| x.at(-1, 0), |x| 0.0 * x.at(-1, 0)) + n as f64 * x.at(-1, 0);
        let worst = values(&[error], &[], SEED)[0].iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        assert!(worst <= 64.0 * f64::EPSILON, "S^{n}: {worst}");
    }
    for n in [2, 3] {
        let m = Hyperbolic(n);
        let g = Graph::new();
        let x = m.sample_base(&g, 20, 1);
        let time = to_hyperboloid(x).at(-1, 0);
        let laplacian = generator(&m, x, |x| to_hyperboloid(x).at(-1, 0), |x| 0.0 * x.at(-1, 0));
        let slope = m.gradient(x, grad(time, &[x])[0]);
        // A point rounded by one part in 1/ε moves X₀ by X₀ of them.
        let errors = [
            (laplacian / time - n as f64) / time,
            (m.inner(x, slope, slope) / time.square() - 1.0 + time.powi(-2)) / time,
        ];
        for error in values(&errors, &[], SEED).iter().flatten() {
            assert!(error.abs() <= 64.0 * f64::EPSILON, "H^{n}: {error}");
        }
    }
}

/// Where formulas by arcsin or arcosh lose half of the digits.
#[test]
fn distances_keep_their_digits_at_antipodes_between_neighbours_and_far_away() {
    let distance = |m: &dyn Manifold, x: &[f64], y: &[f64]| {
        let g = Graph::new();
        let (a, b) = (g.input_rows("x", 1, [m.ambient()]), g.input_rows("y", 1, [m.ambient()]));
        let v = m.log(a, b);
        let found = values(&[m.distance(a, b), m.inner(a, v, v).sqrt()], &[("x", x), ("y", y)], SEED);
        assert!(within_ulps(found[1][0] / found[0][0], 1.0, 8.0), "{m}: the logarithm is {} long", found[1][0]);
        found[0][0]
    };
    for h in [1e-3f64, 1e-7, 1e-12] {
        let (sin, cos) = h.sin_cos();
        let far = distance(&Sphere(1), &[1.0, 0.0], &[-cos, sin]);
        assert!(within_ulps(far, PI - h, 4.0), "antipodes: {far}, not π − {h}");
        let near = distance(&Sphere(1), &[1.0, 0.0], &[cos, sin]);
        assert!(within_ulps(near / h, 1.0, 4.0), "neighbours: {near}, not {h}");
        let rotation = distance(&So3, &[0.0, 0.0, 0.0, 1.0], &[sin, 0.0, 0.0, -cos]);
        assert!(within_ulps(rotation / h, 2.0, 4.0), "rotations: {rotation}, not 2·{h}");
        // Beside the origin, where coordinates are not rounded: 2 artanh h.
        let ball = distance(&Hyperbolic(2), &[0.0, 0.0], &[h, 0.0]);
        assert!(within_ulps(ball / h, 2.0 * h.atanh() / h, 8.0), "ball: {ball}");
    }
    // Opposite points at ρ = 5 are 10 apart; rounding 1 − r² there costs e⁵/4 rounding errors.
    let r = 2.5f64.tanh();
    let far = distance(&Hyperbolic(2), &[r, 0.0], &[-r, 0.0]);
    assert!(within_ulps(far, 10.0, 5f64.exp()), "{far} is not 10");
}

#[test]
fn fact_36_volumes_are_the_known_ones() {
    let spheres = [2.0 * PI, 4.0 * PI, 2.0 * PI.powi(2), 8.0 * PI.powi(2) / 3.0, PI.powi(3), 16.0 * PI.powi(3) / 15.0];
    for (n, &volume) in (1..).zip(&spheres) {
        assert!(within_ulps(Sphere(n).volume().unwrap(), volume, 4.0), "S^{n}");
    }
    assert!(within_ulps(Sphere(8).volume().unwrap(), 32.0 * PI.powi(4) / 105.0, 4.0));
    assert!(within_ulps(Torus(2).volume().unwrap(), 4.0 * PI * PI, 4.0));
    assert!(within_ulps(So3.volume().unwrap(), 8.0 * PI * PI, 4.0));
    assert_eq!((Hyperbolic(2).volume(), Euclidean(1).volume()), (None, None));
}

/// |grad E|² − 2ΔE of E = −κ μ·x, by autodiff, at points given or drawn.
fn objective<'g>(m: &Sphere, x: Expr<'g>, kappa: f64) -> Expr<'g> {
    let energy = |x: Expr<'g>| -kappa * (0.6 * x.at(-1, 0) + 0.8 * x.at(-1, 1));
    // Δf − ⟨grad U, grad f⟩ with U = E/2 and f = −2E.
    generator(m, x, |x| -2.0 * energy(x), |x| 0.5 * energy(x))
}

#[test]
fn fact_36_the_objective_of_a_uniform_law_is_kappa_squared_n_over_n_plus_one() {
    for n in [1, 2, 3] {
        let m = Sphere(n);
        let grid = m.grid(6, 0.0).expect("n ≤ 3");
        let g = Graph::new();
        let x = g.input_rows("x", grid.weights.len(), [n + 1]);
        let pointwise = &values(&[objective(&m, x, 3.0)], &[("x", &grid.points)], SEED)[0];
        let terms: Vec<f64> = pointwise.iter().zip(&grid.weights).map(|(f, w)| f * w).collect();
        let mean = sum(&terms) / m.volume().unwrap();
        assert!(within_ulps(mean, 9.0 * n as f64 / (n + 1) as f64, 64.0), "S^{n}: {mean}");
    }
    // On S⁸ from samples, and not from samples of a law that is stretched along an axis.
    let sampled = |stretch: f64| {
        let m = Sphere(8);
        let g = Graph::new();
        let scales: Vec<f64> = (0..9).map(|i| if i < 2 { stretch } else { 1.0 }).collect();
        let x = m.settle(m.sample_base(&g, 40_000, 1) * g.table(&scales, [9])).stop_gradient();
        // Both ends of a diameter: the term −2ΔE is odd, and would hide the rest in its variance.
        let pair = 0.5 * (objective(&m, x, 3.0) + objective(&m, (-x).stop_gradient(), 3.0));
        values(&[pair], &[], SEED)[0].clone()
    };
    assert!(within_sigma("uniform on S⁸", &sampled(1.0), 8.0, 4.0));
    assert!(!within_sigma("stretched by 1.1", &sampled(1.1), 8.0, 4.0));
}

#[test]
fn the_golden_step_on_the_sphere_follows_from_the_ambient_gradient() {
    // docs/math §7.2: the network enters the step only by its ambient gradient, so a linear energy has the same step.
    let m = Sphere(2);
    let g = Graph::new();
    let x = g.input_rows("x", 1, [3]);
    let slope = g.table(&[-0.8592135443611326, 0.20755706054493767, 0.8099348437092904], [3]);
    let choice = m.choose_chart(x);
    let y = m.to_chart(x, choice);
    let energy = m.from_chart(y, choice).dot(slope);
    let (metric, derivative) = (m.metric(y), grad(energy, &[y])[0]);
    let drift = metric.brownian - 0.5 * metric.inverse * derivative;
    let noise = g.table(&[0.5, -1.2], [2]);
    let moved = y + 0.01 * drift + 0.02f64.sqrt() * metric.inverse.sqrt() * noise;
    let gradient = m.gradient(x, slope.broadcast(&x.shape()));
    let outputs = [y, derivative, drift, moved, m.from_chart(moved, choice), m.inner(x, gradient, gradient)];
    let found = values(&outputs, &[("x", &[0.36, 0.48, -0.8])], SEED);
    let golden: [&[f64]; 6] = [
        &[-0.2, -0.26666666666666666],
        &[0.9462583858393809, -1.1740373676617648],
        &[-0.14602752867891683, 0.1811786061206428],
        &[-0.16217656522086982, -0.3591357847636666],
        &[0.2807572195256445, 0.6217295589229309, -0.7311824254218142],
        &[0.7017804547646656],
    ];
    for (found, golden) in found.iter().zip(golden) {
        for (a, b) in found.iter().zip(golden) {
            assert!(within_ulps(*a, *b, 8.0), "{found:?} is not {golden:?}");
        }
    }
}
