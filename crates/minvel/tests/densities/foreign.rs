//! Fits on manifolds that the library does not know: the sphere of which only the geometry is given, which must agree with
//! the sphere in closed form, and the flat Klein bottle.

use crate::support::bare::Bare;
use crate::support::fits::settings;
use crate::support::klein::KleinBottle;
use minvel::density::{
    Bump, Density, LocalFit, LocalKernels, LocalSettings, MixtureSearch, OneWidth, TestPlan, WrappedMixture, stein_test,
};
use minvel::fit::{Fit, FitSettings, IntoManifold, Model};
use minvel::manifold::quadrature::{angles, tensor};
use minvel::manifold::{Grid, Sphere};
use minvel::train::Context;
use minvel::{Error, Manifold, manifold};
use minvel_engine::Expr;
use minvel_engine::random::{Key, Stream};
use minvel_testing::within_sigma;
use std::fmt;
use std::sync::Arc;

/// Points of two von Mises–Fisher laws on S².
fn on_the_sphere(count: usize, seed: u64) -> Vec<f64> {
    let bump = Bump::new(&Sphere(2)).unwrap();
    let mut stream = Stream::new(Key::new(seed, 0), 1);
    let centres = [([0.0, 0.6, 0.8], 20.0), ([-0.8, 0.0, -0.6], 5.0)];
    (0..count).flat_map(|i| bump.sample(&centres[i % 2].0, centres[i % 2].1, &mut stream)).collect()
}

/// log of an unnormalised density on the Klein bottle.
fn hills(x: &[f64]) -> f64 {
    2.0 * x[0].cos() + 1.5 * (0.5 * x[0]).cos() * x[1].sin()
}

/// Points of that density, by rejection.
fn on_the_bottle(count: usize, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(Key::new(seed, 0), 2);
    let mut points = vec![];
    while points.len() < 2 * count {
        let x = [0, 1].map(|_| std::f64::consts::TAU * (stream.uniform() - 0.5));
        if stream.uniform().ln() < hills(&x) - 3.5 {
            points.extend(x);
        }
    }
    points
}

fn bottle_grid(size: usize) -> Grid {
    tensor(angles(size), 2)
}

fn mass(grid: &Grid, logs: &[f64]) -> f64 {
    grid.weights.iter().zip(logs).map(|(w, l)| w * l.exp()).sum()
}

