//! Normal coordinates, and densities of local kernels: against the manifolds, quadrature, differences and their own draws.

use crate::clumps::point;
use crate::support::values;
use minvel::Manifold;
use minvel::density::{Bump, Density, Family, Kind, LocalKernels, LocalSettings};
use minvel::manifold::{Space, parse};
use minvel::train::Context;
use minvel_engine::Graph;
use minvel_engine::random::{Key, Stream};
use minvel_testing::{estimate, sum, within_sigma, within_ulps};
use std::f64::consts::{PI, TAU};
use std::sync::Arc;

pub const SPACES: [&str; 15] = [
    "euclidean:3",
    "torus:1",
    "torus:4",
    "sphere:1",
    "sphere:2",
    "sphere:3",
    "sphere:7",
    "projective:1",
    "projective:2",
    "projective:4",
    "hyperbolic:1",
    "hyperbolic:2",
    "hyperbolic:4",
    "so3",
    "product(sphere:2,hyperbolic:2,torus:1,so3,euclidean:1)",
];

/// With what integrates kernels of widths from 0.1 to 0.4 on them.
const GRIDS: [(&str, usize); 9] = [
    ("sphere:1", 200),
    ("sphere:2", 100),
    ("projective:1", 400),
    ("projective:2", 200),
    ("torus:2", 100),
    ("euclidean:2", 200),
    ("hyperbolic:2", 300),
    ("so3", 64),
    ("product(sphere:1,euclidean:1)", 200),
];
const RADIUS: f64 = 8.0;

fn stream(seed: u64) -> Stream {
    Stream::new(Key::new(seed, 0), 7)
}

/// Coordinates that stay clear of the cut locus.
fn coordinates(manifold: &dyn Manifold, stream: &mut Stream) -> Vec<f64> {
    let of = |space: Space| {
        let v: Vec<f64> = (0..space.dim()).map(|_| stream.normal()).collect();
        let length = match space {
            Space::Torus(_) => v.iter().fold(0f64, |a, v| a.max(v.abs())),
            _ => v.iter().map(|v| v * v).sum::<f64>().sqrt(),
        };
        let to = 0.9 * space.injectivity().min(3.0) * stream.uniform();
        v.into_iter().map(|v| v * to / length).collect::<Vec<f64>>()
    };
    manifold.spaces().unwrap().into_iter().flat_map(of).collect()
}

fn from_normal(spaces: &[Space], c: &[f64], v: &[f64]) -> Vec<f64> {
    let (mut x, mut from) = (vec![0.0; c.len()], 0);
    let mut at = 0;
    for s in spaces {
        let (m, n) = (s.ambient(), s.dim());
        s.from_normal(&c[at..at + m], &v[from..from + n], &mut x[at..at + m]);
        (at, from) = (at + m, from + n);
    }
    x
}

/// v and log|dvol/dv|.
fn to_normal(spaces: &[Space], c: &[f64], x: &[f64]) -> (Vec<f64>, f64) {
    let (mut v, mut from, mut at, mut log) = (vec![0.0; spaces.iter().map(|s| s.dim()).sum()], 0, 0, 0.0);
    for s in spaces {
        let (m, n) = (s.ambient(), s.dim());
        log += s.to_normal(&c[at..at + m], &x[at..at + m], &mut v[from..from + n]);
        (at, from) = (at + m, from + n);
    }
    (v, log)
}

/// How much rounding errors grow: towards the edge of the ball as e^{distance}.
fn condition(spaces: &[Space]) -> f64 {
    let hyperbolic = spaces.iter().any(|s| matches!(s, Space::Hyperbolic(_)));
    if hyperbolic { f64::exp(2.0 + 2.7) } else { 1.0 }
}

/// Geodesic distances of pairs of points.
fn distances(manifold: &dyn Manifold, x: &[f64], y: &[f64]) -> Vec<f64> {
    let g = Graph::new();
    let (m, rows) = (manifold.ambient(), x.len() / manifold.ambient());
    let (a, b) = (g.input_rows("x", rows, [m]), g.input_rows("y", rows, [m]));
    values(&[manifold.distance(a, b)], &[("x", x), ("y", y)], 1).remove(0)
}

