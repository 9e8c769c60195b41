//! What is shown: densities around the circle, maps of the sphere, and how the loss fell.

use super::{Learnt, Setting};
use crate::energy::{self, Toy};
use crate::eval::Estimate;
use crate::plot::{Axis, Curve, Dash, Lines, Map, Maps, Plot, Polar, Series};
use crate::report::Figure;
use minvel_engine::{Clock, Graph, Options, State};
use std::f64::consts::TAU;

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
    let on_sphere =
        |(latitude, longitude): (f64, f64)| [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()];
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
    let mut program = g.compile::<f64>(&[log_p], &[], &Options::default());
    program.run(&mut State::new(1), &[("y", &points)], Clock { seed: 0, step: 0 });
    program.output(0).iter().map(|&l| l as f32).collect()
}

/// All figures of the settings that were run.
pub(super) fn figures(shown: &[Shown], seeds: usize) -> Vec<Figure> {
    let mut laws: Vec<Toy> = vec![];
    for s in shown {
        if laws.iter().all(|law| law.name != s.setting.law) {
            laws.push(Toy::named(&s.setting.law).expect("checked"));
        }
    }
    let density = match laws[0].manifold.dim() {
        1 => polar(&laws, shown, seeds),
        _ => maps(&laws[0], &shown[0], seeds),
    };
    vec![density, learning(shown, seeds)]
}

fn dash(number: usize) -> Dash {
    [Dash::Solid, Dash::Dashed, Dash::Dotted][number % 3]
}

/// One plot for each law.
fn polar(laws: &[Toy], shown: &[Shown], seeds: usize) -> Figure {
    let exp = |logs: &[f32]| logs.iter().map(|&l| f64::from(l).exp()).collect::<Vec<f64>>();
    let curve = |name: &str, method: &str, dash, log: &[f32]| Curve {
        name: name.to_string(),
        method: method.to_string(),
        dash,
        density: exp(log),
    };
    let plot = |law: &Toy| {
        let mut curves = vec![curve("truth", "truth", Dash::Solid, &truth(law))];
        for (k, s) in shown.iter().filter(|s| s.setting.law == law.name).enumerate() {
            curves.push(curve(&format!("MVL, {}", s.name), "mvl", dash(k + 1), &s.learnt.log_density));
        }
        let title = if law.name == "circle" { "κ = 2 and 3 (the paper's code)" } else { "κ = 1/4 and 1/9 (its formula)" };
        Plot::Polar(Polar { title: title.to_string(), label: "density (1/rad)".to_string(), curves })
    };
    let mut plots: Vec<Plot> = laws.iter().map(plot).collect();
    let caption = format!(
        "Density around the circle: the distance from the inner ring. Grey and filled the truth, blue what was learnt{}.",
        which(seeds)
    );
    let plot = if plots.len() == 1 { plots.remove(0) } else { Plot::Row { plots } };
    Figure::new("density", &caption, plot)
}

fn which(seeds: usize) -> String {
    if seeds == 1 { String::new() } else { format!(" (of {seeds} seeds the one farthest from the truth)") }
}

/// Truth on the left, learnt on the right.
fn maps(law: &Toy, shown: &Shown, seeds: usize) -> Figure {
    let map = |title: &str, values: Vec<f32>| Map { title: title.to_string(), latitudes: MAP.0, longitudes: MAP.1, values };
    let learnt = format!("learnt by MVL ({} setting)", shown.name);
    let maps = vec![map("truth", truth(law)), map(&learnt, shown.learnt.log_density.clone())];
    let caption = format!(
        "Log density on the sphere (minus the energy, up to a constant), in Mollweide's projection of equal areas; parallels \
         each 30°, meridians each 60°. Left the truth, right what was learnt{}.",
        which(seeds)
    );
    Figure::new("density", &caption, Plot::Maps(Maps { maps, label: "log density (nats)".to_string() }))
}

/// How far the loss is from its optimum.
fn learning(shown: &[Shown], seeds: usize) -> Figure {
    let y = Axis::linear("L̂/2 + I(p)/2 (mean of a batch)");
    let mut plot = Lines { markers: false, ..Lines::new("Loss above its optimum", Axis::linear("iteration"), y) };
    for (k, s) in shown.iter().enumerate() {
        let optimum = -0.5 * Toy::named(&s.setting.law).expect("checked").information.expect("mixtures know it");
        let points = s.learnt.looks.iter().map(|look| {
            (f64::from(look.step), Estimate::of(look.loss.iter().map(|l| l - optimum)))
        });
        plot = plot.with(Series::new(s.name, "mvl").dashed(dash(k)).estimates(points));
    }
    let bands = if seeds > 1 { "; bands are 95 % intervals over seeds" } else { "" };
    let caption = format!("The loss of the batch during training, above the least value possible{bands}. It may be negative, \
                           since a batch is a sample.");
    Figure::new("learning", &caption, Plot::Lines(plot.level(0.0, "optimum")))
}
