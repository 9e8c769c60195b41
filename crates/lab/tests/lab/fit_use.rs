//! What one does with fitted densities: axes against their closed form, grids, levels, comparisons.

use minvel::density::Bump;
use minvel::fit::{Comparison, FitSettings, Levels, Model};
use minvel::manifold::parse;
use minvel::train::Context;
use minvel_engine::random::{Key, Stream};
use minvel_lab::fitting;
use minvel_lab::fitting::DensityGrid;
use minvel_lab::table::{Coordinates, Layout, Units};
use minvel_testing::estimate;

fn settings(objective: &str) -> FitSettings {
    let mut config = fitting::defaults().quick().unwrap();
    for change in ["learning.steps=40", "learning.looks=2", "network.hidden=[16]", "network.waves=8", "seeds=1"] {
        config.set(change).unwrap();
    }
    config.set(&format!("objective={objective}")).unwrap();
    fitting::settings(&config).unwrap()
}

/// Draws of natural kernels of κ = 12 (¾ of them) and 5 at two centres: on axes, a mixture of Watson laws.
struct Truth {
    bump: Bump,
    centres: [Vec<f64>; 2],
}

const SHARES: [(f64, f64); 2] = [(0.75, 12.0), (0.25, 5.0)];

impl Truth {
    fn new(name: &str) -> Self {
        let bump = Bump::new(&*parse(name).unwrap()).unwrap();
        let centres = match name {
            "projective:2" | "sphere:2" => [vec![0.6, 0.0, 0.8], vec![0.0, 0.8, -0.6]],
            "projective:1" | "sphere:1" => [vec![0.6, 0.8], vec![-0.8, 0.6]],
            "hyperbolic:2" => [vec![0.3, 0.1], vec![-0.4, 0.2]],
            "product(torus:1,euclidean:1)" => [vec![3.0, 0.1], vec![0.4, 5.2]],
            _ => [vec![3.0, 0.1], vec![0.4, -2.2]],
        };
        Truth { bump, centres }
    }

    fn draw(&self, count: usize, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(Key::new(seed, 0), 7);
        let one = |stream: &mut Stream| {
            let k = usize::from(stream.uniform() > SHARES[0].0);
            self.bump.sample(&self.centres[k], SHARES[k].1, stream)
        };
        (0..count).flat_map(|_| one(&mut stream)).collect()
    }

    fn log_density(&self, x: &[f64]) -> f64 {
        let part = |k: usize| SHARES[k].0 * self.bump.log_density(x, &self.centres[k], SHARES[k].1).exp();
        (part(0) + part(1)).ln()
    }
}

/// Kernels without correction, which are made in no time.
fn model(name: &str, count: usize, seed: u64) -> Model {
    learnt(name, count, seed, "none")
}

fn learnt(name: &str, count: usize, seed: u64, objective: &str) -> Model {
    let truth = Truth::new(name);
    let (train, validation) = (truth.draw(count, seed), truth.draw(count / 8, seed + 1));
    Model::learn(parse(name).unwrap(), &settings(objective), &train, &validation, &Context::bare()).unwrap().0
}

/// A density of axes is the same at both ends, integrates to one over half of the sphere, and comes near a mixture of Watson
/// laws; the uniform law, and the density of one end as if it were a direction (log 2 less), do not.
#[test]
fn a_fit_of_axes_is_even_normalised_and_near_the_watson_truth() {
    for name in ["projective:1", "projective:2"] {
        let (truth, model, context) = (Truth::new(name), learnt(name, 1000, 1, "minimum-velocity"), Context::bare());
        let manifold = parse(name).unwrap();
        let fresh = truth.draw(4000, 9);
        let ends: Vec<f64> = fresh.iter().map(|x| -x).collect();
        let (own, other) = (model.log_density(&fresh, &context).unwrap(), model.log_density(&ends, &context).unwrap());
        let gap = own.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // networks are in single precision
        assert!(gap < 1e-4, "{name}: the ends differ by {gap}");
        // Kernels may be narrow, on a plane along one direction, and points are cheap.
        let grid = manifold.grid(if name == "projective:1" { 100_000 } else { 480 }, 0.0).unwrap();
        let p = model.log_density(&grid.points, &context).unwrap();
        let total: f64 = p.iter().zip(&grid.weights).map(|(l, w)| w * l.exp()).sum();
        println!("{name}: ∫p = {total}");
        assert!((total - 1.0).abs() < 4.0 * model.log_z().value.std_error + 1e-3, "{name}: ∫p = {total}");
        let gaps: Vec<f64> =
            fresh.chunks(manifold.ambient()).zip(&own).map(|(x, l)| truth.log_density(x) - l).collect();
        let (kl, error) = estimate(&gaps);
        println!("{name}: KL = {kl:.4} ± {error:.4}");
        // 1 000 points of two bumps: a kernel density is known to some hundredths of a nat
        assert!(kl < 0.06 && kl > -4.0 * error, "{name}: KL = {kl} ± {error}");
        let uniform: Vec<f64> = gaps.iter().zip(&own).map(|(g, l)| g + l + manifold.volume().unwrap().ln()).collect();
        assert!(estimate(&uniform).0 > 0.3, "{name}: the truth is far from uniform");
    }
}