#[test]
fn normal_coordinates_lead_there_and_back_along_the_shortest_path() {
    for name in SPACES {
        let manifold = parse(name).unwrap();
        let spaces = manifold.spaces().unwrap();
        let mut stream = stream(1);
        let ulps = 256.0 * condition(&spaces);
        let (mut centres, mut ends, mut lengths) = (vec![], vec![], vec![]);
        for k in 0..200 {
            let mut c = point(&*manifold, 2.0, &mut stream);
            if k < 2 && matches!(spaces[0], Space::Sphere(_) | Space::Projective(_) | Space::So3) {
                // the poles, where the frame is that of the coordinates
                let m = spaces[0].ambient();
                c[..m].fill(0.0);
                c[m - 1] = 1.0 - 2.0 * k as f64;
            }
            let v = coordinates(&*manifold, &mut stream);
            let x = from_normal(&spaces, &c, &v);
            manifold.check(&x).unwrap_or_else(|why| panic!("{name}: {why}"));
            let (back, _) = to_normal(&spaces, &c, &x);
            for (got, expected) in back.iter().zip(&v) {
                assert!(within_ulps(*got, *expected, ulps), "{name}: {back:?}, not {v:?}");
            }
            lengths.push(v.iter().map(|v| v * v).sum::<f64>().sqrt());
            centres.extend(c);
            ends.extend(x);
        }
        for (got, length) in distances(&*manifold, &centres, &ends).iter().zip(&lengths) {
            assert!(within_ulps(*got, *length, ulps), "{name}: distance {got}, |v| = {length}");
            assert!(!within_ulps(*got, 1.000001 * length, ulps), "{name}: the comparison has no power");
        }
    }
}

#[test]
fn a_point_has_coordinates_zero_about_itself() {
    for name in SPACES {
        let manifold = parse(name).unwrap();
        let spaces = manifold.spaces().unwrap();
        let c = point(&*manifold, 2.0, &mut stream(2));
        let (v, log) = to_normal(&spaces, &c, &c);
        assert!(v.iter().chain([&log]).all(|v| within_ulps(*v, 0.0, 8.0)), "{name}: {v:?}, {log}");
    }
}

#[test]
fn the_chord_is_at_most_the_distance_and_nearly_that_for_near_points() {
    for name in SPACES {
        let manifold = parse(name).unwrap();
        let spaces = manifold.spaces().unwrap();
        let mut stream = stream(12);
        let chord = |c: &[f64], x: &[f64]| {
            let mut at = 0;
            let part = |s: &Space| {
                at += s.ambient();
                s.chord_squared(&c[at - s.ambient()..at], &x[at - s.ambient()..at])
            };
            spaces.iter().map(part).sum::<f64>()
        };
        for scale in [1.0, 1e-3, 1e-7] {
            for _ in 0..50 {
                let c = point(&*manifold, 2.0, &mut stream);
                let v: Vec<f64> = coordinates(&*manifold, &mut stream).iter().map(|v| scale * v).collect();
                let (square, length) = (chord(&c, &from_normal(&spaces, &c, &v)), v.iter().map(|v| v * v).sum::<f64>());
                // Points are rounded; the chord falls short of the distance r by less than r³/12 on a unit sphere.
                let rounding = 64.0 * condition(&spaces) * f64::EPSILON * length.sqrt();
                assert!(square <= length + rounding, "{name}: chord² {square}, distance² {length}");
                assert!(
                    square >= length - rounding - length.powi(2) / 6.0,
                    "{name}: chord² {square}, distance² {length}"
                );
            }
        }
        let c = point(&*manifold, 2.0, &mut stream);
        assert_eq!(chord(&c, &c), 0.0, "{name}: a point is at itself");
    }
}

/// log|det| by elimination with pivots.
fn log_det(mut a: Vec<f64>, n: usize) -> f64 {
    let mut log = 0.0;
    for k in 0..n {
        let top = (k..n).max_by(|i, j| a[i * n + k].abs().total_cmp(&a[j * n + k].abs())).unwrap();
        (0..n).for_each(|j| a.swap(k * n + j, top * n + j));
        log += a[k * n + k].abs().ln();
        for i in k + 1..n {
            let factor = a[i * n + k] / a[k * n + k];
            (k..n).for_each(|j| a[i * n + j] -= factor * a[k * n + j]);
        }
    }
    log
}

/// Differences of order four.
fn slope(step: f64, f: impl Fn(f64) -> f64) -> f64 {
    (8.0 * (f(step) - f(-step)) - f(2.0 * step) + f(-2.0 * step)) / (12.0 * step)
}

fn wrapped(angle: f64) -> f64 {
    angle - TAU * (angle / TAU).round()
}

