//! One noun: every density has draws that follow its log density, and a score that is its gradient.

use crate::support::fits::settings;
use minvel::density::{
    Bump, Density, EnergyDensity, KernelDensity, LocalSettings, Mixture, MixtureSearch, Search, TestPlan, Uniform,
    goodness_of_fit,
};
use minvel::energy::{Energy, Gaussian, VonMisesFisher};
use minvel::fit::{Fit, Fitted, Goal};
use minvel::manifold::{Euclidean, Manifold, Sphere, parse};
use minvel::train::Context;
use minvel_engine::random::{Key, Stream};
use minvel_testing::{Scratch, within_sigma};
use std::sync::Arc;

const SPACES: [&str; 8] = [
    "euclidean:2",
    "sphere:1",
    "sphere:2",
    "torus:2",
    "hyperbolic:2",
    "so3",
    "projective:2",
    "product(sphere:1,euclidean:1)",
];

/// Points of two bumps.
fn data(manifold: &Arc<dyn Manifold>, count: usize) -> Vec<f64> {
    let bump = Bump::new(&**manifold).unwrap();
    let mut stream = Stream::new(Key::new(5, 0), 3);
    let base = Uniform::new(manifold).map(|u| u.sample(2, 7, &Context::bare()).unwrap());
    let centres = base.unwrap_or_else(|| match manifold.ambient() {
        2 => vec![0.3, -0.1, -0.2, 0.4],
        m => (0..2 * m).map(|k| if k % m == 0 { 1.0 } else { 0.0 }).collect(),
    });
    let m = manifold.ambient();
    (0..count).flat_map(|i| bump.sample(&centres[i % 2 * m..][..m], [9.0, 25.0][i % 2], &mut stream)).collect()
}

/// Everything we can make on a manifold.
fn densities(manifold: &Arc<dyn Manifold>) -> Vec<Box<dyn Density>> {
    let (points, context) = (data(manifold, 120), Context::bare());
    let bump = Bump::new(&**manifold).unwrap();
    let kernels = KernelDensity::cross_validated(bump, &points, None, &Search::default(), &context).unwrap().0;
    let search = MixtureSearch { most: 4, ..MixtureSearch::default() };
    let mixture = Mixture::fitted(&**manifold, &points, 3, &search, &context).unwrap();
    let local = LocalSettings::default().smooth().fit(manifold, &points, 1, &context, false).unwrap().density;
    let fitted = Fit::on(manifold).objective(Goal::None).points(&points).unwrap();
    let mut all: Vec<Box<dyn Density>> =
        vec![Box::new(kernels), Box::new(mixture), Box::new(local), Box::new(fitted.into_parts().0)];
    all.extend(Uniform::new(manifold).map(|u| Box::new(u) as Box<dyn Density>));
    all
}

/// A function of a point that tells places apart, whatever the manifold (of axes and rotations: up to the sign).
fn test_function(manifold: &dyn Manifold, x: &[f64]) -> f64 {
    let even = manifold.to_string().starts_with("projective") || manifold.to_string() == "so3";
    let wave = |k: usize| ((k + 1) as f64 * x[k] + 0.4 * k as f64).sin();
    if even { x[0] * x[1] - 0.5 * x[1] * x[2] + x[2] * x[2] } else { (0..x.len()).map(wave).sum() }
}

#[test]
fn draws_follow_the_density() {
    for name in SPACES {
        let manifold = parse(name).unwrap();
        let m = manifold.ambient();
        let resolution = [4000, 200, 32][manifold.dim() - 1];
        let grid = manifold.grid(resolution, 8.0).unwrap();
        for density in densities(&manifold) {
            let logs = density.log_density(&grid.points, &Context::bare()).unwrap();
            let mean = |f: &dyn Fn(&[f64], f64) -> f64| {
                let nodes = grid.points.chunks(m).zip(&logs).zip(&grid.weights);
                nodes.map(|((x, l), w)| w * l.exp() * f(x, *l)).sum::<f64>()
            };
            let total = mean(&|_, _| 1.0);
            assert!((total - 1.0).abs() < 2e-3, "{name}, {}: the grid finds {total}", density.name());
            let points = density.sample(4000, 11, &Context::bare()).unwrap();
            points.chunks(m).take(50).for_each(|x| manifold.check(x).unwrap());
            let own: Vec<f64> = points.chunks(m).map(|x| test_function(&*manifold, x)).collect();
            let what = format!("{name}, {}", density.name());
            assert!(within_sigma(&what, &own, mean(&|x, _| test_function(&*manifold, x)), 4.5));
            let own = density.log_density(&points, &Context::bare()).unwrap();
            let entropy = mean(&|_, l| l);
            let exact = density.name() == "uniform";
            assert!(exact || within_sigma(&format!("{what}: log p"), &own, entropy, 4.5));
            // The twin: draws of a density that is as wide as the manifold.
            if let Some(flat) = Uniform::new(&manifold).filter(|_| !exact) {
                let wrong = flat.sample(4000, 12, &Context::bare()).unwrap();
                let wrong = density.log_density(&wrong, &Context::bare()).unwrap();
                assert!(!within_sigma("twin", &wrong, entropy, 4.5), "{what}: no power");
            }
        }
    }
}

/// A density that knows its values only.
#[derive(Debug)]
struct Values<'a>(&'a dyn Density);

impl Density for Values<'_> {
    fn name(&self) -> &str {
        "values"
    }
    fn manifold(&self) -> Arc<dyn Manifold> {
        self.0.manifold()
    }
    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, minvel::Error> {
        self.0.log_density(points, context)
    }
    fn sample(&self, count: usize, seed: u64, context: &Context) -> Result<Vec<f64>, minvel::Error> {
        self.0.sample(count, seed, context)
    }
}

