//! What is shown: densities and their errors, around the circle or on maps of the sphere.

use super::{Learnt, Setting};
use crate::plot::{Axis, Dash, Figure, Lines, Map, Maps, Plot, Polar, PolarCurve, Series, Shades};
use minvel::energy;
use minvel::energy::{Toy, ToyLaw};
use minvel_engine::{Clock, Device, Graph, Options, State};
use std::f64::consts::{PI, TAU};

/// A setting and what it led to.
pub(super) struct Shown<'a> {
    pub name: &'a str,
    pub setting: &'a Setting,
    pub learnt: Learnt,
}

/// Angles of the polar plot.
const ANGLES: usize = 360;
/// Parallels and meridians of the maps.
const MAP: (usize, usize) = (90, 180);

/// Where densities are shown, row-major.
pub(super) fn points(law: &Toy) -> Vec<f64> {
    let on_circle = |i: usize| {
        let angle = TAU * i as f64 / ANGLES as f64;
        [angle.cos(), angle.sin()]
    };
    let on_sphere = |(latitude, longitude): (f64, f64)| {
        [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
    };
    match law.manifold.dim() {
        1 => (0..ANGLES).flat_map(on_circle).collect(),
        _ => Map::points(MAP.0, MAP.1).flat_map(on_sphere).collect(),
    }
}

/// log p of the truth there.
fn truth(law: &Toy) -> Vec<f32> {
    let (g, points) = (Graph::new(), points(law));
    let m = law.manifold.ambient();
    let y = g.input_rows("y", points.len() / m, [m]);
    let log_p = energy::log_prob(law, y).expect("mixtures are normalised");
    let mut program = g.compile::<f64>(&[log_p], &[], &Options { device: Device::Cpu, ..Options::default() });
    program.run(&mut State::new(1), &[("y", &points)], Clock { seed: 0, step: 0 });
    program.output(0).iter().map(|&l| l as f32).collect()
}

/// All figures of the settings that were run.
pub(super) fn figures(shown: &[Shown], seeds: usize) -> Vec<Figure> {
    let mut laws: Vec<Toy> = vec![];
    for s in shown {
        if laws.iter().all(|law| law.kind != s.setting.law.kind) {
            laws.push(s.setting.law.clone());
        }
    }
    match laws[0].manifold.dim() {
        1 => vec![polar(&laws, shown, seeds), angles(&laws, shown)],
        _ => vec![maps(&laws[0], shown, seeds), error_maps(&laws[0], shown, seeds)],
    }
}

impl Shown<'_> {
    /// The log density of the seed that is farthest from the truth.
    fn farthest(&self) -> &[f32] {
        let grades = self.learnt.last.iter().map(|q| q.divergence);
        let (seed, _) = grades.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).expect("at least one seed");
        &self.learnt.log_densities[seed]
    }
}

const DASHES: [Dash; 3] = [Dash::Solid, Dash::Dashed, Dash::Dotted];

/// One plot for each law.
fn polar(laws: &[Toy], shown: &[Shown], seeds: usize) -> Figure {
    let exp = |logs: &[f32]| logs.iter().map(|&l| f64::from(l).exp()).collect::<Vec<f64>>();
    let curve = |name: &str, method: &str, dash, log: &[f32]| PolarCurve {
        name: name.to_string(),
        method: method.to_string(),
        dash,
        density: exp(log),
    };
    let plot = |law: &Toy| {
        let mut curves = vec![curve("truth", "truth", Dash::Solid, &truth(law))];
        for (k, s) in shown.iter().filter(|s| s.setting.law.kind == law.kind).enumerate() {
            curves.push(curve(&format!("MVL, {}", s.name), "mvl", DASHES[(k + 1) % 3], s.farthest()));
        }
        Plot::Polar(Polar { title: title(law).to_string(), label: "density (1/rad)".to_string(), curves })
    };
    let mut plots: Vec<Plot> = laws.iter().map(plot).collect();
    let caption = format!(
        "Density around the circle, as the distance from the inner ring. Grey, filled: the truth; blue: the learnt \
         density{}.",
        which(seeds)
    );
    let plot = if plots.len() == 1 { plots.remove(0) } else { Plot::Row { plots } };
    Figure::new("density", &caption, plot)
}

fn title(law: &Toy) -> &'static str {
    if law.kind == ToyLaw::Circle { "κ = 2 and 3 (the paper's code)" } else { "κ = 1/4 and 1/9 (the paper's text)" }
}

/// log q − log p against the angle, a line for each seed.
fn angles(laws: &[Toy], shown: &[Shown]) -> Figure {
    let plot = |law: &Toy| {
        let log_p = truth(law);
        let x = Axis::linear("angle (rad)").over(-PI, PI);
        let mut plot = Lines { markers: false, ..Lines::new(title(law), x, Axis::linear("log q − log p (nats)")) };
        for (k, s) in shown.iter().filter(|s| s.setting.law.kind == law.kind).enumerate() {
            for (seed, log_q) in s.learnt.log_densities.iter().enumerate() {
                // From −π on: the points begin at 0.
                let points = (0..=ANGLES).map(|i| {
                    let at = (i + ANGLES / 2) % ANGLES;
                    (TAU * i as f64 / ANGLES as f64 - PI, f64::from(log_q[at] - log_p[at]))
                });
                let name = if seed == 0 { format!("MVL, {}", s.name) } else { String::new() };
                plot = plot.with(Series::new(&name, "mvl").dashed(DASHES[k % 3]).values(points));
            }
        }
        Plot::Lines(plot.level(0.0, ""))
    };
    let mut plots: Vec<Plot> = laws.iter().map(plot).collect();
    let plot = if plots.len() == 1 { plots.remove(0) } else { Plot::Row { plots } };
    Figure::new("error", "Error of the learnt log density against the angle; one line per seed.", plot)
}

fn which(seeds: usize) -> String {
    if seeds == 1 { String::new() } else { format!(" (the one of {seeds} seeds that is farthest from the truth)") }
}

fn map(title: &str, values: Vec<f32>) -> Map {
    Map::new(title, MAP.0, MAP.1, values)
}

/// Truth on the left, learnt on the right.
fn maps(law: &Toy, shown: &[Shown], seeds: usize) -> Figure {
    let learnt = |s: &Shown| map(&format!("learnt by MVL ({} setting)", s.name), s.farthest().to_vec());
    let maps = std::iter::once(map("truth", truth(law))).chain(shown.iter().map(learnt)).collect();
    let caption = format!(
        "Log density on the sphere (minus the energy, up to a constant) in Mollweide's projection, which preserves \
         areas; parallels every 30°, meridians every 60°. Left: the truth; right: the learnt density{}.",
        which(seeds)
    );
    Figure::new("density", &caption, Plot::Maps(Maps::new(maps, Shades::new("log density (nats)"))))
}

/// |log q − log p|.
fn error_maps(law: &Toy, shown: &[Shown], seeds: usize) -> Figure {
    let log_p = truth(law);
    let error = |s: &Shown| {
        let values = s.farthest().iter().zip(&log_p).map(|(q, p)| (q - p).abs()).collect();
        map(&format!("error of MVL ({} setting)", s.name), values)
    };
    let maps = shown.iter().map(error).collect();
    let caption = format!("Error of the learnt log density on the sphere{}.", which(seeds));
    Figure::new("error", &caption, Plot::Maps(Maps::new(maps, Shades::new("|log q − log p| (nats)"))))
}