/// dx along coordinate j at v, number by number; angles do not jump.
fn velocity(spaces: &[Space], c: &[f64], v: &[f64], j: usize, step: f64) -> Vec<f64> {
    let start = from_normal(spaces, c, v);
    let kinds: Vec<bool> =
        spaces.iter().flat_map(|s| std::iter::repeat_n(matches!(s, Space::Torus(_)), s.ambient())).collect();
    let moved = |t: f64| -> Vec<f64> {
        let mut to = v.to_vec();
        to[j] += t;
        let x = from_normal(spaces, c, &to);
        let steps = x.iter().zip(&start).zip(&kinds);
        steps.map(|((x, s), angle)| if *angle { wrapped(x - s) } else { x - s }).collect()
    };
    let at: Vec<Vec<f64>> = [1.0, -1.0, 2.0, -2.0].iter().map(|k| moved(k * step)).collect();
    (0..c.len()).map(|i| (8.0 * (at[0][i] - at[1][i]) - at[2][i] + at[3][i]) / (12.0 * step)).collect()
}

#[test]
fn the_jacobian_is_that_of_the_metric_along_differences() {
    const STEP: f64 = 1e-3;
    for name in SPACES {
        let manifold = parse(name).unwrap();
        let spaces = manifold.spaces().unwrap();
        let (n, m) = (manifold.dim(), manifold.ambient());
        let mut stream = stream(3);
        let curved = spaces.iter().any(|s| s.dim() > 1 && !matches!(s, Space::Euclidean(_) | Space::Torus(_)));
        for _ in 0..20 {
            let c = point(&*manifold, 2.0, &mut stream);
            let v = coordinates(&*manifold, &mut stream);
            let x = from_normal(&spaces, &c, &v);
            let frame: Vec<Vec<f64>> = (0..n).map(|j| velocity(&spaces, &c, &v, j, STEP)).collect();
            let (mut left, mut right) = (vec![], vec![]);
            for j in 0..n {
                for k in 0..n {
                    left.extend_from_slice(&frame[j]);
                    right.extend_from_slice(&frame[k]);
                }
            }
            let g = Graph::new();
            let row = |name: &str| g.input_rows(name, n * n, [m]);
            let inner = manifold.inner(row("x"), row("u"), row("w"));
            let metric = values(&[inner], &[("x", &x.repeat(n * n)), ("u", &left), ("w", &right)], 1).remove(0);
            let expected = 0.5 * log_det(metric, n);
            let (_, got) = to_normal(&spaces, &c, &x);
            // Differences err by step⁴ times a fifth derivative, and by rounding errors over the step; near the cut locus
            // and the edge of the ball both grow.
            let length = v.iter().map(|v| v * v).sum::<f64>().sqrt();
            let allowed = (n as f64) * condition(&spaces) * (STEP.powi(4) + 64.0 * f64::EPSILON / STEP) * 32.0;
            assert!(
                (got - expected).abs() <= allowed,
                "{name}: log|dvol/dv| = {got}, not {expected} at |v| = {length}"
            );
            assert!(!curved || length < 0.3 || expected.abs() > allowed, "{name}: no power against no Jacobian");
        }
    }
}

/// A density with kernels of every kind, by hand, and how its kernels are written down.
struct Case {
    manifold: Arc<dyn Manifold>,
    spaces: Vec<Space>,
    centres: Vec<f64>,
    /// Cholesky factors of each shape and centre, dense.
    factors: Vec<Vec<Vec<f64>>>,
    families: Vec<Family>,
}

impl Case {
    /// Of seven centres; `width` stretches all kernels.
    fn new(name: &str, width: f64) -> Case {
        Case::sized(name, width, 7)
    }

    fn sized(name: &str, width: f64, count: usize) -> Case {
        // as far from the cut locus everywhere
        let spaces = parse(name).unwrap().spaces().unwrap();
        let width = width * spaces.iter().map(|s| s.injectivity() / PI).fold(1.0, f64::min);
        let manifold = parse(name).unwrap();
        let spaces = manifold.spaces().unwrap();
        let (n, mut stream) = (manifold.dim(), stream(4));
        let centres = (0..count).flat_map(|_| point(&*manifold, 2.0, &mut stream)).collect();
        let mut factor = || {
            let mut c = vec![0.0; n * n];
            for a in 0..n {
                (0..a).for_each(|b| c[a * n + b] = 0.1 * width * (stream.uniform() - 0.5));
                c[a * n + a] = width * (0.2 + 0.1 * stream.uniform());
            }
            c
        };
        let factors = (0..2).map(|_| (0..count).map(|_| factor()).collect()).collect();
        let mut kinds = vec![
            (Kind::Fixed { width: 0.35 * width }, 0.3),
            (Kind::Local { shape: 0, factor: 0.5 }, 0.4),
            (Kind::Local { shape: 1, factor: 1.2 }, 0.2),
        ];
        kinds.push(match manifold.volume() {
            Some(_) => (Kind::Uniform, 0.1),
            None => (Kind::Fixed { width: 0.2 * width }, 0.1),
        });
        let families = kinds.into_iter().map(|(kind, share)| Family { kind, share }).collect();
        Case { manifold, spaces, centres, factors, families }
    }