fn local(manifold: impl IntoManifold, points: &[f64]) -> LocalFit {
    // Mixtures stand on products of model spaces only.
    let settings = LocalSettings { mixtures: vec![], ..LocalSettings::default() };
    settings.fit(&manifold.into_manifold(), points, 1, &Context::bare(), true).unwrap()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// The same kernels in other frames. Only the ladder of widths differs, which begins and ends at chords there and at
/// distances here: less than 0.02 nats in the mean.
#[test]
fn local_kernels_on_the_bare_sphere_are_those_on_the_sphere() {
    let (points, test) = (on_the_sphere(500, 1), on_the_sphere(300, 2));
    let (known, bare) = (local(Sphere(2), &points), local(Bare::of("sphere:2"), &points));
    let context = Context::bare();
    let logs = |fit: &LocalFit| fit.density.log_density_of(&test, &context).unwrap();
    let (a, b) = (logs(&known), logs(&bare));
    // Without a volume there is no uniform law, which is seen far out only.
    let apart = mean(a.iter().zip(&b).map(|(a, b)| (a - b).abs()));
    assert!(apart < 0.02, "log densities differ by {apart}");
    let slopes = |fit: &LocalFit| fit.density.derivative(&test, &context).unwrap();
    let (s, t) = (slopes(&known), slopes(&bare));
    for ((x, s), t) in test.chunks(3).zip(s.chunks(3)).zip(t.chunks(3)).take(50) {
        let tangent = |s: &[f64]| -> Vec<f64> {
            let along: f64 = x.iter().zip(s).map(|(x, s)| x * s).sum();
            x.iter().zip(s).map(|(x, s)| s - along * x).collect()
        };
        let off: f64 = tangent(s).iter().zip(tangent(t)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let size = tangent(s).iter().map(|a| a * a).sum::<f64>().sqrt();
        assert!(off < 0.1 * (1.0 + size), "slopes {s:?} and {t:?}");
    }
}

/// Kernels without needles, which a coarse grid sees.
#[test]
fn local_kernels_on_the_bare_sphere_integrate_to_one() {
    let (points, grid) = (on_the_sphere(300, 1), Sphere(2).grid(60, 0.0).unwrap());
    let smooth = LocalSettings::default().smooth();
    let fit = smooth.fit(&Bare::of("sphere:2").into_manifold(), &points, 1, &Context::bare(), false).unwrap();
    let total = mass(&grid, &fit.density.log_density_of(&grid.points, &Context::bare()).unwrap());
    assert!((total - 1.0).abs() < 1e-3, "the kernels have mass {total}");
}

fn learnt(manifold: Arc<dyn Manifold>, settings: &FitSettings, train: &[f64], validation: &[f64]) -> Model {
    Model::learn(manifold, settings, train, validation, &Context::bare()).unwrap().0
}

#[test]
fn fits_on_the_bare_sphere_score_as_those_on_the_sphere_and_integrate_to_one() {
    // Kernels that are too wide, so that there is something to correct.
    let wide = ["kernels.neighbours=[120.0]", "kernels.factors=[2.0]", "kernels.widths=0", "kernels.mixtures=[]"];
    let settings = settings(
        &[
            &wide[..],
            &["objective=likelihood", "learning.steps=400", "learning.rate=1e-2", "network.waves=0", "seeds=1"],
        ]
        .concat(),
    );
    let (train, validation, test) = (on_the_sphere(500, 1), on_the_sphere(100, 2), on_the_sphere(500, 3));
    let context = Context::bare();
    let known = learnt(Arc::new(Sphere(2)), &settings, &train, &validation);
    let bare = learnt(Arc::new(Bare::of("sphere:2")), &settings, &train, &validation);
    println!("shares {} and {}", known.share(), bare.share());
    let score = |model: &Model| mean(model.log_density(&test, &context).unwrap().into_iter());
    let (a, b) = (score(&known), score(&bare));
    println!("log density {a:.4} on the sphere, {b:.4} on the bare one; log Z {:?}", bare.log_z());
    assert!((a - b).abs() < 0.02, "log densities {a} and {b}");
    assert!(bare.share() > 0.0 && known.share() > 0.0, "there is a correction to normalise");
    let grid = Sphere(2).grid(60, 0.0).unwrap();
    let total = mass(&grid, &bare.log_density(&grid.points, &context).unwrap());
    let stated = 1e-3f64.max(3.0 * bare.log_z().value.std_error);
    assert!((total - 1.0).abs() < stated, "the model has mass {total}, known to {stated}");
}

/// Everything of a fit on a manifold of a user: correction, log Z, baselines, draws, scores.
#[test]
fn a_density_on_the_klein_bottle_is_fitted() {
    let context = Context::bare();
    let bottle: Arc<dyn Manifold> = Arc::new(KleinBottle);
    let settings = settings(&["learning.steps=100", "partition.draws=20000", "seeds=1", "few.rows=0"]);
    let points = on_the_bottle(1000, 1);
    let fitted = Fit::on(&bottle).settings(settings.clone()).points(&points).unwrap();
    let (model, record) = fitted.into_parts();
    let evaluation = record.unwrap().evaluation;
    let grid = bottle_grid(80);
    let logs = model.log_density(&grid.points, &context).unwrap();
    let stated = 1e-3f64.max(3.0 * model.log_z().value.std_error);
    let total = mass(&grid, &logs);
    assert!((total - 1.0).abs() < stated, "the model has mass {total}, known to {stated}");

    let truth: Vec<f64> = grid.points.chunks(2).map(hills).collect();
    let log_z = mass(&grid, &truth).ln();
    let divergence: f64 =
        (0..logs.len()).map(|i| grid.weights[i] * (truth[i] - log_z).exp() * (truth[i] - log_z - logs[i])).sum();
    println!("KL(truth‖model) = {divergence:.4}, {evaluation:?}");
    assert!(divergence > 0.0 && divergence < 0.06, "KL(truth‖model) = {divergence}");
    let names: Vec<&str> = evaluation.baselines.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["uniform", "kernel density", "mixture"]);
    let nll = |k: usize| evaluation.baselines[k].nll.mean;
    assert!(nll(0) > nll(1) && nll(0) > nll(2), "kernels and mixtures beat the uniform law");

    // Draws are those of the density: the mean of a wave over both.
    let wave = |x: &[f64]| x[0].cos() + (0.5 * x[0]).cos() * x[1].sin();
    let drawn: Vec<f64> = model.sample(4000, 5, &context).unwrap().points.chunks(2).map(wave).collect();
    let expected: f64 =
        grid.points.chunks(2).zip(&grid.weights).zip(&logs).map(|((x, w), l)| w * l.exp() * wave(x)).sum();
    assert!(within_sigma("a wave over draws", &drawn, expected, 4.0));
    let wrong: Vec<f64> = grid.points.chunks(2).take(4000).map(wave).collect();
    assert!(!within_sigma("a wave over other points", &wrong, expected, 4.0));

    // Scores are slopes of log densities.
    let test = on_the_bottle(20, 9);
    let scores = model.score(&test, &context).unwrap();
    kept_and_read(&model, &test);
    for (k, score) in scores.iter().enumerate() {
        let at = |h: f64| {
            let mut x = test[k / 2 * 2..][..2].to_vec();
            x[k % 2] += h;
            model.log_density(&x, &context).unwrap()[0]
        };
        // The networks compute in single precision.
        let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
        assert!((slope - score).abs() < 0.02 * (1.0 + score.abs()), "{score} is not {slope}");
    }
}

/// A file of the model is read by whoever knows the manifold.
fn kept_and_read(model: &Model, points: &[f64]) {
    let path = std::env::temp_dir().join(format!("minvel-bottle-{}.safetensors", std::process::id()));
    model.write(&path, &serde_json::json!({ "manifold": "klein-bottle" })).unwrap();
    let unknown = Model::read::<serde_json::Value>(&path).expect_err("the library does not know it").to_string();
    assert!(unknown.contains("unknown manifold `klein-bottle`"), "{unknown}");
    let (read, _) = Model::read_on::<serde_json::Value>(&path, |name| match name {
        "klein-bottle" => Ok(Arc::new(KleinBottle)),
        other => manifold::parse(other),
    })
    .unwrap();
    std::fs::remove_file(&path).unwrap();
    let context = Context::bare();
    assert_eq!(read.log_density(points, &context).unwrap(), model.log_density(points, &context).unwrap());
}

#[test]
fn baselines_of_the_klein_bottle_integrate_to_one_and_few_rows_are_enough() {
    let (context, points) = (Context::bare(), on_the_bottle(200, 3));
    let grid = bottle_grid(120);
    let kernels = OneWidth::wrapped(&KleinBottle.into_manifold(), &points, &context).unwrap();
    let search = MixtureSearch::default();
    let mixture = WrappedMixture::fitted(&KleinBottle.into_manifold(), &points, 4, &search, &context).unwrap();
    let plain = LocalKernels::plain(&KleinBottle.into_manifold(), &points, &context).unwrap().density;
    for density in [&kernels as &dyn Density, &mixture, &plain] {
        let total = mass(&grid, &density.log_density(&grid.points, &context).unwrap());
        assert!((total - 1.0).abs() < 1e-3, "{} has mass {total}", density.name());
        let entropy = |l: &f64| l.exp() * l;
        let logs = density.log_density(&grid.points, &context).unwrap();
        let expected: f64 = grid.weights.iter().zip(&logs).map(|(w, l)| w * entropy(l)).sum();
        let drawn = density.sample(4000, 5, &context).unwrap();
        let drawn = density.log_density(&drawn, &context).unwrap();
        assert!(minvel_testing::within_sigma(density.name(), &drawn, expected, 4.5), "draws of {}", density.name());
    }
    let bottle: Arc<dyn Manifold> = Arc::new(KleinBottle);
    let settings = settings(&["few.repeats=1", "few.folds=3", "objective=none"]);
    let few = Fit::on(&bottle).settings(settings.clone()).points(&points[..120]).unwrap();
    let total = mass(&grid, &few.model().log_density(&grid.points, &context).unwrap());
    assert!((total - 1.0).abs() < 1e-3, "the model of few rows has mass {total}");
}

/// A sphere that contradicts itself in one place.
#[derive(Debug)]
struct Broken(&'static str);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("broken")
    }
}