fn form(name: &str, layouts: Vec<Layout>, columns: &[&str]) -> Coordinates {
    let angular = layouts.iter().any(|l| l.is_angular());
    Coordinates {
        manifold: name.into(),
        layouts,
        units: angular.then_some(Units::Degrees),
        periods: vec![],
        columns: columns.iter().map(|c| c.to_string()).collect(),
        full_turn: vec![false; columns.len()],
    }
}

#[test]
fn grids_add_up_to_one_in_the_units_of_the_data() {
    let cases = [
        ("sphere:1", vec![Layout::Angles], vec!["a"], 360, 360),
        ("projective:1", vec![Layout::Angles], vec!["a"], 360, 360),
        ("torus:2", vec![Layout::Angles], vec!["a", "b"], 120, 120 * 120),
        ("sphere:2", vec![Layout::LatLon], vec!["lat", "lon"], 90, 90 * 180),
        ("projective:2", vec![Layout::LonLat], vec!["lon", "lat"], 90, 45 * 180),
        ("euclidean:2", vec![Layout::Vector], vec!["x", "y"], 150, 150 * 150),
        ("hyperbolic:2", vec![Layout::Ball], vec!["x", "y"], 150, 0),
        ("product(torus:1,euclidean:1)", vec![Layout::Angles, Layout::Vector], vec!["a", "x"], 150, 150 * 150),
    ];
    for (name, layouts, columns, size, cells) in cases {
        let model = model(name, 400, 3);
        let form = form(name, layouts, &columns);
        let grid = DensityGrid::of(&model, &form, Some(size), &Context::bare()).unwrap();
        let error = model.log_z().value.std_error;
        println!("{name}: {} cells, {}", grid.columns[0].values.len(), grid.total);
        assert!((grid.total - 1.0).abs() < 0.01 + 4.0 * error, "{name}: density × cell = {}", grid.total);
        assert!(cells == 0 || grid.columns[0].values.len() == cells, "{name}: {} cells", grid.columns[0].values.len());
        // What the table says is the model's density there.
        let names: Vec<&str> = grid.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names[columns.len()..], ["log_density", "density", "cell"]);
        let few: Vec<minvel_lab::table::Column> = grid.columns[..columns.len()]
            .iter()
            .map(|c| minvel_lab::table::Column::numbers(c.name.clone(), c.values[100..110].to_vec()))
            .collect();
        let table = minvel_lab::table::Table { path: "grid".into(), columns: few, ..Default::default() };
        let logs = model.log_density(&form.points(&table).unwrap(), &Context::bare()).unwrap();
        let told = &grid.columns[columns.len()].values[100..110];
        assert!(logs.iter().zip(told).all(|(a, b)| (a - b).abs() < 1e-4), "{name}: {logs:?}, not {told:?}");
    }
    let model = model("euclidean:2", 100, 3);
    let plane = form("euclidean:2", vec![Layout::Vector], &["x", "y"]);
    let error = DensityGrid::of(&model, &plane, Some(100_000), &Context::bare()).unwrap_err().to_string();
    assert!(error.contains("--size 100000"), "{error}");
}