    /// The numbers as a file keeps them.
    fn tensors(&self) -> Vec<(String, Vec<f64>)> {
        let n = self.manifold.dim();
        let mut all = vec![("centres".to_string(), self.centres.clone())];
        for (k, shape) in self.factors.iter().enumerate() {
            let pairs = (0..n).flat_map(|a| (0..=a).map(move |b| (a, b)));
            let entry = |c: &Vec<f64>, a: usize, b: usize| if a == b { 1.0 / c[a * n + a] } else { c[a * n + b] };
            let flat = pairs.flat_map(|(a, b)| shape.iter().map(move |c| entry(c, a, b))).collect();
            all.push((format!("shape{k}"), flat));
            let logs = shape.iter().map(|c| (0..n).map(|a| c[a * n + a].ln()).sum()).collect();
            all.push((format!("log-det{k}"), logs));
        }
        all
    }

    fn density(&self) -> LocalKernels {
        let tensors = self.tensors();
        let find = |name: &str| tensors.iter().find(|t| t.0 == name).map(|t| t.1.as_slice());
        let density = LocalKernels::from_tensors(&self.manifold, &self.families, find).expect("a sound density");
        // All kernels: what leaving some out costs is measured in kernel_sums.rs.
        density.with_tolerance(0.0)
    }

    /// log p by its definition; with coordinates stretched in the exponent only, or without the Jacobian, as twins.
    fn log_density(&self, x: &[f64], stretch: f64, with_jacobian: bool) -> f64 {
        let (m, n) = (self.manifold.ambient(), self.manifold.dim());
        let count = self.centres.len() / m;
        let mut p = 0.0;
        for family in &self.families {
            if family.kind == Kind::Uniform {
                p += family.share / self.manifold.volume().unwrap();
                continue;
            }
            for (i, c) in self.centres.chunks(m).enumerate() {
                let (v, log) = to_normal(&self.spaces, c, x);
                let (mut quadratic, mut scale) = (0.0, 0.0);
                match family.kind {
                    Kind::Local { shape, factor } => {
                        let c = &self.factors[shape][i];
                        let mut y = vec![0.0; n];
                        for a in 0..n {
                            let rest: f64 = (0..a).map(|b| c[a * n + b] * y[b]).sum();
                            y[a] = (v[a] - rest) / c[a * n + a];
                            quadratic += y[a] * y[a] / factor;
                            scale += c[a * n + a].ln() + 0.5 * factor.ln();
                        }
                    }
                    Kind::Fixed { width } => {
                        quadratic = v.iter().map(|v| v * v).sum::<f64>() / (width * width);
                        scale = n as f64 * width.ln();
                    }
                    Kind::Uniform => {}
                    Kind::Natural { .. } => unreachable!("tests/densities/few.rs has these"),
                    Kind::Component { .. } => unreachable!("tests/densities/components.rs has these"),
                    Kind::Grouped { .. } => unreachable!("tests/densities/kernel_sums.rs has these"),
                }
                let log = if with_jacobian { log } else { 0.0 };
                let gauss = -0.5 * quadratic * stretch * stretch - scale - 0.5 * n as f64 * TAU.ln();
                p += family.share / count as f64 * (gauss - log).exp();
            }
        }
        p.ln()
    }
}

/// Few wide kernels, and many narrow ones, most of which are passed over as too far away.
#[test]
fn a_density_is_the_sum_of_its_kernels() {
    for (name, (width, count)) in SPACES.iter().flat_map(|name| [(1.0, 7), (0.05, 300)].map(|case| (*name, case))) {
        let case = Case::sized(name, width, count);
        let density = case.density();
        let points = density.sample(200, 5);
        let got = density.log_density(&points, &Context::of_threads(1)).unwrap();
        for threads in [2, 3] {
            assert_eq!(
                got,
                density.log_density(&points, &Context::of_threads(threads)).unwrap(),
                "{name}: threads change nothing"
            );
        }
        // |C⁻¹v|² is a sum of squares of numbers of size 1/width, each with some rounding errors.
        let ulps = 1e4 / width * condition(&case.spaces);
        let mut told = 0;
        for (x, got) in points.chunks(case.manifold.ambient()).zip(&got) {
            let expected = case.log_density(x, 1.0, true);
            assert!(within_ulps(*got, expected, ulps), "{name}: {got}, not {expected}");
            told += usize::from(!within_ulps(*got, case.log_density(x, 1.00001, true), ulps));
        }
        // All but those of the uniform part, a tenth, far from any centre.
        assert!(told > 150, "{name}: {told} of 200 points tell wider kernels from these");
    }
}