impl Manifold for Broken {
    fn dim(&self) -> usize {
        2
    }
    fn ambient(&self) -> usize {
        3
    }
    fn origin(&self) -> Vec<f64> {
        if self.0 == "origin" { vec![1.0, 1.0, 1.0] } else { vec![0.0, 0.0, 1.0] }
    }
    fn injectivity(&self) -> f64 {
        if self.0 == "injectivity" { 0.0 } else { std::f64::consts::PI }
    }
    fn inner<'g>(&self, _: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        u.dot(v)
    }
    fn exp_delta<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        Sphere(2).exp_delta(x, v)
    }
    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        if self.0 == "log" { y - x } else { Sphere(2).log(x, y) }
    }
    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        Sphere(2).settle(x)
    }
    fn volume(&self) -> Option<f64> {
        (self.0 == "volume").then_some(4.0 * std::f64::consts::PI)
    }
}

#[test]
fn what_cannot_be_fitted_says_which_method_is_wrong_or_missing() {
    let points = on_the_sphere(100, 1);
    let said = |found: Result<LocalFit, Error>| found.expect_err("it cannot be fitted").to_string();
    let parts =
        ["`origin` is no point", "`injectivity` must be positive", "`log` does not invert", "give `sample_base`"];
    for (what, part) in ["origin", "injectivity", "log", "volume"].into_iter().zip(parts) {
        let why = said(LocalKernels::plain(&Broken(what).into_manifold(), &points, &Context::bare()));
        assert!(why.contains(part) && why.contains("broken cannot be fitted"), "{why}");
        let why =
            said(LocalSettings::default().fit(&Broken(what).into_manifold(), &points, 1, &Context::bare(), false));
        assert!(why.contains(part), "{why}");
    }
    let bare = Bare::of("sphere:2");
    let test = stein_test(&bare, &points, &points, &TestPlan::default(), &Context::bare());
    assert!(test.unwrap_err().to_string().contains("no Stein kernel on bare-sphere:2"));
    assert!(LocalKernels::plain(&Broken("nothing").into_manifold(), &points, &Context::bare()).is_ok());
}

/// A product of a known and an unknown manifold is unknown, and is fitted like one.
#[test]
fn products_with_an_unknown_factor_are_fitted() {
    let factors: Vec<Arc<dyn Manifold>> = vec![Arc::new(Bare::of("sphere:1")), manifold::parse("euclidean:1").unwrap()];
    let product = manifold::Product::new(factors);
    let mut stream = Stream::new(Key::new(1, 0), 3);
    let points: Vec<f64> = (0..300)
        .flat_map(|_| {
            let (angle, height) = (0.5 * stream.normal(), stream.normal());
            [angle.cos(), angle.sin(), height]
        })
        .collect();
    let density = local(product.clone(), &points).density;
    let circle = Sphere(1).grid(200, 0.0).unwrap();
    let line = minvel::manifold::Euclidean(1).grid(200, 8.0).unwrap();
    let grid = minvel::manifold::quadrature::product(&circle, &line);
    let total = mass(&grid, &density.log_density_of(&grid.points, &Context::bare()).unwrap());
    assert!((total - 1.0).abs() < 1e-3, "the kernels have mass {total}");
}