fn compare_scores(what: &str, density: &dyn Density, points: &[f64]) {
    let exact = density.score(points, &Context::bare()).unwrap();
    let differences = Values(density).score(points, &Context::bare()).unwrap();
    let size = exact.iter().fold(1.0f64, |a, x| a.max(x.abs()));
    for (a, b) in exact.iter().zip(&differences) {
        // h² of a function whose third derivative is at most the cube of its slope, and rounding over h.
        let allowed = 1e-10 * size.powi(3) + 4e-8 * size;
        assert!((a - b).abs() <= allowed, "{what}: {a} against {b}, {:.1e} > {allowed:.1e}", (a - b).abs());
    }
    let shifted: Vec<f64> = exact.iter().map(|x| 1.001 * x).collect();
    assert!(
        shifted.iter().zip(&differences).any(|(a, b)| (a - b).abs() > 1e-10 * size.powi(3) + 4e-8 * size),
        "{what}"
    );
}

#[test]
fn scores_are_gradients_of_the_log_density() {
    for name in SPACES {
        let manifold = parse(name).unwrap();
        let (points, own) = (data(&manifold, 24), data(&manifold, 80));
        let context = Context::bare();
        // Differences see what sums leave out, and components are too sharp for them.
        let smooth = LocalSettings { tolerance: 0.0, mixtures: vec![], ..LocalSettings::default().smooth() };
        let local = smooth.fit(&manifold, &own, 1, &context, false).unwrap().density;
        compare_scores(&format!("{name}, kernels"), &local, &points);
        let fitted = Fit::on(&manifold).objective(Goal::None).kernels(smooth).points(&own).unwrap();
        compare_scores(&format!("{name}, fit"), fitted.model(), &points);
    }
}

#[test]
fn an_energy_with_log_z_is_a_density() {
    let sphere: Arc<dyn Manifold> = Arc::new(Sphere(2));
    let plane: Arc<dyn Manifold> = Arc::new(Euclidean(2));
    let vmf: Arc<dyn Energy> = Arc::new(VonMisesFisher::new(&[0.6, 0.0, 0.8], 4.0));
    let gauss: Arc<dyn Energy> = Arc::new(Gaussian::new(&[0.5, -1.0], &[1.0, 0.3, 0.3, 0.5]));
    for (manifold, energy) in [(&sphere, vmf), (&plane, gauss)] {
        let density = EnergyDensity::closed(manifold.clone(), energy).unwrap();
        let points = density.sample(500, 3, &Context::bare()).unwrap();
        compare_scores("energy", &density, &points);
        let grid = manifold.grid(120, 9.0).unwrap();
        let logs = density.log_density(&grid.points, &Context::bare()).unwrap();
        let total: f64 = logs.iter().zip(&grid.weights).map(|(l, w)| w * l.exp()).sum();
        assert!((total - 1.0).abs() < 1e-6, "{total}");
        let p_value = |seed: u64| {
            let points = density.sample(200, seed, &Context::bare()).unwrap();
            goodness_of_fit(&density, &points, &TestPlan::default(), &Context::bare()).unwrap().p_value
        };
        let rejected = (0..20).filter(|seed| p_value(*seed) < 0.05).count();
        println!("{rejected} of 20 sets of its own draws are rejected at 5 %");
        assert!(rejected <= 4, "a level of 5 % rejects more than 4 of 20 once in 400 times");
        let others = Uniform::new(manifold).map(|u| u.sample(500, 4, &Context::bare()).unwrap());
        if let Some(others) = others {
            let goodness = goodness_of_fit(&density, &others, &TestPlan::default(), &Context::bare()).unwrap();
            assert!(goodness.p_value < 0.01, "{goodness:?}");
        }
    }
}

#[test]
fn the_door_checks_points_and_settings_and_a_saved_fit_is_the_same() {
    let points = data(&parse("sphere:2").unwrap(), 60);
    let said = |fit: Fit, points: &[f64]| fit.points(points).err().unwrap().to_string();
    let mut bad = points.clone();
    bad[3 * 7] = 9.0;
    assert!(said(Fit::on(Sphere(2)), &bad).contains("row 7 (counted from 0): the point has length"));
    bad[3 * 7] = f64::NAN;
    assert!(said(Fit::on(Sphere(2)), &bad).contains("row 7 (counted from 0)"));
    assert!(said(Fit::on(Sphere(2)), &points[..100]).contains("100 numbers are no whole points"));
    assert!(said(Fit::on(Sphere(2)), &points[..6]).contains("at least 3 points, not 2"));
    assert!(said(Fit::on(Sphere(2)).networks(0), &points).contains("`seeds` must be positive"));

    let fitted = Fit::on(Sphere(2)).settings(settings(&[])).seed(3).points(&points).unwrap();
    assert!(fitted.record().is_some());
    assert!(fitted.log_density(&bad).is_err());
    let scratch = Scratch::new("door");
    let path = scratch.path("model.safetensors");
    fitted.save(&path).unwrap();
    let again = Fitted::load(&path).unwrap();
    assert!(again.record().is_none());
    assert_eq!(again.log_density(&points).unwrap(), fitted.log_density(&points).unwrap());
    assert_eq!(again.score(&points).unwrap(), fitted.score(&points).unwrap());
    assert_eq!(again.sample(10, 4).unwrap(), fitted.sample(10, 4).unwrap());
    assert_ne!(again.sample(10, 5).unwrap(), fitted.sample(10, 4).unwrap());
    // The same on one thread, and by the same door again.
    let same = Fit::on(parse("sphere:2").unwrap()).settings(settings(&[])).seed(3).threads(1).points(&points).unwrap();
    assert_eq!(same.log_density(&points).unwrap(), fitted.log_density(&points).unwrap());
}