/// ∫ e^{log p} dvol.
fn integral(case: &Case, resolution: usize, log_density: impl Fn(&[f64]) -> Vec<f64>) -> f64 {
    let grid = case.manifold.grid(resolution, RADIUS).unwrap();
    let logs = log_density(&grid.points);
    sum(&logs.iter().zip(&grid.weights).map(|(l, w)| w * l.exp()).collect::<Vec<f64>>())
}

#[test]
fn every_density_integrates_to_one_and_not_without_its_jacobian() {
    for (name, resolution) in GRIDS {
        let case = Case::new(name, 1.0);
        let total =
            integral(&case, resolution, |points| case.density().log_density(points, &Context::of_threads(2)).unwrap());
        println!("{name}: ∫p = 1 {:+.1e}", total - 1.0);
        // What lies behind the cut locus, 9 deviations away, is below rounding; so is the error of the grid.
        assert!(within_ulps(total, 1.0, 1e5), "{name}: {total}");
        let m = case.manifold.ambient();
        let twin = |stretch: f64, with_jacobian: bool| {
            integral(&case, resolution, |points| {
                points.chunks(m).map(|x| case.log_density(x, stretch, with_jacobian)).collect()
            })
        };
        let wrong =
            if matches!(name, "sphere:2" | "so3" | "hyperbolic:2") { twin(1.0, false) } else { twin(1.01, true) };
        println!("{name}: the twin gives {wrong}");
        assert!(!within_ulps(wrong, 1.0, 1e5) && (wrong - 1.0).abs() > 1e-3, "{name}: no power, {wrong}");
    }
}

#[test]
fn the_derivative_is_the_slope_of_the_log_density_along_geodesics() {
    const STEP: f64 = 1e-3;
    for name in SPACES {
        let (case, twin) = (Case::new(name, 1.0), Case::new(name, 1.01));
        let density = case.density();
        let (m, n) = (case.manifold.ambient(), case.manifold.dim());
        let points = density.sample(12, 6);
        let (derivative, other) = (
            density.derivative(&points, &Context::of_threads(1)).unwrap(),
            twin.density().derivative(&points, &Context::of_threads(1)).unwrap(),
        );
        assert_eq!(
            derivative,
            density.derivative(&points, &Context::of_threads(3)).unwrap(),
            "{name}: threads change nothing"
        );
        let (mut worst, mut worst_twin) = (0f64, 0f64);
        for (k, x) in points.chunks(m).enumerate() {
            for j in 0..n {
                let along = |t: f64| {
                    let v: Vec<f64> = (0..n).map(|i| if i == j { t } else { 0.0 }).collect();
                    from_normal(&case.spaces, x, &v)
                };
                let expected = slope(STEP, |t| density.log_density(&along(t), &Context::of_threads(1)).unwrap()[0]);
                let speed = velocity(&case.spaces, x, &vec![0.0; n], j, STEP);
                let dot = |d: &[f64]| d[k * m..][..m].iter().zip(&speed).map(|(d, s)| d * s).sum::<f64>();
                let size = 1.0 + expected.abs();
                worst = worst.max((dot(&derivative) - expected).abs() / size);
                worst_twin = worst_twin.max((dot(&other) - expected).abs() / size);
            }
        }
        // step⁴/30 times a fifth derivative of kernels 0.1 wide, and coordinates by differences of 10⁻⁶ of numbers with
        // some rounding errors.
        let allowed = condition(&case.spaces) * (STEP.powi(4) / 30.0 * 1e5 + 64.0 * f64::EPSILON / 1e-6);
        println!("{name}: slopes agree to {worst:.1e} of {allowed:.1e}, those of wider kernels to {worst_twin:.1e}");
        assert!(worst <= allowed, "{name}: {worst}");
        assert!(worst_twin > allowed, "{name}: no power");
    }
}