#[test]
fn levels_of_a_models_own_draws_are_uniform_and_others_are_not() {
    let (model, context) = (model("torus:2", 400, 5), Context::bare());
    let levels = Levels::of(&model, 11, &context).unwrap();
    let own = model.sample(3000, 12, &context).unwrap().points;
    let of = |points: &[f64]| -> Vec<f64> {
        model.log_density(points, &context).unwrap().iter().map(|l| levels.at(*l)).collect()
    };
    let squares: Vec<f64> = of(&own).iter().map(|u| u * u).collect();
    let ((mean, error), (square, error2)) = (estimate(&of(&own)), estimate(&squares));
    // the levels have an error of their own, that of 10 000 draws
    let wide = |error: f64| error * (1.0 + 3000.0 / Levels::DRAWS as f64).sqrt();
    println!("levels: {mean:.4} ± {error:.4}, squares {square:.4} ± {error2:.4}");
    assert!((mean - 0.5).abs() < 4.0 * wide(error) && (square - 1.0 / 3.0).abs() < 4.0 * wide(error2));
    // The twin: points a little off the model are further out.
    let moved: Vec<f64> = own.iter().map(|x| x + 0.25).collect();
    let (far, error) = estimate(&of(&moved));
    assert!(far > 0.5 + 4.0 * wide(error), "{far} ± {error}");
    assert_eq!((levels.at(f64::INFINITY), levels.at(f64::NEG_INFINITY)), (0.0, 1.0));
}

#[test]
fn comparisons_are_paired_and_change_their_sign_with_the_order() {
    let (good, poor) = (model("sphere:2", 1500, 7), model("sphere:2", 15, 8));
    let fresh = Truth::new("sphere:2").draw(600, 20);
    let context = Context::bare();
    let one = Comparison::of([&good, &poor], &fresh, &context).unwrap();
    let other = Comparison::of([&poor, &good], &fresh, &context).unwrap();
    println!("{one:?}");
    assert!(one.z > 4.0 && one.p_value < 1e-4 && one.win_share > 0.5 && one.rows == 600, "{one:?}");
    assert!((one.difference.mean + other.difference.mean).abs() < 1e-12 && (one.z + other.z).abs() < 1e-9);
    assert!((one.difference.mean - (one.log_density[0].mean - one.log_density[1].mean)).abs() < 1e-12);
    // Pairing takes off what both have in common.
    let apart = one.log_density[0].std_error.hypot(one.log_density[1].std_error);
    assert!(one.difference.std_error < apart, "{} and {apart}", one.difference.std_error);
    let same = Comparison::of([&good, &good], &fresh, &context).unwrap();
    assert_eq!((same.difference.mean, same.win_share, same.known_share), (0.0, 0.5, [0.0, 0.0]));
}

#[test]
fn columns_are_shown_over_the_range_of_their_units() {
    use minvel_lab::fitting::margin_figures;
    use minvel_lab::plot::Plot;
    let form = Coordinates {
        periods: vec![None, None, Some(24.0)],
        full_turn: vec![false, true, true],
        ..form("product(sphere:2,torus:1)", vec![Layout::LatLon, Layout::Angles], &["lat", "lon", "hour"])
    };
    let points = [[0.6, 0.0, 0.8, 1.0], [0.0, -0.6, -0.8, -1.0]].concat();
    let figures = margin_figures(&form, &points);
    let [figure] = &figures[..] else { panic!("one figure of three columns, not {}", figures.len()) };
    let Plot::Row { plots } = &figure.plot else { panic!("side by side") };
    let shown: Vec<(&str, [f64; 2])> = plots
        .iter()
        .map(|plot| match plot {
            Plot::Histogram(histogram) => (histogram.x.label.as_str(), histogram.bins.range),
            _ => panic!("a histogram"),
        })
        .collect();
    assert_eq!(
        shown,
        [("lat (degrees)", [-90.0, 90.0]), ("lon (degrees)", [0.0, 360.0]), ("hour (period 24)", [0.0, 24.0])]
    );
    assert!(figure.caption.contains("with period 24"), "{}", figure.caption);
    assert!(figure.plot.svg(minvel_lab::plot::Theme::Paper).contains("hour (period 24)"));
}