#[test]
fn samples_follow_their_density() {
    const COUNT: usize = 20_000;
    for (name, resolution) in GRIDS {
        let (case, twin) = (Case::new(name, 1.0), Case::new(name, 1.2));
        let (density, m) = (case.density(), case.manifold.ambient());
        let grid = case.manifold.grid(resolution, RADIUS).unwrap();
        let logs = density.log_density(&grid.points, &Context::of_threads(2)).unwrap();
        let average = |f: &[f64]| {
            sum(&logs.iter().zip(&grid.weights).zip(f).map(|((l, w), f)| w * l.exp() * f).collect::<Vec<f64>>())
        };
        // Where kernels are on the manifold, and how wide they are.
        let side = |points: &[f64]| -> Vec<f64> {
            let g = Graph::new();
            let x = g.input_rows("x", points.len() / m, [m]);
            values(&[crate::support::geometry::wave(&*case.manifold, x, 0.7)], &[("x", points)], 1).remove(0)
        };
        let height = |points: &[f64]| density.log_density(points, &Context::of_threads(2)).unwrap();
        let drawn = density.sample(COUNT, 8);
        drawn.chunks(m).take(200).for_each(|x| case.manifold.check(x).unwrap());
        assert!(within_sigma(&format!("{name}, side"), &side(&drawn), average(&side(&grid.points)), 4.0), "{name}");
        let expected = average(&logs);
        assert!(within_sigma(&format!("{name}, log p"), &height(&drawn), expected, 4.0), "{name}");
        let (mean, error) = estimate(&height(&twin.density().sample(COUNT, 8)));
        assert!((mean - expected).abs() > 4.0 * error, "{name}: no power against wider kernels");
        assert_eq!(drawn, density.sample(COUNT, 8), "the same seed gives the same points");
        assert_ne!(drawn, density.sample(COUNT, 9), "another seed gives others");
    }
}

#[test]
fn tensors_give_the_same_density_back_and_broken_ones_none() {
    for name in SPACES {
        let case = Case::new(name, 1.0);
        let density = case.density();
        let again = |change: &dyn Fn(&str) -> Option<usize>| {
            let tensors = density.tensors();
            let find = |wanted: &str| {
                let values = tensors.iter().find(|t| t.0 == wanted)?.1;
                change(wanted).map_or(Some(values), |cut| values.get(..values.len() - cut))
            };
            LocalKernels::from_tensors(&case.manifold, density.families(), find).map(|d| d.with_tolerance(0.0))
        };
        assert!(again(&|_| None) == Some(density.clone()), "{name}");
        for broken in ["centres", "shape0", "log-det1"] {
            let cut = |wanted: &str| (wanted == broken).then_some(1);
            assert_eq!(again(&cut), None, "{name}: {broken} is one number short");
        }
        let gone = LocalKernels::from_tensors(&case.manifold, density.families(), |_| None);
        assert_eq!(gone, None, "{name}: nothing there");
    }
}

/// Two clusters of different widths, long in all directions but one.
const WIDTHS: [f64; 2] = [0.25, 0.05];
const NARROWER: f64 = 0.2;

fn places(manifold: &dyn Manifold) -> [Vec<f64>; 2] {
    let mut stream = stream(11);
    [point(manifold, 2.0, &mut stream), point(manifold, 2.0, &mut stream)]
}

fn clusters(manifold: &dyn Manifold, count: usize, seed: u64) -> Vec<f64> {
    let spaces = manifold.spaces().unwrap();
    let places = places(manifold);
    let mut stream = stream(seed);
    let mut points = vec![];
    for _ in 0..count {
        let which = usize::from(stream.uniform() < 0.3);
        let mut v: Vec<f64> = (0..manifold.dim()).map(|_| WIDTHS[which] * stream.normal()).collect();
        v[0] *= NARROWER;
        points.extend(from_normal(&spaces, &places[which], &v));
    }
    points
}

/// Their log density.
fn truth(manifold: &dyn Manifold, x: &[f64]) -> f64 {
    let (spaces, n) = (manifold.spaces().unwrap(), manifold.dim() as f64);
    let part = |(place, (share, width)): (&Vec<f64>, (f64, f64))| {
        let (mut v, log) = to_normal(&spaces, place, x);
        v[0] /= NARROWER;
        let quadratic = v.iter().map(|v| v * v).sum::<f64>() / (width * width);
        share * (-0.5 * quadratic - n * width.ln() - NARROWER.ln() - 0.5 * n * TAU.ln() - log).exp()
    };
    places(manifold).iter().zip([(0.7, WIDTHS[0]), (0.3, WIDTHS[1])]).map(part).sum::<f64>().ln()
}

/// With equal shares of all kernels that have one.
fn with_equal_shares(manifold: &Arc<dyn Manifold>, density: &LocalKernels) -> LocalKernels {
    let share = 1.0 / density.families().len() as f64;
    let families: Vec<Family> = density.families().iter().map(|f| Family { share, ..*f }).collect();
    let tensors = density.tensors();
    let find = |name: &str| tensors.iter().find(|t| t.0 == name).map(|t| t.1);
    LocalKernels::from_tensors(manifold, &families, find).unwrap()
}

#[test]
fn shares_by_em_raise_the_likelihood_of_points_that_were_left_out_and_of_fresh_ones() {
    for name in ["sphere:2", "torus:2", "euclidean:2", "hyperbolic:2", "so3", "product(sphere:1,euclidean:1)"] {
        let manifold = parse(name).unwrap();
        let (train, fresh) = (clusters(&*manifold, 400, 20), clusters(&*manifold, 2000, 21));
        // A mixture of a few components hardly knows its own points.
        let kernels = LocalSettings { mixtures: vec![], ..LocalSettings::default() };
        let all = kernels.fit(&manifold, &train, 1, &Context::of_threads(2), false).unwrap();
        let shares: f64 = all.density.families().iter().map(|f| f.share).sum();
        assert!(within_ulps(shares, 1.0, 64.0), "{name}: shares add up to {shares}");
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        // Fewer kinds of kernels are a part of the concave problem: all of them do at least as well, but for the
        // negligible shares that are dropped, a thousandth each.
        let dropped = -(1.0 - 1e-3 * 23.0f64).ln();
        for part in [
            LocalSettings { neighbours: vec![], ..kernels.clone() },
            LocalSettings { widths: 0, ..kernels.clone() },
            LocalSettings { factors: vec![0.3, 1.0], ..kernels.clone() },
        ] {
            let held_out = part.fit(&manifold, &train, 1, &Context::of_threads(2), false).unwrap().held_out;
            let (more, less) = (mean(&all.held_out), mean(&held_out));
            assert!(more > less - dropped, "{name}: {more} with all kinds, {less} with a part of them");
        }
        let equal = with_equal_shares(&manifold, &all.density);
        let pairs = all
            .density
            .log_density(&fresh, &Context::of_threads(2))
            .unwrap()
            .into_iter()
            .zip(equal.log_density(&fresh, &Context::of_threads(2)).unwrap());
        let (gain, error) = estimate(&pairs.map(|(a, b)| a - b).collect::<Vec<f64>>());
        println!("{name}: shares gain {gain:.4} ± {error:.4} nats on fresh points");
        assert!(gain > 4.0 * error, "{name}: {gain} ± {error}");
        // What was left out is judged like fresh points; the density at its own points is not. The truth is taken off, so
        // that it matters less which points were drawn.
        let gaps = |logs: &[f64], points: &[f64]| -> Vec<f64> {
            logs.iter().zip(points.chunks(manifold.ambient())).map(|(l, x)| l - truth(&*manifold, x)).collect()
        };
        let (left_out, spread) = estimate(&gaps(&all.held_out, &train));
        let (own, _) = estimate(&gaps(&all.density.log_density(&train, &Context::of_threads(2)).unwrap(), &train));
        let (honest, spread_there) =
            estimate(&gaps(&all.density.log_density(&fresh, &Context::of_threads(2)).unwrap(), &fresh));
        // Four fifths of the points know less: errors fall with n^{−4/(4+dim)} at best, so by 1.25^{4/5} at most.
        let allowed = 4.0 * spread.hypot(spread_there) + (1.25f64.powf(0.8) - 1.0) * honest.abs();
        println!("{name}: less than the truth left out {left_out:.3}, fresh {honest:.3} ± {allowed:.3}, own {own:.3}");
        assert!((left_out - honest).abs() < allowed, "{name}");
        assert!(own - honest > allowed, "{name}: no power against points that are known");
    }
}

#[test]
fn repeats_of_a_point_are_left_out_together() {
    for name in ["sphere:2", "torus:2", "euclidean:2", "so3"] {
        let manifold = parse(name).unwrap();
        let m = manifold.ambient();
        let single = clusters(&*manifold, 200, 30);
        let doubled: Vec<f64> = single.chunks(m).flat_map(|x| [x, x].concat()).collect();
        let (neighbours, mixtures, tolerance) = (vec![], vec![], 0.0);
        let settings = LocalSettings { neighbours, mixtures, tolerance, ..LocalSettings::default() };
        let (one, two) = (
            settings.fit(&manifold, &single, 1, &Context::of_threads(2), false).unwrap(),
            settings.fit(&manifold, &doubled, 1, &Context::of_threads(2), false).unwrap(),
        );
        for (k, expected) in one.held_out.iter().enumerate() {
            for got in &two.held_out[2 * k..2 * k + 2] {
                // EM iterates 300 sums of 200 or 400 terms.
                assert!(within_ulps(*got, *expected, 1e6), "{name}: {got}, not {expected}");
            }
        }
        // The twin: repeats that differ by a hair are apart, and each is found again by the narrowest kernel.
        let spaces = manifold.spaces().unwrap();
        let hair = vec![1e-9; manifold.dim()];
        let close: Vec<f64> =
            single.chunks(m).flat_map(|x| [x.to_vec(), from_normal(&spaces, x, &hair)].concat()).collect();
        let three = settings.fit(&manifold, &close, 1, &Context::of_threads(2), false).unwrap();
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        assert!(mean(&three.held_out) > mean(&one.held_out) + 1.0, "{name}: no power");
    }
}

#[test]
fn threads_change_no_bit_of_a_fit() {
    for name in ["sphere:2", "euclidean:2"] {
        let manifold = parse(name).unwrap();
        let points = clusters(&*manifold, 301, 40);
        let [one, two, three] = [1, 2, 3]
            .map(|t| LocalSettings::default().fit(&manifold, &points, 1, &Context::of_threads(t), true).unwrap());
        for other in [two, three] {
            assert_eq!(one.density, other.density, "{name}");
            assert_eq!((&one.held_out, &one.derivative), (&other.held_out, &other.derivative), "{name}");
        }
        let another = LocalSettings::default().fit(&manifold, &points, 2, &Context::of_threads(1), true).unwrap();
        assert_ne!(one.held_out, another.held_out, "{name}: another seed, other folds");
    }
}

/// Kernels of few points in a wide bump are as wide as can be.
#[test]
fn kernels_stay_clear_of_the_cut_locus() {
    let mut shaped = 0;
    for name in ["sphere:1", "sphere:2", "projective:2", "torus:2", "so3"] {
        let manifold = parse(name).unwrap();
        let n = manifold.dim();
        let mut stream = stream(50);
        // A wide bump, not the whole manifold: there the uniform law would have all of the share.
        let (bump, middle) = (Bump::new(&*manifold).unwrap(), point(&*manifold, 1.0, &mut stream));
        let concentration = (4.5 / manifold.spaces().unwrap()[0].injectivity()).powi(2);
        let points: Vec<f64> = (0..60).flat_map(|_| bump.sample(&middle, concentration, &mut stream)).collect();
        // What has no share is not kept, and components of mixtures have a limit of their own.
        let shaped_by = LocalSettings { neighbours: vec![12.0], factors: vec![1.0, 2.0], ..LocalSettings::default() };
        let settings = LocalSettings { widths: 0, mixtures: vec![], worth: 0.0, ..shaped_by };
        let density = settings.fit(&manifold, &points, 1, &Context::of_threads(1), false).unwrap().density;
        let largest = settings.factors.iter().copied().fold(0.0, f64::max);
        let total = density.centres();
        let tensors = density.tensors();
        let shape = tensors.iter().find(|t| t.0 == "shape0").map_or(&[][..], |t| t.1);
        shaped += usize::from(!shape.is_empty());
        let mut widest: f64 = 0.0;
        for i in 0..if shape.is_empty() { 0 } else { total } {
            let entry = |a: usize, b: usize| {
                let x = shape[(a * (a + 1) / 2 + b) * total + i];
                if a == b { 1.0 / x } else { x }
            };
            for a in 0..n {
                widest = widest.max((largest * (0..=a).map(|b| entry(a, b).powi(2)).sum::<f64>()).sqrt());
            }
        }
        for family in density.families() {
            if let Kind::Fixed { width } = family.kind {
                widest = widest.max(width);
            }
        }
        let limit = manifold.spaces().unwrap()[0].injectivity() / 6.0;
        println!(
            "{name}: the widest kernel has deviation {widest:.3}, a sixth of the injectivity radius is {limit:.3}"
        );
        // The floor of the second moments, a tenth of the distance of neighbours, comes on top.
        assert!(widest <= 1.02 * limit, "{name}: {widest} is {} sixths of the injectivity radius", widest / limit);
        assert!(widest > 0.5 * limit / (n as f64).sqrt(), "{name}: the case is too narrow to have power");
    }
    assert!(shaped >= 3, "only {shaped} densities have kernels that are shaped by neighbours");
}

/// A single kernel: the antipode of its centre has next to nothing of its density on a sphere, and all of it as a rotation.
#[test]
fn a_kernel_does_not_see_its_antipode_as_its_centre() {
    for (name, same) in [("sphere:2", false), ("sphere:7", false), ("projective:2", true), ("so3", true)] {
        let case = Case::sized(name, 0.3, 1);
        let density = case.density();
        let centre = case.centres[..case.manifold.ambient()].to_vec();
        let opposite: Vec<f64> = centre.iter().map(|x| -x).collect();
        let at = density.log_density(&[centre, opposite].concat(), &Context::of_threads(1)).unwrap();
        println!("{name}: {at:?}");
        match same {
            true => assert!(within_ulps(at[0], at[1], 1e4), "{name}: {at:?}"),
            // Kernels of width 0.1 do not reach there: what is left is the uniform part, a tenth.
            false => {
                let uniform = (0.1 / case.manifold.volume().unwrap()).ln();
                assert!(within_ulps(at[1], uniform, 16.0) && at[0] - at[1] > 2.0, "{name}: {at:?}, uniform {uniform}");
            }
        }
    }
}
